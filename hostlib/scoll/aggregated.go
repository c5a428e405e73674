package scoll

import (
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
)

// Aggregation makes the callbacks of a service whose replies are aggregated in
// one of the ways of package aggregate, or in another that its New returns. What
// is left to the service is to run a request.
type Aggregation struct {
	// New returns what gathers the replies of a request on this node.
	New func(r *Request) (aggregate.Aggregator, error)
	// Size returns the most bytes of the reply of a child's subtree; a larger one
	// counts as StatusOverflow.
	Size func(r *Request, child Child) int
	// Run runs a request, and returns what adds this node's own reply. An error is
	// IncomingRequest's: the library replies then. It is not called where bulk data
	// did not come.
	Run func(r *Request) (put func(aggregate.Aggregator) error, err error)
	// Absent learns of a child whose reply does not come, or cannot be read:
	// why is the reply's status, or aggregate.ErrBody. It may add what the
	// aggregator keeps of failures. nil: the library's Outcome is enough.
	Absent func(a aggregate.Aggregator, reply *Reply, err error)
	// Done is the root's: all replies are in the aggregator.
	Done func(r *Request, a aggregate.Aggregator)
	// AtOnce has replies aggregated in PostReply, in the order of the children,
	// from the buffers that they came into, instead of each when it comes.
	AtOnce bool
	// Check rejects a corrupt message, before anything else; nil: there is none.
	Check  func(r *Request) error
	Access Access // that of Callbacks
	Inline bool   // the same
}

// gathering is an Aggregation's part in a request.
type gathering struct {
	mu      sync.Mutex
	into    aggregate.Aggregator
	buffers [][]byte // AtOnce: of the children
	bodies  [][]byte // AtOnce: those that have come
	body    []byte   // aggregated
}

// gatherings are the callbacks.
type gatherings struct{ Aggregation }

// Callbacks returns the callbacks for Register.
func (a Aggregation) Callbacks() Callbacks {
	g := &gatherings{a}
	return Callbacks{
		PreRequest: g.pre, IncomingRequest: g.run, IncomingReply: g.reply, PostReply: g.post, Access: a.Access, Inline: a.Inline,
	}
}

func (g *gatherings) pre(r *Request) error {
	if g.Check != nil {
		if err := g.Check(r); err != nil {
			return err
		}
	}
	into, err := g.New(r)
	if err != nil {
		return err
	}
	n := r.NumChildren()
	k := &gathering{into: into}
	if g.AtOnce {
		k.buffers, k.bodies = make([][]byte, n), make([][]byte, n)
	}
	for i := range n {
		size := g.Size(r, r.Child(i))
		if g.AtOnce {
			k.buffers[i] = make([]byte, size)
			err = r.PostReplyBuffer(i, k.buffers[i], nil)
		} else {
			err = r.PostReplySize(i, size, nil)
		}
		if err != nil {
			return err
		}
	}
	r.gathering = k
	return nil
}

func (g *gatherings) run(r *Request) error {
	if r.BulkErr() != nil {
		return nil // the library has notified the parent
	}
	put, err := g.Run(r)
	if err != nil {
		return err
	}
	k := r.gathering
	k.mu.Lock()
	defer k.mu.Unlock()
	return put(k.into)
}

func (g *gatherings) reply(reply *Reply) {
	k := reply.Request.gathering
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case reply.Status != StatusOK:
		g.absent(k.into, reply, &StatusError{reply.Status, reply.Reason})
	case g.AtOnce:
		k.bodies[reply.Child] = reply.Body
		return
	default:
		if err := k.into.Add(reply.Child, reply.Body); err != nil {
			g.absent(k.into, reply, err)
		}
	}
}

func (g *gatherings) absent(into aggregate.Aggregator, reply *Reply, err error) {
	if v, ok := into.(*aggregate.Vector); ok {
		v.Skip(reply.Child)
	}
	if g.Absent != nil {
		g.Absent(into, reply, err)
	}
}

func (g *gatherings) post(r *Request) {
	k := r.gathering
	r.gathering = nil
	k.mu.Lock() // nobody else has it any more, but the race detector wants to know
	defer k.mu.Unlock()
	for child, body := range k.bodies {
		if body == nil {
			continue
		}
		if err := k.into.Add(child, body); err != nil {
			g.absent(k.into, &Reply{Request: r, Child: child, Source: r.Child(child).Node, Body: body}, err)
		}
	}
	if !r.IsRoot() {
		// Where the library replies itself this is refused, as it should be.
		_ = r.Reply(k.into.AppendTo(k.body))
		return
	}
	if g.Done != nil {
		g.Done(r, k.into)
	}
}
