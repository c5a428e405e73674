package hostlib

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agree"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/membership"
)

// recovery is what the members of a communicator agree by, also when it has ended: messages in a
// space of their own. Nothing runs before the first agreement.
type recovery struct {
	space *rail.TagSpace // nil: there are no others
	err   error          // why there is none
	turn  chan struct{}  // held by who agrees with others

	mu      sync.Mutex
	part    *rail.TagSpace // nil: the communicator was not formed
	core    *agree.Core    // nil: nothing was agreed yet
	deaths  []agree.Input  // that were reported before
	out     agree.Output
	clock   runner.Clock
	timer   *time.Timer
	sent    [][][]byte // by rank: the last messages, of at most keptMessages
	changed chan struct{}
	end     context.CancelFunc

	given     uint64         // for what this member has given its flags last: isShrink, isAgree
	decided   bool           // there is a decision that was not acted on
	decision  agree.Decision // the last
	formed    *Communicator  // by the last decision; nil: it was not
	disturbed bool           // somebody has died since
	expelled  bool           // others hold this member dead
	isClosed  bool

	acknowledged []int // ranks that have died
}

const (
	pieceMost    = 256 // bytes of a message of the rails; a longer one of an agreement is cut
	keptMessages = 8
	maxEnded     = 64 // communicators that have ended, and can be shrunk
)

// openRecovery opens the space, in place of that of an earlier communicator of the same members and
// name.
func (c *Communicator) openRecovery() error {
	v := &c.recovery
	number := binary.BigEndian.Uint64(c.group[8:]) & rail.MaxSpace &^ 1
	if number == 0 {
		number = 2
	}
	c.host.endRecoveries(func(o *Communicator) bool { return o.group == c.group })
	v.space, v.err = c.messaging.node.TagSpace(number, nil)
	if errors.Is(v.err, rail.ErrArgument) {
		return v.err
	}
	return nil
}

// beginRecovery takes the number by which the members distinguish this communicator from an
// earlier one.
func (c *Communicator) beginRecovery(life uint64) {
	v := &c.recovery
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.space != nil {
		v.part = v.space.Part(uint32(life >> 32))
	}
}

// keepRecovery lets a communicator that has ended be shrunk, unless it was left, or never formed.
func (h *Host) keepRecovery(c *Communicator) {
	if c.hasLeft || !c.isFormed() {
		c.forget()
		return
	}
	h.mu.Lock()
	h.ended = append(h.ended, c)
	var oldest *Communicator
	if len(h.ended) > maxEnded {
		oldest = h.ended[0]
		h.ended = slices.Delete(h.ended, 0, 1)
	}
	h.mu.Unlock()
	if oldest != nil {
		oldest.recovery.close()
	}
	if c.hasQuit() { // others may know of another end, and wait for this member when they shrink theirs
		_ = c.startRecovery() // fails where nobody waits: the host is being closed
	}
}

// isFormed reports whether the communicator was formed, and is a caller's.
func (c *Communicator) isFormed() bool {
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	return c.recovery.part != nil || len(c.members) == 1 && c.sub.of == nil
}

// endRecoveries ends those of communicators that have ended.
func (h *Host) endRecoveries(of func(c *Communicator) bool) {
	h.mu.Lock()
	var gone []*Communicator
	h.ended = slices.DeleteFunc(h.ended, func(c *Communicator) bool {
		is := of(c)
		if is {
			gone = append(gone, c)
		}
		return is
	})
	h.mu.Unlock()
	for _, c := range gone {
		c.recovery.close()
	}
}

// close ends it: there is no agreement any more.
func (v *recovery) close() {
	v.mu.Lock()
	v.isClosed = true
	end, timer := v.end, v.timer
	v.notify()
	v.mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
	if end != nil {
		end()
	}
	if v.space != nil {
		v.space.Close()
	}
}

