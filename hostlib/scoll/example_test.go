package scoll_test

import (
	"fmt"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
)

// flusher flushes the caches of a server. Its reply is the statuses of its
// subtree.
type flusher struct{ node string }

// flush is the service's state of one request.
type flush struct {
	mu sync.Mutex
	aggregate.Statuses
}

func (f *flusher) callbacks() scoll.Callbacks {
	return scoll.Callbacks{PreRequest: f.prepare, IncomingRequest: f.run, IncomingReply: f.gather, PostReply: f.reply}
}

func (f *flusher) prepare(r *scoll.Request) error {
	r.SetPrivate(&flush{})
	for i := range r.NumChildren() {
		if err := r.PostReplySize(i, aggregate.StatusesSize(r.Child(i).Nodes, 0, len("oss99")), nil); err != nil {
			return err
		}
	}
	return nil
}

func (f *flusher) run(r *scoll.Request) error {
	all := r.Private().(*flush)
	all.mu.Lock()
	defer all.mu.Unlock()
	if f.node == "oss13" || f.node == "oss42" {
		all.Fail(aggregate.Failure{Node: f.node, Nodes: 1, Code: 28, Text: "no space left"})
	} else {
		all.Succeed()
	}
	return nil
}

func (f *flusher) gather(reply *scoll.Reply) {
	all := reply.Request.Private().(*flush)
	all.mu.Lock()
	defer all.mu.Unlock()
	err := reply.Status.Err()
	if err == nil {
		err = all.Add(reply.Child, reply.Body)
	}
	if err != nil {
		child := reply.Request.Child(reply.Child)
		all.Fail(aggregate.Failure{Node: child.Node, Nodes: uint32(child.Nodes), Text: err.Error()})
	}
}

func (f *flusher) reply(r *scoll.Request) {
	all := r.Private().(*flush)
	if r.IsRoot() {
		fmt.Println(all.Succeeded(), "flushed,", all.Failed(), "failed")
		for _, failure := range all.Failures() {
			fmt.Printf("%s: %s\n", failure.Node, failure.Text)
		}
		return
	}
	_ = r.Reply(all.AppendTo(nil))
}

// A hundred servers flush their caches, and the root learns the names of those that
// failed; replies contain only failures.
func Example_statusAggregation() {
	f := launch("oss", 100, 1, func(node string) scoll.Callbacks { return (&flusher{node}).callbacks() })
	defer f.close()
	g := f.group(scoll.GroupSpec{Name: "all servers"})
	if err := run(g, scoll.Broadcast{Payload: []byte("flush")}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 98 flushed, 2 failed
	// oss13: no space left
	// oss42: no space left
}
