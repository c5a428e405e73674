package scoll

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
)

// Broadcast is what a request is made of.
type Broadcast struct {
	Payload []byte   // with what travels beside it at most MaxRequest bytes; not to be changed before PostReply
	Bulk    [][]byte // bulk data, the vectors one behind the other; neither changed nor freed before PostReply
	Last    bool     // nothing follows over the group: all members free it
	// Timeout is P, how long members need to process the request,
	// pessimistically: it only matters for nodes that are neither known to be
	// dead nor reply. It has to cover the slowest node's callbacks, and what the
	// nodes on the way to it take, one after the other, before they forward:
	// PreRequest as far as it is longer than the root's own, and pulls of bulk
	// data as far as they are slower than Config.BulkRate. 0: Config.Timeout, a
	// minute by default; as little as there can be is a nanosecond, which leaves R
	// alone; at most 100 days.
	Timeout time.Duration
	Private any // the caller's; see Request.Private

	// Only and Except choose, by their nodes, which of the group's members run the
	// request: those of Only, or all if it is nil, without those of Except. The tree
	// has nobody else in it but the root, which, if it is left out itself, has no
	// entities (Request.Target), does not run IncomingRequest, and gathers the
	// replies all the same. The names do not travel: a request is longer by some
	// bytes for each run of neighbours in the group's order, at most by a bit a
	// member. A last broadcast is for all.
	Only, Except []string
}

// Request is one broadcast on one node: on the root as NewRequest has returned
// it, elsewhere as PreRequest gets it. It is valid until it has ended: on the
// root when PostReply has returned, elsewhere when ReplyOut has, or PreRequest
// with an error. Its methods may be called from any goroutine; those that fail
// say ErrRequest when it has ended.
type Request struct {
	node    *Node
	service *Service
	group   *Group // the root's
	id      uint64

	root     string
	isRoot   bool
	last     bool
	payload  []byte // guarded by node.mu: the root's becomes a copy
	tags     []Tag
	branches []broadcast.Branch
	bulkLen  uint64

	// Of the callbacks.
	private    any
	privates   []any      // of the reply buffers, by child; guarded by node.mu
	gathering  *gathering // of an Aggregation's; set in PreRequest
	bulk       [][]byte
	timeout    time.Duration
	timeoutSet bool
	bulkStatus Status

	// Guarded by node.mu.
	ended   bool
	err     error
	outcome Outcome
	done    chan struct{}
}

// NewRequest makes a request that is not sent yet. Reply buffers are to be
// posted for all children, here or in PreRequest, which runs on the root, too.
// It fails with ErrTooLarge or ErrDelayed where the message would be too large,
// and with ErrFilter where Only and Except name who is no member, or leave nobody.
func (g *Group) NewRequest(b Broadcast) (*Request, error) {
	m, err := g.members()
	if err != nil {
		return nil, err
	}
	s, n := g.service, g.service.node
	b.Timeout = cmp.Or(b.Timeout, n.cfg.Timeout)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("broadcast over %q: %w", g.name, err)
	}
	id, err := n.core.NewRequest(broadcast.Broadcast{
		Group: g.id, Payload: b.Payload, Bulk: size(b.Bulk), Last: b.Last, Patience: b.Timeout, Members: m,
		Only: coreNodes(b.Only), Except: coreNodes(b.Except),
	})
	if err != nil {
		return nil, err
	}
	v, err := n.core.Request(id)
	if err != nil {
		return nil, err
	}
	r := &Request{node: n, service: s, group: g, id: id, bulk: b.Bulk, private: b.Private}
	r.look(&v)
	r.payload, r.timeout = b.Payload, b.Timeout
	n.requests[id], s.requests[id] = r, r
	return r, nil
}

// look takes what the core reports of a request.
func (r *Request) look(v *broadcast.View) {
	r.root, r.isRoot, r.last = string(v.Root), v.IsRoot, v.Last
	r.payload, r.tags, r.branches = v.Payload, v.Tags, v.Children
	r.bulkLen, r.timeout = v.Bulk, v.Patience
}