// startRecovery has this member take part in agreements, if it does not yet.
func (c *Communicator) startRecovery() error {
	v := &c.recovery
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.isClosed:
		return fmt.Errorf("%w: it was left, was made again, or ended too long ago", ErrEnded)
	case v.err != nil:
		return fmt.Errorf("hostlib: messages between members: %w", v.err)
	case v.part == nil && len(c.members) > 1:
		return fmt.Errorf("hostlib: messages between members: %w", c.messaging.err)
	case v.core != nil:
		return nil
	}
	a, err := agree.New(agree.Config{Rank: uint32(c.rank), Size: len(c.members), SlowAfter: c.host.cfg.SlowAfter})
	if err != nil {
		return err
	}
	c.host.mu.Lock()
	defer c.host.mu.Unlock()
	if c.host.closed {
		return ErrClosed
	}
	v.core, v.clock, v.changed, v.sent = a, runner.NewClock(), make(chan struct{}), make([][][]byte, len(c.members))
	ctx, end := context.WithCancel(c.host.ctx)
	v.end = end
	for rank := range c.members {
		if rank != c.rank {
			c.host.tasks.Go(func() { c.hear(ctx, rank) })
		}
	}
	c.host.tasks.Go(func() {
		select {
		case <-c.done:
			c.learnOfEnd()
		case <-ctx.Done():
		}
	})
	if c.hasQuit() { // what others have sent is to be answered so, from the first on
		c.agreesLocked(agree.Input{Kind: agree.Quit})
	}
	c.agreesLocked(v.deaths...)
	return nil
}

// learnOfEnd takes the death that has ended the communicator, if one has.
func (c *Communicator) learnOfEnd() {
	var m *MemberError
	if c.hasQuit() {
		c.agrees(agree.Input{Kind: agree.Quit})
	} else if errors.As(c.ending(), &m) {
		c.agrees(agree.Input{Kind: agree.Dead, Rank: uint32(m.Rank)})
	}
}

// hasQuit reports whether the communicator has ended by this member.
func (c *Communicator) hasQuit() bool {
	var m *MemberError
	return errors.As(c.ending(), &m) && m.Rank == c.rank
}

