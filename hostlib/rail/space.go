package rail

import (
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// TagSpace is a space of tags of its own, as each communicator needs one. A message that is sent
// in a space is received in the space of the same number, and the same part of it, at its peer
// alone. Its methods are safe for concurrent use.
type TagSpace struct {
	node    *Node
	context uint64
}

// MaxSpace and MaxPart are the greatest numbers of spaces, and of parts of one.
const (
	MaxSpace = 1<<40 - 1
	MaxPart  = 1<<24 - 1
)

// TagSpace opens a space, and returns its part 0. Both sides use the same number, which is not 0:
// that is the space of Peer's own methods. Messages for a space that is not open are dropped, and
// are done for their sender. The errors are ErrArgument, also for a space that is open, and
// ErrClosed.
func (n *Node) TagSpace(number uint64) (*TagSpace, error) {
	if number == 0 || number > MaxSpace {
		return nil, fmt.Errorf("%w: space %d, want 1 to %d", ErrArgument, number, uint64(MaxSpace))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	if _, isOpen := n.spaces.LoadOrStore(number, nil); isOpen {
		return nil, fmt.Errorf("%w: space %d is open already", ErrArgument, number)
	}
	s := TagSpace{node: n, context: number << 24}
	return &s, nil
}

// Part returns another part of the space, of 24 bits. The space as a whole is open, or closed.
func (s *TagSpace) Part(number uint32) *TagSpace {
	return &TagSpace{s.node, s.context&^MaxPart | uint64(number&MaxPart)}
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
}

// StartSend begins to send a message to a peer in this space.
func (s *TagSpace) StartSend(to *Peer, tag Tag, data []byte) *Request {
	r := &Request{peer: to}
	r.send.Context = s.context
	to.send(r, tag, data)
	return r
}

// StartRecv begins to receive a message of a peer in this space: the earliest whose tag differs
// from tag in no bits but those of ignore. Status.Tag is the message's.
func (s *TagSpace) StartRecv(from *Peer, tag, ignore Tag, into []byte) *Request {
	r := &Request{peer: from, isRecv: true}
	r.recv.Context = s.context
	r.recv.Tag, r.recv.Ignore, r.recv.Data = uint64(tag), uint64(ignore), into
	from.start(r, receives)
	return r
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
