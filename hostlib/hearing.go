package hostlib

import (
	"context"
	"errors"
	"log/slog"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core/agree"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// isOfEarlierLife reports whether requests have failed because the other host has started again, or
// was closed, before the communicator was formed: it is a member as it is now. In which life a neighbour is
// one its link knows. Of another, its connections show it: their end may be noticed restartGrace late, while links
// still find who dies.
func (c *Communicator) isOfEarlierLife(err error) bool {
	var p *rail.PeerError
	if !isEndOfLife(err) || !errors.As(err, &p) {
		return false
	}
	for _, l := range c.links {
		if l.name == p.Peer {
			return l.isOfEarlierLife(p.Incarnation)
		}
	}
	late := restartGrace
	if runner.IsClosed(c.over) {
		late = 0
	}
	return p.LastUp.Before(c.recovery.formedAt.Add(late))
}

// isEndOfLife reports whether requests have failed because the other host has started again, or was closed.
func isEndOfLife(err error) bool {
	return errors.Is(err, rail.ErrRestarted) || errors.Is(err, rail.ErrAbsent)
}

// hearing takes another member's messages, and notes its death, in the goroutine of who reads.
type hearing struct {
	c      *Communicator
	ctx    context.Context // of all of the communicator's
	rank   uint32
	from   *rail.Peer
	then   func(rail.Status, error) // take
	buffer [pieceMost]byte
	whole  []byte
	isLost bool
}

func (h *hearing) next() { h.c.recovery.part.RecvThen(h.from, 0, 0, h.buffer[:], h.then) }

func (h *hearing) take(status rail.Status, err error) {
	c, isPast := h.c, h.c.isOfEarlierLife(err)
	switch {
	case h.ctx.Err() != nil, errors.Is(err, rail.ErrCanceled), errors.Is(err, rail.ErrClosed), errors.Is(err, peer.ErrClosed):
		return
	case err == nil && status.Size > 0:
		h.isLost = false
		h.whole = append(h.whole, h.buffer[1:status.Size]...)
		if len(h.whole) > agree.MaxMessage(len(c.members)) {
			h.refuse()
		} else if h.buffer[0] == 0 {
			c.agrees(agree.Input{Kind: agree.Message, Rank: h.rank, Bytes: h.whole})
			h.whole = h.whole[:0]
		}
	case err == nil, errors.Is(err, rail.ErrTruncated):
		h.refuse()
	case !isPast && (h.isLost || isEndOfLife(err)):
		c.host.cfg.Log.Info("a member counts as dead", slog.String("communicator", c.name), slog.Int("rank", int(h.rank)), slog.Any("reason", err))
		c.lost(int(h.rank), err)
		return
	default: // it may live, and lack what was on its way
		h.isLost, h.whole = !isPast && !errors.Is(err, context.Canceled), h.whole[:0] // canceled by this host, which may be closing
		v := &c.recovery
		v.mu.Lock()
		v.send(h.rank, agree.PingMessage())
		for _, m := range v.sent[h.rank] {
			v.send(h.rank, m)
		}
		c.unlockRecovery()
	}
	h.next()
}

// refuse drops what no member sends.
func (h *hearing) refuse() {
	h.c.host.malformed.Add(1)
	h.whole = h.whole[:0]
}

// send has a message be sent. The caller holds the lock, and gives it back by unlockRecovery.
func (v *recovery) send(to uint32, b []byte) { v.outbox = append(v.outbox, letter{to, b}) }

// unlockRecovery gives the lock back, and sends what is to be sent, if nobody does.
func (c *Communicator) unlockRecovery() {
	v := &c.recovery
	for !v.isSending && len(v.outbox) > 0 {
		v.isSending = true
		v.outbox, v.sending = v.sending[:0], v.outbox
		v.mu.Unlock()
		for _, l := range v.sending {
			v.write(v.peers[l.to], l.bytes)
		}
		v.mu.Lock()
		clear(v.sending)
		v.isSending = false
	}
	dead := v.dead
	v.dead = nil
	v.mu.Unlock()
	for _, p := range dead {
		c.direct.space.Cancel(p)
	}
}

// write sends a message in pieces.
func (v *recovery) write(to *rail.Peer, b []byte) {
	for len(b) > 0 {
		n := min(len(b), pieceMost-1)
		more := byte(0)
		if n < len(b) {
			more = 1
		}
		v.piece = append(append(v.piece[:0], more), b[:n]...)
		r := v.part.StartBuffered(to, 0, v.piece) // what is lost is noticed by the receive
		if _, isDone, _ := r.Test(); isDone {
			r.Release()
		} else {
			v.piece = nil
		}
		b = b[n:]
	}
}