// ending returns how the loop has ended, as neighbours know it too; nil: it has not.
func (c *Communicator) ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// notify wakes those who wait for a change. The caller holds the lock.
func (v *recovery) notify() {
	if v.changed != nil {
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// hear takes another member's messages, and notes its death.
func (c *Communicator) hear(ctx context.Context, rank int) {
	v := &c.recovery
	p, err := c.recovery.space.Peer(c.members[rank].process())
	if err != nil {
		return
	}
	buffer := make([]byte, pieceMost)
	var whole []byte
	isLost := false
	for {
		r := v.part.StartRecv(p, 0, 0, buffer)
		status, err := r.Wait(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, rail.ErrCanceled), errors.Is(err, rail.ErrClosed), errors.Is(err, peer.ErrClosed):
			r.Cancel()
			return
		case err == nil && status.Size > 0:
			isLost = false
			whole = append(whole, buffer[1:status.Size]...)
			if buffer[0] == 0 {
				c.agrees(agree.Input{Kind: agree.Message, Rank: uint32(rank), Bytes: whole})
				whole = whole[:0]
			}
		case err == nil:
		case isLost, errors.Is(err, rail.ErrRestarted), errors.Is(err, rail.ErrAbsent):
			c.host.cfg.Log.Info("a member counts as dead", slog.String("communicator", c.name), slog.Int("rank", rank), slog.Any("reason", err))
			c.agrees(agree.Input{Kind: agree.Dead, Rank: uint32(rank)})
			return
		default: // it may live, and lack what was on its way
			isLost, whole = !errors.Is(err, context.Canceled), whole[:0] // by this host, which may be closing
			v.mu.Lock()
			c.write(rank, agree.PingMessage())
			for _, m := range v.sent[rank] {
				c.write(rank, m)
			}
			v.mu.Unlock()
		}
	}
}

// write sends a message in pieces. The caller holds the lock.
func (c *Communicator) write(rank int, b []byte) {
	p, err := c.recovery.space.Peer(c.members[rank].process())
	if err != nil {
		return // the node is closed, which ends all
	}
	for len(b) > 0 {
		n := min(len(b), pieceMost-1)
		piece := make([]byte, 1, 1+n)
		if n < len(b) {
			piece[0] = 1
		}
		// What is lost is noticed by the receive.
		c.recovery.part.StartSend(p, 0, append(piece, b[:n]...))
		b = b[n:]
	}
}

// agrees steps this member's part in agreements.
func (c *Communicator) agrees(in ...agree.Input) {
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	c.agreesLocked(in...)
}

func (c *Communicator) agreesLocked(in ...agree.Input) {
	v := &c.recovery
	if v.core == nil || v.isClosed {
		return
	}
	v.out.Reset()
	now := v.clock.Now()
	v.core.Step(now, in, &v.out)
	for _, rank := range v.out.Watch {
		c.write(int(rank), agree.PingMessage())
	}
	for _, s := range v.out.Sends {
		kept := append(v.sent[s.To], s.Bytes)
		v.sent[s.To] = kept[max(0, len(kept)-keptMessages):]
		c.write(int(s.To), s.Bytes)
	}
	for _, d := range v.out.Decided {
		v.decision, v.decided, v.disturbed = d, true, false
		for _, rank := range d.Failed {
			c.revokes(revoke.Input{Kind: revoke.Dead, From: rank})
		}
	}
	v.disturbed = v.disturbed || v.out.Disturbed
	v.expelled = v.expelled || v.out.Expelled
	if v.out.Malformed > 0 {
		c.host.malformed.Add(uint64(v.out.Malformed))
	}
	v.notify()
	if at := v.core.Deadline(); at != core.Never {
		if v.timer == nil {
			v.timer = time.AfterFunc(at.Sub(now), func() { c.agrees() })
		} else {
			v.timer.Reset(at.Sub(now))
		}
	}
}

// awaitRecovery waits until something holds; holds is called with the lock.
func (c *Communicator) awaitRecovery(ctx context.Context, holds func() bool) error {
	v := &c.recovery
	for {
		v.mu.Lock()
		is, changed := holds(), v.changed
		expelled, isClosed := v.expelled, v.isClosed
		v.mu.Unlock()
		switch {
		case expelled:
			return fmt.Errorf("%w: other members hold this one dead, or it has called Abort", ErrEnded)
		case is:
			return nil
		case isClosed && c.host.Err() != nil:
			return ErrClosed
		case isClosed:
			return fmt.Errorf("%w: it was made again meanwhile", ErrEnded)
		}
		select {
		case <-changed:
		case <-c.host.done:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("%w: waiting for %s", context.Cause(ctx), c.awaited())
		}
	}
}

// awaited names the members for whom an agreement waits.
func (c *Communicator) awaited() string {
	c.recovery.mu.Lock()
	defer c.recovery.mu.Unlock()
	var names []string
	for _, rank := range c.recovery.core.Late() {
		names = append(names, fmt.Sprintf("rank %d (%s)", rank, c.members[rank].process()))
	}
	return strings.Join(names, ", ")
}

// diedInRecoveries reports the end of a process to all that agree with it, or will. One that has started
// again is found by its connections.
func (h *Host) diedInRecoveries(x membership.Notice) {
	if h.members != nil {
		m, err := h.members.Member(h.ctx, x.Member.Name)
		if err == nil && m.Version.Incarnation > x.Member.Version.Incarnation {
			return
		}
	}
	for _, c := range h.all() {
		if rank := c.rankOf(x.Member.Name); rank >= 0 {
			c.recovery.mu.Lock()
			c.reportDeath(uint32(rank))
			c.recovery.mu.Unlock()
			c.revokes(revoke.Input{Kind: revoke.Dead, From: uint32(rank)})
		}
	}
}

// forget ends what can still be done with a communicator that has ended.
func (c *Communicator) forget() {
	c.recovery.close()
	c.closeRevocation()
}

// all returns the communicators that have not ended, those that can be shrunk, and those of whose
// revocation others may not know. One may be there twice.
func (h *Host) all() []*Communicator {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.AppendSeq(slices.Concat(h.ended, h.revoked), maps.Values(h.comms))
}

// rankOf returns the rank of a process; -1: it is no member.
func (c *Communicator) rankOf(process string) int {
	return slices.IndexFunc(c.members, func(m Member) bool { return m.process() == process })
}

// reportDeath is called for who holds the lock.
func (c *Communicator) reportDeath(rank uint32) {
	v := &c.recovery
	death := agree.Input{Kind: agree.Dead, Rank: rank}
	if v.core == nil && v.part != nil { // what was reported before it was formed is of an earlier life
		v.deaths = append(v.deaths, death)
	}
	c.agreesLocked(death)
}
