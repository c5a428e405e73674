package hostlib

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/rail"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// messaging is what a communicator has for messages between any two members.
type messaging struct {
	node  *rail.Node
	space *rail.TagSpace // of operations, open while the communicator is
	err   error          // why there is none

	closing sync.Once
	closed  chan struct{} // closed when nothing of it is under way any more

	mu       sync.Mutex
	calls    *rail.TagSpace // of operations; nil: it is not formed yet
	peers    []*rail.Peer   // by rank; nil: not asked for yet
	past     *calls
	agreed   agreed
	running  sync.WaitGroup      // operations
	inFlight map[uint32]*Request // the same, by position
	order    []uint32            // positions in order; the first is in flight
	waiting  []*Request          // that have no turn yet, in order
	isOver   bool                // none begins any more
}

// openMessaging opens the communicator's space. What an earlier one of the same members and name
// has sent is not in it.
func (c *Communicator) openMessaging() error {
	m := &c.messaging
	if len(c.members) == 1 || c.sub.of != nil {
		return nil
	}
	for _, o := range c.host.before(c) {
		<-o.messaging.closed
	}
	if m.node, m.err = rail.On(c.host, rail.Config{}); m.err != nil {
		return nil // only what needs messages does not work
	}
	var err error
	if m.space, err = m.node.TagSpace(c.spaceNumber(ofOperations), c.lostMessages); errors.Is(err, rail.ErrClosed) {
		m.err = err
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.openRecovery(); err != nil {
		return err
	}
	return c.openDirect()
}

// A communicator has three spaces of tags, which end at different times.
const (
	ofOperations = 1 + iota
	ofAgreements
	ofDirect
)

// spaceNumber returns the number of one of the communicator's spaces.
func (c *Communicator) spaceNumber(of uint64) uint64 {
	return binary.BigEndian.Uint64(c.group[8:])&rail.MaxSpace&^3 | of
}

// before returns the communicators with the same digest that have not ended yet, but c.
func (h *Host) before(c *Communicator) (all []*Communicator) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.comms {
		if o != c && o.group == c.group {
			all = append(all, o)
		}
	}
	return all
}

// begin takes the number by which the members distinguish this communicator from an earlier one.
func (m *messaging) begin(life uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.space != nil {
		m.calls = m.space.Part(uint32(life >> 32)).First()
	}
}

// peer returns a member's host for messages.
func (c *Communicator) peer(rank int) (*rail.Peer, error) {
	m := &c.messaging
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.peerIn(m.space, &m.peers, rank)
}

// peerIn returns a member's host for messages in a space. The caller holds the lock of the peers.
func (c *Communicator) peerIn(space *rail.TagSpace, peers *[]*rail.Peer, rank int) (p *rail.Peer, err error) {
	if *peers == nil {
		*peers = make([]*rail.Peer, len(c.members))
	}
	if p = (*peers)[rank]; p == nil {
		p, err = space.Peer(c.members[rank].process())
		(*peers)[rank] = p
	}
	return p, err
}

// enter lets an operation begin, and gives its request a number and a tag. The error wraps ErrEnded
// where none may.
func (c *Communicator) enter(r *Request, tag func(serial uint16) uint64) error {
	m := &c.messaging
	c.order.Lock() // with those on the communicator's tree
	defer c.order.Unlock()
	c.mu.Lock() // with m.mu, as refuseAll does: what has ended it is known once m is over
	defer c.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.isLeaving || m.isOver:
		return fmt.Errorf("%w: it is being left", ErrEnded)
	case m.err != nil:
		return fmt.Errorf("hostlib: messages between members: %w", m.err)
	}
	m.running.Add(1)
	r.position, r.tag = m.note(tag)
	if m.inFlight == nil {
		m.inFlight = map[uint32]*Request{}
	}
	m.inFlight[r.position] = r
	if m.order = append(m.order, r.position); !m.hasTurn(r) {
		r.turn = make(chan struct{})
		m.waiting = append(m.waiting, r)
	}
	return nil
}

