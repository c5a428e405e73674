package hostlib

import (
	"errors"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// revocation is this member's part in the revocation of a communicator: also when it has ended here,
// since others may not know. Nothing is sent, and no connection held, before somebody revokes.
type revocation struct {
	// Held while it sends, which does not wait. The locks of the communicator and the host are taken
	// under it, and the recovery's is not.
	mu       sync.Mutex
	core     *revoke.Core // nil: no caller has the communicator
	out      revoke.Output
	isFormed bool
	held     []uint32 // the ranks with whom a connection is held
	isClosed bool     // it was left, was never formed, or others were notified too long ago
}

// Revoke has every operation on the communicator fail with an error that wraps ErrRevoked, and is a
// *RevokedError: pending ones and later ones, at all members that live, which need not call anything.
// It returns at once, and may be called at any time, by any members, again and again. The members are
// notified though others die meanwhile, fewer than about twice the logarithm of their number. Other
// communicators go on. Unlike after Abort nobody counts as dead: the members can Shrink what is
// revoked. An operator of a caller's that computes ends before its operation does. After the end of
// the communicator by a failure Revoke notifies others whom that has not reached; after Leave it does
// nothing.
func (c *Communicator) Revoke() {
	c.revokes(revoke.Input{Kind: revoke.Revoke, From: uint32(c.rank)})
}

// isRevoked reports whether the communicator is, or the one that it serves.
func (c *Communicator) isRevoked() bool {
	for ; c != nil; c = c.sub.of {
		if errors.Is(c.Err(), ErrRevoked) {
			return true
		}
	}
	return false
}

// openRevocation makes this member's part.
func (c *Communicator) openRevocation() (err error) {
	if c.sub.of == nil {
		c.revocation.core, err = revoke.New(revoke.Config{Rank: uint32(c.rank), Size: len(c.members), Group: c.group})
	}
	return err
}

// revokes steps this member's part, and does what follows. It does not wait: the loop calls it, too.
func (c *Communicator) revokes(in revoke.Input) {
	v := &c.revocation
	v.mu.Lock()
	tooMany, why := c.revokesLocked(in)
	v.mu.Unlock()
	if why != nil { // where a death has ended it before; without the lock, since that may find a peer lost
		c.endDirect(why)
	}
	if tooMany != nil {
		tooMany.closeRevocation()
	}
}

func (c *Communicator) revokesLocked(in revoke.Input) (tooMany *Communicator, why error) {
	v := &c.revocation
	if v.core == nil || v.isClosed || in.Kind == revoke.Dead && !v.isFormed { // whose death was of an earlier life
		return nil, nil
	}
	v.isFormed = v.isFormed || in.Kind == revoke.Formed
	v.out.Reset()
	v.core.Step([]revoke.Input{in}, &v.out)
	if v.out.Delivered { // before the sends: what finds no connection goes on the next one
		tooMany = c.host.keepRevoked(c)
	}
	for _, s := range v.out.Sends {
		c.sayRevoked(&s)
	}
	if v.out.Delivered {
		n, _ := v.core.Notice()
		f := wire.Fail{Kind: wire.FailRevoked, Rank: n.By}
		why = c.failure(&f)
		c.ends(why)
		// Final: where it is being left, it does not wait for the goodbye of those that are revoked.
		c.loop.Add(item{in: endpoint.Input{Kind: endpoint.Failed, News: &endpoint.News{Fail: f}}, final: true})
	}
	c.holdAwaited()
	if v.out.Settled {
		c.host.dropRevoked(c)
	}
	return tooMany, why
}

// sayRevoked sends a notice on the newest connection that takes it. The caller holds the lock.
func (c *Communicator) sayRevoked(s *revoke.Send) {
	w := word{kind: revokes, rest: s.Bytes}
	for _, conn := range c.host.links.conns(c.members[s.To].process(), peer.Control) {
		err := conn.Send(w.frame())
		conn.Flush(peer.Communicators, nil)
		if err == nil {
			return
		}
		if errors.Is(err, peer.ErrFull) {
			conn.Break(err) // the notice is repeated on the next one
		}
	}
}

// holdAwaited has there be connections with those who may need the notice, and no others. The caller
// holds the lock.
func (c *Communicator) holdAwaited() {
	v := &c.revocation
	if _, is := v.core.Notice(); !is {
		return
	}
	v.held = slices.DeleteFunc(v.held, func(rank uint32) bool {
		isDone := v.isClosed || !v.core.IsAwaited(rank)
		if m := &c.members[rank]; isDone {
			c.host.peers.Release(m.process(), peer.Control, m.Addr)
		}
		return isDone
	})
	if v.isClosed || !v.out.Delivered { // nobody begins to be awaited later
		return
	}
	for rank := range revoke.Neighbours(len(c.members), uint32(c.rank), 0) {
		if m := &c.members[rank]; v.core.IsAwaited(rank) {
			v.held = append(v.held, rank)
			c.host.peers.Hold(m.process(), peer.Control, m.Addr)
		}
	}
}

// closeRevocation ends this member's part: others are not notified any more.
func (c *Communicator) closeRevocation() {
	v := &c.revocation
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.core == nil {
		return
	}
	v.isClosed = true
	c.holdAwaited()
	c.host.dropRevoked(c)
}

// keepRevoked notes a communicator of whose revocation others may not know, and returns the oldest
// one if there are too many.
func (h *Host) keepRevoked(c *Communicator) (tooMany *Communicator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.revoked = append(h.revoked, c); len(h.revoked) > maxEnded {
		return h.revoked[0]
	}
	return nil
}

func (h *Host) dropRevoked(c *Communicator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.revoked = slices.DeleteFunc(h.revoked, func(o *Communicator) bool { return o == c })
}

// heardNotice takes what another host says of the revocation of a communicator. One that was made
// again, and the one before, have the same digest.
func (h *Host) heardNotice(from string, b []byte) error {
	n, err := revoke.Read(b)
	if err != nil {
		return err
	}
	for _, c := range h.all() {
		if c.group != n.Of.Group {
			continue
		}
		if rank := c.rankOf(from); rank >= 0 {
			c.revokes(revoke.Input{Kind: revoke.Message, From: uint32(rank), Bytes: b})
		}
	}
	return nil
}

// toRevoked notes that the connection with another process is new, or that it is dead, where it may
// need to know of a revocation.
func (h *Host) toRevoked(process string, kind revoke.InputKind) {
	h.mu.Lock()
	revoked := slices.Clone(h.revoked)
	h.mu.Unlock()
	for _, c := range revoked {
		if rank := c.rankOf(process); rank >= 0 {
			c.revokes(revoke.Input{Kind: kind, From: uint32(rank)})
		}
	}
}
