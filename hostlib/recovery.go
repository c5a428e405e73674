package hostlib

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agree"
	"github.com/tributary-fabric/tributary/internal/core/revoke"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/membership"
)

// recovery is what the members of a communicator agree by, also when it has ended: messages in a
// space of their own. Nothing runs before the first agreement.
type recovery struct {
	space *rail.TagSpace // nil: there are no others
	err   error          // why there is none
	turn  chan struct{}  // held by who agrees with others

	mu       sync.Mutex
	part     *rail.TagSpace // nil: the communicator was not formed
	formedAt time.Time      // set with part
	core     *agree.Core    // nil: nothing was agreed yet
	out      agree.Output
	clock    runner.Clock
	timer    *time.Timer
	peers    []*rail.Peer // by rank
	sent     [][][]byte   // likewise: the last messages, of at most keptMessages
	waiters  []*waiter
	end      context.CancelFunc

	// What is to be sent, which is done without the lock, by one at a time: who sends may find that
	// something has come.
	outbox, sending []letter
	isSending       bool
	piece           []byte       // of who sends
	dead            []*rail.Peer // with whom messages are to be ended, likewise

	given     uint64         // for what this member has given its flags last: isShrink, isAgree; 0: for no later call
	decided   bool           // there is a decision that was not acted on
	decision  agree.Decision // the last
	formed    *Communicator  // by the last decision; nil: it was not
	disturbed bool           // somebody has died since
	expelled  bool           // others hold this member dead
	isClosed  bool

	acknowledged []int // ranks that have died
}

// waiter is who waits until something holds, which is asked with the lock held.
type waiter struct {
	holds func() bool
	has   bool // it held
	over  runner.Event
}

// letter is a message for another member.
type letter struct {
	to    uint32
	bytes []byte
}

// errAgreedDead: what this member has not found out by itself.
var errAgreedDead = errors.New("the other members have agreed that it is dead")

const (
	pieceMost    = 256 // bytes of a message of the rails; a longer one of an agreement is cut
	keptMessages = 8
	maxEnded     = 64 // communicators that have ended, and can be shrunk
)

// openRecovery opens the space, in place of that of an earlier communicator of the same members and
// name.
func (c *Communicator) openRecovery() error {
	v := &c.recovery
	c.host.endRecoveries(func(o *Communicator) bool { return o.group == c.group })
	v.space, v.err = c.messaging.node.TagSpace(c.spaceNumber(ofAgreements), nil)
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
		v.part, v.formedAt = v.space.Part(uint32(life>>32)), time.Now()
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
		oldest.closeRecovery()
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
		c.closeRecovery()
	}
}

// closeRecovery ends agreements, and what messages there are after the communicator's end.
func (c *Communicator) closeRecovery() {
	v := &c.recovery
	v.mu.Lock()
	v.isClosed = true
	end, timer := v.end, v.timer
	c.notify()
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
	why := fmt.Errorf("%w: it was made again, or ended too long ago", ErrEnded)
	if c.host.Err() != nil {
		why = fmt.Errorf("%w: %w", ErrEnded, ErrClosed)
	}
	c.endDirect(why)
}

