package hostlib

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core/agree"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// direct are the messages of Send and Recv. A member's death ends those with it alone, and the
// operations of the communicator: the others go on, as long as it can be shrunk.
type direct struct {
	space  *rail.TagSpace // nil: there are no others, or no messages
	ending sync.Once      // of it: a later communicator's may have its number

	mu    sync.Mutex
	part  *rail.TagSpace // nil: it is not formed yet
	peers []*rail.Peer   // by rank; nil: not asked for yet
	dead  map[int]string // ranks, and how they are known to have died
	end   error          // why there are no messages any more; nil: there are
}

// openDirect opens the space, in place of that of an earlier communicator of the same members and name.
func (c *Communicator) openDirect() (err error) {
	if c.direct.space, err = c.messaging.node.TagSpace(c.spaceNumber(ofDirect), nil); errors.Is(err, rail.ErrClosed) {
		c.messaging.err = err
		return nil
	}
	return err
}

// beginDirect takes the number by which the members distinguish this communicator from an earlier one.
func (c *Communicator) beginDirect(life uint64) {
	d := &c.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.space != nil {
		d.part = d.space.Part(uint32(life >> 32))
	}
}

// reach returns what a member's messages go by.
func (c *Communicator) reach(rank int) (*rail.TagSpace, *rail.Peer, error) {
	switch {
	case rank < 0 || rank >= len(c.members):
		return nil, nil, fmt.Errorf("%w: rank %d in a group of %d", ErrArgument, rank, len(c.members))
	case rank == c.rank:
		return nil, nil, fmt.Errorf("%w: a message to rank %d, which is this member", ErrArgument, rank)
	case c.messaging.err != nil:
		return nil, nil, fmt.Errorf("hostlib: messages between members: %w", c.messaging.err)
	}
	ended := c.endOfMessages()
	d := &c.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := cmp.Or(c.withoutMessages(rank), ended); err != nil {
		return nil, nil, err
	}
	p, err := c.peerIn(d.space, &d.peers, rank)
	if err != nil {
		return nil, nil, fmt.Errorf("hostlib: messages between members: %w", err)
	}
	return d.part, p, nil
}

// directErr returns why there are no messages with a member; nil: there are.
func (c *Communicator) directErr(rank int) error {
	ended := c.endOfMessages()
	c.direct.mu.Lock()
	defer c.direct.mu.Unlock()
	return cmp.Or(c.withoutMessages(rank), ended)
}

// withoutMessages is directErr as far as direct knows. The caller holds its lock.
func (c *Communicator) withoutMessages(rank int) error {
	d := &c.direct
	if why, is := d.dead[rank]; is {
		return &MemberError{Rank: rank, Host: c.hostOf(uint32(rank)), Reason: why}
	}
	return d.end
}

// endOfMessages returns how the communicator has ended, if messages end with it.
func (c *Communicator) endOfMessages() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endKind == wire.FailDead {
		return nil
	}
	return c.err
}

// markDead notes that a member has died, and adds its host where messages with it are to be ended. It
// reports whether that is news.
func (c *Communicator) markDead(rank int, why string, hosts *[]*rail.Peer) bool {
	d := &c.direct
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, is := d.dead[rank]; is || rank == c.rank || rank < 0 || rank >= len(c.members) {
		return false
	}
	if d.dead == nil {
		d.dead = map[int]string{}
	}
	d.dead[rank] = why
	if d.peers != nil && d.peers[rank] != nil {
		*hosts = append(*hosts, d.peers[rank])
	}
	return true
}

// deaths returns those that are known as inputs of agreements.
func (c *Communicator) deaths() (all []agree.Input) {
	for _, rank := range c.Failed() {
		all = append(all, agree.Input{Kind: agree.Dead, Rank: uint32(rank)})
	}
	return all
}

// endMessages ends the messages that end with the communicator: all, unless a member has died.
func (c *Communicator) endMessages(f *wire.Fail) {
	switch f.Kind {
	case wire.FailDead, wire.FailCancel, wire.FailInternal:
		var hosts []*rail.Peer
		c.markDead(int(f.Rank), f.Reason, &hosts)
		for _, p := range hosts {
			c.direct.space.Cancel(p)
		}
	}
	if why := c.endOfMessages(); why != nil {
		c.endDirect(why)
	} else if c.direct.space != nil {
		c.direct.space.Watch() // nobody else finds out any more who dies
	}
}

// lost takes that a member cannot be reached any more: it counts as dead, for all.
func (c *Communicator) lost(rank int, why error) {
	c.recovery.mu.Lock()
	c.reportDeath(uint32(rank), why.Error())
	c.unlockRecovery()
	go c.lostPeer(rank, why)
}

// endDirect ends all messages: the communicator is revoked, say.
func (c *Communicator) endDirect(why error) {
	d := &c.direct
	d.mu.Lock()
	d.end = cmp.Or(d.end, why)
	d.mu.Unlock()
	if d.space != nil {
		d.ending.Do(d.space.Close)
	}
}
