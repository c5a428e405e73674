package broadcast

import (
	"cmp"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// BenchmarkInternalNode is one broadcast at a node with a parent and two
// children, all callbacks included: what a node's processor must do for it.
//
//	go test -run '^$' -bench InternalNode ./internal/core/broadcast
func BenchmarkInternalNode(b *testing.B) {
	for name, make := range internalNodes {
		b.Run(name, func(b *testing.B) {
			n := make(b)
			b.ReportAllocs()
			for b.Loop() {
				n.broadcast()
			}
			n.check(b)
		})
	}
}

var internalNodes = map[string]func(testing.TB) *internalNode{"children=2": newInternalNode, "children=1/proven": newProvenNode}

// TestInternalNodeTakesNoMemory: neither the library's structures nor its
// buffers are made anew for a broadcast, once some have run.
func TestInternalNodeTakesNoMemory(t *testing.T) {
	for name, make := range internalNodes {
		n := make(t)
		for range 10 * remembered {
			n.broadcast()
		}
		if allocs := testing.AllocsPerRun(1000, n.broadcast); allocs > 0 {
			t.Errorf("%s: %v allocations a broadcast, want none", name, allocs)
		}
		n.check(t)
	}
}

// remembered is how many broadcasts the node remembers.
const remembered = 64

// internalNode is n4 of eight in a binomial tree, with n0 for its parent, n5
// and n6 for its children, and what the three send it; or n6, with n7 for its child.
type internalNode struct {
	from         broadcastmsg.Node
	core         *Core
	now          core.Time
	request      *broadcastmsg.Request
	out, did     Output
	input        [1]Input
	wire, answer []byte
	err          error
}

func newInternalNode(t testing.TB) *internalNode {
	c := newCluster(8, binomial)
	c.node(4).Core.finished.most = remembered
	request := firstRequest(t, c)
	return &internalNode{from: "n0", core: c.node(4).Core, now: c.clock, request: request}
}

// firstRequest has n0 make a group of all and broadcast to it, and returns what it sends.
func firstRequest(t testing.TB, c *cluster) *broadcastmsg.Request {
	t.Helper()
	grouped(t, c)
	if _, err := c.node(0).send(Broadcast{Payload: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	request, err := decodeRequest(c.node(0).queue[0].bytes)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// newProvenNode returns n6, which gets from n4 what n0 proves by tags.
func newProvenNode(t testing.TB) *internalNode {
	c := newProven(8, binomial)
	request := firstRequest(t, c)
	if request.Proof == nil || request.Proof.Tags == nil {
		t.Fatalf("%+v", request.Proof)
	}
	return &internalNode{from: "n4", core: c.node(6).Core, now: c.clock, request: request}
}

func (n *internalNode) step(in Input) {
	n.input[0] = in
	n.core.Step(n.now, n.input[:], &n.out)
}

// broadcast lets one come and its replies go.
func (n *internalNode) broadcast() {
	n.request.Sequence++
	n.now += core.Time(1e5)
	if p := n.request.Proof; p != nil { // as n0 would
		p.Floor++
		n.core.said(n.request)
		copy(p.Tags, n.core.tag(n.core.proofs.roots["n0"].tags))
	}
	n.wire = n.request.Append(n.wire[:0])
	n.step(Input{Kind: Message, Node: n.from, Bytes: n.wire})
	for len(n.out.Calls)+len(n.out.Sends) > 0 {
		n.out, n.did = n.did, n.out
		n.out.Reset()
		for _, s := range n.did.Sends {
			n.step(Input{Kind: Sent, Number: s.Number})
			n.reply(s.To)
		}
		for _, call := range n.did.Calls {
			n.run(call)
		}
	}
	for _, e := range n.out.Ends {
		n.err = cmp.Or(n.err, e.Err)
	}
	n.out.Ends = n.out.Ends[:0]
}

// reply is what a child has to say.
func (n *internalNode) reply(child broadcastmsg.Node) {
	reply := broadcastmsg.Reply{Key: n.request.Key, Final: true}
	switch child {
	case "n5", "n7":
		reply.Ran = 1
	case "n6":
		reply.Ran = 2
	default:
		return
	}
	n.answer = reply.Append(n.answer[:0])
	n.step(Input{Kind: Message, Node: child, Bytes: n.answer})
}

func (n *internalNode) run(call Call) {
	switch call.Kind {
	case PreRequest:
		v, err := n.core.Request(call.Request)
		n.err = cmp.Or(n.err, err)
		for child := range v.Children {
			n.err = cmp.Or(n.err, n.core.PostReplyBuffer(call.Request, child, nil, 64))
		}
	case PostReply:
		n.err = cmp.Or(n.err, n.core.Reply(n.now, call.Request, nil, false, &n.out))
	default:
	}
	n.step(Input{Kind: Returned, Call: call.Kind, Request: call.Request, Child: call.Reply.Child})
}

func (n *internalNode) check(t testing.TB) {
	if held := n.core.Counters(); n.err != nil || held.Requests != 0 || held.LentBuffers != 0 {
		t.Fatalf("error %v, it holds %+v", n.err, held)
	}
}