// startRecovery has this member take part in agreements, if it does not yet.
func (c *Communicator) startRecovery() error {
	v := &c.recovery
	var all []*hearing
	v.mu.Lock()
	defer func() {
		c.unlockRecovery()
		for _, h := range all {
			h.next()
		}
	}()
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
	for rank := range c.members {
		if rank != c.rank {
			if _, err := c.peerIn(v.space, &v.peers, rank); err != nil {
				return fmt.Errorf("hostlib: messages between members: %w", err)
			}
		}
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
	v.core, v.clock, v.sent = a, runner.NewClock(), make([][][]byte, len(c.members))
	ctx, end := context.WithCancel(c.host.ctx)
	v.end = end
	for rank, p := range v.peers {
		if p != nil {
			h := &hearing{c: c, ctx: ctx, rank: uint32(rank), from: p}
			h.then = h.take
			all = append(all, h)
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
	c.agreesLocked(c.deaths()...)
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

// quit has others that agree not wait for this member, which does not go on with a communicator that
// has ended.
func (c *Communicator) quit() {
	if c.hasLeft || c.hasQuit() || !c.isFormed() {
		return
	}
	if c.startRecovery() == nil { // else nobody waits for it
		c.agrees(agree.Input{Kind: agree.Quit})
	}
}

// ending returns how the loop has ended, as neighbours know it too; nil: it has not.
func (c *Communicator) ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end
}

// notify wakes those who need not wait any more. The caller holds the lock.
func (c *Communicator) notify() {
	v := &c.recovery
	v.waiters = slices.DeleteFunc(v.waiters, func(w *waiter) bool {
		w.has = w.holds()
		isOver := w.has || v.expelled || v.isClosed
		if isOver {
			w.over.Happen()
			c.host.peers.Wake(&w.over)
		}
		return isOver
	})
}

// agrees steps this member's part in agreements.
func (c *Communicator) agrees(in ...agree.Input) {
	c.recovery.mu.Lock()
	defer c.unlockRecovery()
	c.agreesLocked(in...)
}

// agreesLocked is agrees of who holds the lock, and gives it back by unlockRecovery.
func (c *Communicator) agreesLocked(in ...agree.Input) {
	v := &c.recovery
	if v.core == nil || v.isClosed {
		return
	}
	v.out.Reset()
	now := v.clock.Now()
	v.core.Step(now, in, &v.out)
	for _, rank := range v.out.Watch {
		v.send(rank, agree.PingMessage())
	}
	for _, s := range v.out.Sends {
		kept := append(v.sent[s.To], s.Bytes)
		v.sent[s.To] = kept[max(0, len(kept)-keptMessages):]
		v.send(s.To, s.Bytes)
	}
	for _, d := range v.out.Decided {
		v.decision, v.decided, v.disturbed = d, true, false
		for _, rank := range d.Failed {
			c.revokes(revoke.Input{Kind: revoke.Dead, From: rank})
			if c.markDead(int(rank), errAgreedDead.Error(), &v.dead) {
				go c.lostPeer(int(rank), errAgreedDead) // the others' trees may have no way to this member
			}
		}
	}
	v.disturbed = v.disturbed || v.out.Disturbed
	v.expelled = v.expelled || v.out.Expelled
	if v.out.Malformed > 0 {
		c.host.malformed.Add(uint64(v.out.Malformed))
	}
	c.notify()
	if at := v.core.Deadline(); at != core.Never {
		if v.timer == nil {
			v.timer = time.AfterFunc(at.Sub(now), func() { c.agrees() })
		} else {
			v.timer.Reset(at.Sub(now))
		}
	}
}

// awaitRecovery waits until something holds; holds is called with the lock. Meanwhile the caller
// receives, unless it is there for another one that does.
func (c *Communicator) awaitRecovery(ctx context.Context, receives bool, holds func() bool) error {
	v := &c.recovery
	w := &waiter{holds: holds}
	v.mu.Lock()
	v.waiters = append(v.waiters, w)
	c.notify()
	v.mu.Unlock()
	if receives && !w.over.Happened() {
		c.host.peers.Drive(&w.over, ctx.Done())
	}
	w.over.Await(ctx.Done(), c.host.done)
	v.mu.Lock()
	v.waiters = slices.DeleteFunc(v.waiters, func(o *waiter) bool { return o == w })
	expelled, isClosed := v.expelled, v.isClosed
	v.mu.Unlock()
	switch {
	case expelled:
		return fmt.Errorf("%w: other members hold this one dead, or it has called Abort", ErrEnded)
	case w.has:
		return nil
	case c.host.Err() != nil:
		return ErrClosed
	case isClosed:
		return fmt.Errorf("%w: it was made again meanwhile", ErrEnded)
	}
	return fmt.Errorf("%w: waiting for %s", context.Cause(ctx), c.awaited())
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
			c.reportDeath(uint32(rank), "membership reports: "+x.String())
			c.unlockRecovery()
			c.revokes(revoke.Input{Kind: revoke.Dead, From: uint32(rank)})
		}
	}
}

// forget ends what can still be done with a communicator that has ended.
func (c *Communicator) forget() {
	c.closeRecovery()
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
	for rank := range c.members {
		if c.members[rank].isProcess(process) {
			return rank
		}
	}
	return -1
}

// reportDeath is called for who holds the lock.
func (c *Communicator) reportDeath(rank uint32, why string) {
	if c.recovery.part != nil { // what was reported before it was formed is of an earlier life
		c.markDead(int(rank), why, &c.recovery.dead)
		c.agreesLocked(agree.Input{Kind: agree.Dead, Rank: rank})
	}
}
