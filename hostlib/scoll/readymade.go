package scoll

import (
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
)

// Statuses returns the callbacks of a service that reports who has failed. run
// runs a request on this node, and returns its code, 0 for success, and text;
// done gets, on the root, the statuses of all: who ran it and succeeded, who
// failed, and which subtrees did not answer. Those have the Status of their
// child as their code, above AbsentCode. Up to named failures are named; 0:
// aggregate.DefaultNamed.
func Statuses(named int, run func(r *Request) (code uint32, text string), done func(r *Request, s *aggregate.Statuses)) Callbacks {
	return Aggregation{
		New: func(*Request) (aggregate.Aggregator, error) { return &aggregate.Statuses{Named: named}, nil },
		Size: func(_ *Request, child Child) int {
			return aggregate.StatusesSize(child.Nodes, named, MaxNode)
		},
		Run: func(r *Request) (func(aggregate.Aggregator) error, error) {
			code, text := run(r)
			return func(a aggregate.Aggregator) error {
				if code == 0 {
					a.(*aggregate.Statuses).Succeed()
				} else {
					a.(*aggregate.Statuses).Fail(aggregate.Failure{Node: r.node.Name(), Nodes: 1, Code: code, Text: text})
				}
				return nil
			}, nil
		},
		Absent: func(a aggregate.Aggregator, reply *Reply, err error) {
			a.(*aggregate.Statuses).Fail(aggregate.Failure{
				Node: reply.Source, Nodes: uint32(reply.Request.Child(reply.Child).Nodes),
				Code: AbsentCode + uint32(reply.Status), Text: err.Error(),
			})
		},
		Done: func(r *Request, a aggregate.Aggregator) { done(r, a.(*aggregate.Statuses)) },
	}.Callbacks()
}

// AbsentCode is added to the Status of a child that did not answer, so that it
// is no code of the service's.
const AbsentCode = 1 << 31

// Concatenation returns the callbacks of a service whose replies are put one
// behind the other, as aggregate.Parts. run runs a request on this node and
// returns its part; size is the most bytes of one; done gets all of them on the
// root. A node passes on what its children reply as it comes: it gathers nothing
// but what does not fill a message, and large replies travel in as few of them
// as they fit into.
func Concatenation(size int, run func(r *Request) ([]byte, error), done func(r *Request, p *aggregate.Parts)) Callbacks {
	c := &concatenation{run: run, done: done, size: size, of: map[*Request]*aggregate.Parts{}}
	return Callbacks{PreRequest: c.pre, IncomingRequest: c.own, IncomingReply: c.reply, PostReply: c.post}
}

type concatenation struct {
	size int
	run  func(*Request) ([]byte, error)
	done func(*Request, *aggregate.Parts)

	mu sync.Mutex
	of map[*Request]*aggregate.Parts // of the roots' requests
}

func (c *concatenation) pre(r *Request) error {
	for i := range r.NumChildren() {
		if err := r.PostReplySize(i, r.Child(i).Nodes*aggregate.PartSize(longestNode, c.size), nil); err != nil {
			return err
		}
	}
	return nil
}

// longestNode has the size of the longest name.
var longestNode = string(make([]byte, MaxNode))

func (c *concatenation) own(r *Request) error {
	if r.BulkErr() != nil {
		return nil // the library has notified the parent
	}
	part, err := c.run(r)
	if err != nil {
		return err
	}
	c.pass(r, aggregate.AppendPart(nil, r.node.Name(), part))
	return nil
}

func (c *concatenation) reply(reply *Reply) {
	if reply.Status == StatusOK && aggregate.CheckParts(reply.Body) == nil {
		c.pass(reply.Request, reply.Body)
	}
}

// pass passes parts on to the parent, or keeps them on the root.
func (c *concatenation) pass(r *Request, parts []byte) {
	if !r.IsRoot() {
		_ = r.ReplyMore(parts) // refused where the library replies itself
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.of[r]
	if p == nil {
		p = new(aggregate.Parts)
		c.of[r] = p
	}
	_ = p.Add(0, parts) // they were checked
}

func (c *concatenation) post(r *Request) {
	if !r.IsRoot() {
		_ = r.Reply(nil) // the last piece
		return
	}
	c.mu.Lock()
	p := c.of[r]
	delete(c.of, r)
	c.mu.Unlock()
	if p == nil {
		p = new(aggregate.Parts)
	}
	c.done(r, p)
}