// Service returns whose request it is.
func (r *Request) Service() *Service { return r.service }

// Root returns the name of the node that broadcasts.
func (r *Request) Root() string { return r.root }

// IsRoot reports whether that is this node.
func (r *Request) IsRoot() bool { return r.isRoot }

// Last reports whether the group is freed after this request.
func (r *Request) Last() bool { return r.last }

// Payload returns the payload: in callbacks a copy of the service's own, to do
// with as it likes, until the request ends.
func (r *Request) Payload() []byte {
	r.node.mu.Lock()
	defer r.node.mu.Unlock()
	return r.payload
}

// Target returns this node with all its entities that the request is for: none on
// a root that Only or Except leave out.
func (r *Request) Target() Target { return Target{r.node.Name(), r.tags} }

// NumChildren returns how many children this node has in the request's tree; 0
// on a leaf.
func (r *Request) NumChildren() int { return len(r.branches) }

// Child returns the i-th child, from 0 on.
func (r *Request) Child(i int) Child { return publicChild(&r.branches[i]) }

// Children returns all children.
func (r *Request) Children() []Child { return publicChildren(r.branches) }

// Private returns what the request was made with, or what SetPrivate has set.
func (r *Request) Private() any { return r.private }

// SetPrivate keeps a value of the service's with the request. It is for
// PreRequest, or for who keeps callbacks from racing each other.
func (r *Request) SetPrivate(v any) { r.private = v }

// PostReplyBuffer posts the buffer for a child's reply, and what IncomingReply
// gets with it. It is legal before Send and in PreRequest, once for each child,
// which is ErrPosted otherwise. The buffer is free when the child's IncomingReply
// has returned; a reply that is larger counts as StatusOverflow.
func (r *Request) PostReplyBuffer(child int, buf []byte, private any) error {
	if buf == nil {
		buf = []byte{} // nil would be one of the library's
	}
	return r.post(child, buf, 0, private)
}

// PostReplySize posts a buffer of the library's, of size bytes, like
// PostReplyBuffer.
func (r *Request) PostReplySize(child, size int, private any) error {
	return r.post(child, nil, size, private)
}

func (r *Request) post(child int, buf []byte, size int, private any) error {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.core.PostReplyBuffer(r.id, child, buf, size); err != nil {
		return err
	}
	if private != nil {
		if r.privates == nil {
			r.privates = make([]any, len(r.branches))
		}
		r.privates[child] = private
	}
	return nil
}

// Send sends the root's request. It fails with ErrDead at once, without a
// callback, if a member is dead; the request has ended then. Behind the first
// broadcast over a delayed group it waits for its end.
func (r *Request) Send() error {
	n := r.node
	n.mu.Lock()
	err := n.core.Send(n.clock.Now(), r.id, &n.out)
	if err != nil && !errors.Is(err, ErrRequest) {
		r.finish(err, Outcome{})
		n.counts.failed.Add(1)
	}
	n.mu.Unlock()
	n.loop.Wake()
	return err
}

// Reply replies, in a callback or later from any goroutine: with the service's
// own reply and those of the children aggregated. body is copied. A reply that
// is given before PostReply is the local one: it never travels alone, PostReply
// finds it in Local, and the reply that is given from then on replaces it; on a
// leaf it goes out itself if there is none. On the root a reply goes nowhere.
func (r *Request) Reply(body []byte) error { return r.reply(body, false) }

// ReplyMore gives the next piece of a reply that goes on, and ends with Reply.
// Pieces make as few messages as they can, each sent when it is full.
func (r *Request) ReplyMore(piece []byte) error { return r.reply(piece, true) }

func (r *Request) reply(body []byte, more bool) error {
	n := r.node
	n.mu.Lock()
	err := n.core.Reply(n.clock.Now(), r.id, body, more, &n.out)
	n.mu.Unlock()
	n.loop.Wake()
	return err
}

