package rail

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// TagSpace is a space of tags of its own, as each communicator needs one. A message that is sent
// in a space is received in the space of the same number, and the same part of it, at its peer
// alone. Its methods are safe for concurrent use.
type TagSpace struct {
	node    *Node
	context uint64
	of      *space
	isFirst bool
}

// space is one that is open.
type space struct {
	onLoss    func(*Peer)        // nil: nobody wants to know
	peers     map[*Peer]struct{} // that it has; of the node's lock, as isWatched
	isWatched bool
}

// lost notes that buffered messages to a peer may not have arrived.
func (s *space) lost(p *Peer) {
	if s.onLoss != nil {
		s.onLoss(p)
	}
}

// MaxSpace and MaxPart are the greatest numbers of spaces, and of parts of one.
const (
	MaxSpace = 1<<40 - 1
	MaxPart  = 1<<24 - 1
)

// TagSpace opens a space, and returns its part 0. Both sides use the same number, which is not 0:
// that is the space of Peer's own methods. Messages for a space that is not open are dropped, and
// are done for their sender. When a peer is lost while buffered messages to it are
// on their way, onLoss is called, which may be nil and must not wait. The errors are ErrArgument,
// also for a space that is open, and ErrClosed.
func (n *Node) TagSpace(number uint64, onLoss func(*Peer)) (*TagSpace, error) {
	if number == 0 || number > MaxSpace {
		return nil, fmt.Errorf("%w: space %d, want 1 to %d", ErrArgument, number, uint64(MaxSpace))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	of := &space{onLoss: onLoss, peers: map[*Peer]struct{}{}}
	if _, isOpen := n.spaces.LoadOrStore(number, of); isOpen {
		return nil, fmt.Errorf("%w: space %d is open already", ErrArgument, number)
	}
	return &TagSpace{node: n, context: number << 24, of: of}, nil
}

// Part returns another part of the space, of 24 bits. The space as a whole is open, or closed.
func (s *TagSpace) Part(number uint32) *TagSpace {
	return &TagSpace{node: s.node, context: s.context&^MaxPart | uint64(number&MaxPart), of: s.of}
}

// First returns the same part for messages that go before all that are not First. Those, though
// nobody receives them, take no room from these: a peer may announce a quarter of Config.Announced
// more of messages that are First; and, while a receive that is First waits and it may announce no
// more, up to 16 times Config.Announced in all. Both sides use First.
func (s *TagSpace) First() *TagSpace {
	first := *s
	first.isFirst = true
	return &first
}

// accepts reports whether messages of a space are kept.
func (n *Node) accepts(context uint64) bool {
	if context == 0 {
		return true
	}
	_, isOpen := n.spaces.Load(rail.SpaceOf(context))
	return isOpen
}

// Close cancels the requests of all parts of the space, as Request.Cancel does, and drops its
// messages that no receive has taken, now and later. Requests that begin later fail with
// ErrCanceled.
func (s *TagSpace) Close() {
	number := rail.SpaceOf(s.context)
	if _, isOpen := s.node.spaces.LoadAndDelete(number); !isOpen {
		return
	}
	for _, p := range s.node.all() {
		p.endSpace(number)
	}
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	for p := range s.of.peers {
		p.spaces--
		p.expect(p.spaces > 0)
		if s.of.isWatched {
			p.watch(-1)
		}
		s.node.drop(p)
	}
	s.of.peers = nil
}

// Watch has connections be made for receives in the space, too: so they fail when their peer is dead.
func (s *TagSpace) Watch() {
	s.node.mu.Lock()
	var peers []*Peer
	if !s.of.isWatched {
		s.of.isWatched = true
		peers = slices.Collect(maps.Keys(s.of.peers))
		for _, p := range peers {
			p.watch(1)
		}
	}
	s.node.mu.Unlock()
	for _, p := range peers { // calls of others follow, who may hold that lock
		p.call()
	}
}

// watch counts spaces that are watched.
func (p *Peer) watch(more int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched += more
}

// call has the peer be called if something waits for it.
func (p *Peer) call() {
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	p.settle(p.node.clock.Now(), &e)
}

// Cancel does so with what is under way with one peer, which is dead, say. The space stays open.
func (s *TagSpace) Cancel(with *Peer) { with.endSpace(rail.SpaceOf(s.context)) }

// Peer returns another host as Node.Peer does, for use while the space is open. It is taken to be
// there: while a space has it, requests wait for it as for one that was met.
func (s *TagSpace) Peer(name string) (*Peer, error) {
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.peer(name)
	if _, has := s.of.peers[p]; err == nil && !has && s.of.peers != nil {
		s.of.peers[p] = struct{}{}
		p.spaces++
		p.expect(true)
		if s.of.isWatched {
			p.watch(1)
		}
	}
	return p, err
}

// StartSend begins to send a message to a peer in this space.
func (s *TagSpace) StartSend(to *Peer, tag Tag, data []byte) *Request {
	r := to.request()
	r.send.Context, r.send.First = s.context, s.isFirst
	to.send(r, tag, data)
	return r
}

// StartBuffered is StartSend of a message that is done when data are the caller's again: with up to
// Config.Eager bytes that may be before it has arrived. If it is lost then, onLoss of Node.TagSpace
// is called.
func (s *TagSpace) StartBuffered(to *Peer, tag Tag, data []byte) *Request {
	r := to.request()
	r.send.Context, r.send.Buffered, r.send.First = s.context, true, s.isFirst
	to.send(r, tag, data)
	return r
}

// StartRecv begins to receive a message of a peer in this space: the earliest whose tag differs
// from tag in no bits but those of ignore. Status.Tag is the message's.
func (s *TagSpace) StartRecv(from *Peer, tag, ignore Tag, into []byte) *Request {
	r := from.request()
	s.recv(r, from, tag, ignore, into)
	return r
}

// RecvThen is StartRecv of which no caller has the request: then is called when it is done, by who
// finds that, with no lock held. It must not wait. That may be before RecvThen returns.
func (s *TagSpace) RecvThen(from *Peer, tag, ignore Tag, into []byte, then func(Status, error)) {
	r := from.request()
	r.then = then
	s.recv(r, from, tag, ignore, into)
}

func (s *TagSpace) recv(r *Request, from *Peer, tag, ignore Tag, into []byte) {
	r.isRecv = true
	r.recv.Context, r.recv.First = s.context, s.isFirst
	r.recv.Tag, r.recv.Ignore, r.recv.Data = uint64(tag), uint64(ignore), into
	from.start(r, receives)
}

// Probe returns the message that a StartRecv would take at once, if there is one.
func (s *TagSpace) Probe(from *Peer, tag, ignore Tag) (Status, bool) {
	from.mu.Lock()
	defer from.mu.Unlock()
	e, ok := from.core.Probe(s.context, uint64(tag), uint64(ignore))
	return Status{Tag: Tag(e.Tag), Size: int(e.Size)}, ok
}

// endSpace cancels what is under way in a space, and drops what has come.
func (p *Peer) endSpace(space uint64) {
	var e effects
	p.mu.Lock()
	defer p.unlock(&e)
	if p.isEnded {
		return
	}
	now := p.node.clock.Now()
	p.core.EndSpace(space, now, &p.out)
	p.settle(now, &e)
}

// expect says whether the peer is known to be there.
func (p *Peer) expect(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.reach {
		p.reach[class].Expected = is
	}
}