// furthest is how many operations one may be ahead of the oldest by messages that is under way. Tags
// have 16 bits of a position.
const furthest = 1 << 12

// hasTurn is called for who holds the lock.
func (m *messaging) hasTurn(r *Request) bool {
	return len(m.order) == 0 || r.position-m.order[0] < furthest
}

// awaitTurn waits until an operation may begin. It reports false where ctx has ended first, and an
// error where the communicator has.
func (c *Communicator) awaitTurn(ctx context.Context, r *Request) (isOver bool, err error) {
	if r.turn == nil {
		return true, nil
	}
	select {
	case <-r.turn:
		return true, nil
	case <-c.over:
	case <-c.loop.Done():
	case <-ctx.Done():
		return false, nil
	}
	return true, cmp.Or(c.Err(), ErrEnded)
}

// ended notes that an operation has.
func (m *messaging) ended(r *Request) {
	m.mu.Lock()
	delete(m.inFlight, r.position)
	for len(m.order) > 0 && m.inFlight[m.order[0]] == nil {
		m.order = m.order[1:]
	}
	for len(m.waiting) > 0 && m.hasTurn(m.waiting[0]) {
		close(m.waiting[0].turn)
		m.waiting = m.waiting[1:]
	}
	m.mu.Unlock()
	m.running.Done()
}

// finishMessages lets no operation by messages begin any more, and waits for those under way.
func (c *Communicator) finishMessages(ctx context.Context) {
	c.order.Lock()
	c.mu.Lock()
	c.isLeaving = true
	c.mu.Unlock()
	c.order.Unlock()
	idle := make(chan struct{})
	go func() {
		c.messaging.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-ctx.Done(): // what follows reports that
	}
}

// refuse lets no operation begin any more.
func (m *messaging) refuse() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isOver = true
}

// end cancels what is under way: the communicator has ended.
func (m *messaging) end() {
	m.refuse()
	if m.space != nil {
		m.space.Close()
	}
}

// close returns when nothing is under way any more.
func (m *messaging) close() {
	m.end()
	m.closing.Do(func() {
		m.running.Wait()
		close(m.closed)
	})
}

// lostMessages ends the communicator: what a peer was sent may not have arrived, and operations
// that have sent it are over here.
func (c *Communicator) lostMessages(p *rail.Peer) {
	m := &c.messaging
	m.mu.Lock()
	rank := slices.Index(m.peers, p)
	m.mu.Unlock()
	if rank >= 0 {
		go c.lostPeer(rank, fmt.Errorf("messages to it may not have arrived: %w", rail.ErrLost))
	}
}

// lastWordWithin is how long the end of a member's messages waits for what its communicator says of
// its end: that it closed its host, say.
const lastWordWithin = 250 * time.Millisecond

// lostPeer ends the communicator for a member that cannot be reached any more.
func (c *Communicator) lostPeer(rank int, why error) {
	timer := time.NewTimer(lastWordWithin)
	defer timer.Stop()
	select {
	case <-c.over:
		return
	case <-timer.C:
	}
	c.news(endpoint.Failed, endpoint.News{Fail: wire.Fail{Kind: wire.FailDead, Rank: uint32(rank), Reason: why.Error()}})
}

// disagree ends the communicator for two members that called different operations.
func (c *Communicator) disagree(calls [2]wire.Called) {
	c.news(endpoint.Failed, endpoint.News{Fail: wire.Fail{Kind: wire.FailCalls, Rank: uint32(c.rank), Calls: calls}})
}

// addressOf returns the address of another process, by the lists of members of communicators.
func (h *Host) addressOf(process string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.Collect(maps.Values(h.comms))
	for _, c := range slices.Backward(h.ended) { // whose members may have other addresses by now
		all = append(all, c)
	}
	for _, c := range all {
		if i := slices.IndexFunc(c.members, func(m Member) bool { return m.Addr != "" && m.process() == process }); i >= 0 {
			return c.members[i].Addr
		}
	}
	return ""
}