// Local returns the reply that was given before PostReply; nil if none was.
func (r *Request) Local() []byte {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	v, err := n.core.Request(r.id)
	if err != nil {
		return nil
	}
	return v.Local
}

// Abort ends the request before its time: replies that are missing are reported as
// aborted, PostReply and ReplyOut follow as always, the parent is notified. Buffers
// are free when the request has ended. One that was not sent ends at once; one
// that has ended is left alone.
func (r *Request) Abort() {
	n := r.node
	n.pulls.cancel(r.id)
	n.mu.Lock()
	_ = n.core.Abort(n.clock.Now(), r.id, &n.out) // the error is that it has ended
	n.mu.Unlock()
	n.loop.Wake()
}

// BulkLen returns the bytes of bulk data; 0: none.
func (r *Request) BulkLen() uint64 { return r.bulkLen }

// SetBulk sets where bulk data is pulled to, at least BulkLen bytes, in
// PreRequest. The memory belongs to the library until PostReply: children read
// from it.
func (r *Request) SetBulk(memory [][]byte) {
	if !r.isRoot {
		r.bulk = cut(memory, r.bulkLen)
	}
}

// Bulk returns the bulk data, of BulkLen bytes: not to be changed, and in
// PreRequest not there yet, but on the root.
func (r *Request) Bulk() [][]byte { return r.bulk }

// BulkErr returns, from IncomingRequest on, why there is no bulk data: a
// *StatusError. The library has notified the parent then; the service must not
// reply.
func (r *Request) BulkErr() error { return r.bulkStatus.Err() }

// Timeout returns P.
func (r *Request) Timeout() time.Duration { return r.timeout }

// SetTimeout sets P for the wait for this node's own children, in PreRequest.
func (r *Request) SetTimeout(p time.Duration) { r.timeout, r.timeoutSet = p, true }

// Outcome returns what is known by now of who ran the request: all of it on the
// root in PostReply, and afterwards.
func (r *Request) Outcome() Outcome {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.ended {
		return r.outcome
	}
	v, err := n.core.Request(r.id)
	if err != nil {
		return Outcome{}
	}
	return publicOutcome(&v.Outcome)
}

// Done is closed when the request has ended.
func (r *Request) Done() <-chan struct{} {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.ended {
			close(r.done)
		}
	}
	return r.done
}

// Err returns, once the request has ended, why it has failed. On the root nil
// means that all members have run it, each once; an *IncompleteError names who
// have not; any other error is the root's own. Elsewhere it says why the reply
// did not go out.
func (r *Request) Err() error {
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	return r.err
}

// Group returns the group of the request, from IncomingRequest on: by it this
// node can be a root of the group's, too. It is valid as long as the group. Name
// and private value are those of the handle that made the request, on other
// nodes than the root the group's name, and nothing.
func (r *Request) Group() (*Group, error) {
	if r.group != nil {
		return r.group, nil
	}
	n := r.node
	n.mu.Lock()
	defer n.mu.Unlock()
	id, err := n.core.GroupOf(r.id)
	if err != nil {
		return nil, err
	}
	info, err := n.core.GroupInfo(id)
	if err != nil {
		return nil, err
	}
	g := &Group{service: r.service, id: id, name: info.Name}
	if info.OutOfBand {
		g.index = &info.Index
	}
	return g, nil
}

// finish notes the end. The caller holds node.mu.
func (r *Request) finish(err error, outcome Outcome) {
	r.ended, r.err, r.outcome = true, err, outcome
	if r.done != nil {
		close(r.done)
	}
	delete(r.node.requests, r.id)
	s := r.service
	delete(s.requests, r.id)
	if s.closing && len(s.requests) == 0 {
		close(s.drained)
	}
}

// cut returns the first so many bytes of vectors, less if there are fewer.
func cut(vectors [][]byte, most uint64) [][]byte {
	for i, v := range vectors {
		if uint64(len(v)) >= most {
			return append(vectors[:i:i], v[:most:most])
		}
		most -= uint64(len(v))
	}
	return vectors
}
