package collective

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// BenchmarkInternalNode is one broadcast at a node with a parent and two
// children, all callbacks included: what a node's processor must do for it.
//
//	go test -run '^$' -bench InternalNode ./internal/core/collective
func BenchmarkInternalNode(b *testing.B) {
	c := newCluster(8, binomial)
	if err := c.create(0, false); err != nil {
		b.Fatal(err)
	}
	c.settle()
	if _, err := c.node(0).send(Broadcast{Payload: []byte("hello")}); err != nil {
		b.Fatal(err)
	}
	request, err := collect.DecodeRequest(c.node(0).queue[0].bytes)
	if err != nil {
		b.Fatal(err)
	}
	m, now := c.node(4).Core, c.clock
	var out Output
	step := func(in Input) {
		m.Step(now, []Input{in}, &out)
	}
	var wire []byte
	b.ReportAllocs()
	for b.Loop() {
		request.Sequence++
		now += core.Time(1e5)
		wire = request.Append(wire[:0])
		step(Input{Kind: Message, Node: "n0", Bytes: wire})
		for len(out.Calls)+len(out.Sends) > 0 {
			o := out
			out = Output{}
			for _, s := range o.Sends {
				step(Input{Kind: Sent, Number: s.Number})
				if s.To != "n0" {
					reply := collect.Reply{Key: request.Key, Final: true, Ran: map[collect.Node]uint32{"n5": 1, "n6": 2}[s.To]}
					step(Input{Kind: Message, Node: s.To, Bytes: reply.Append(nil)})
				}
			}
			for _, call := range o.Calls {
				switch call.Kind {
				case PreRequest:
					for i := range 2 {
						if err := m.PostReplyBuffer(call.Request, i, nil, 64); err != nil {
							b.Fatal(err)
						}
					}
				case PostReply:
					if err := m.Reply(now, call.Request, nil, false, &out); err != nil {
						b.Fatal(err)
					}
				}
				step(Input{Kind: Returned, Call: call.Kind, Request: call.Request, Child: call.Reply.Child})
			}
		}
		if len(out.Ends) != 0 && out.Ends[len(out.Ends)-1].Err != nil {
			b.Fatal(out.Ends)
		}
		out.Reset()
	}
	if n := m.Counters(); n.Requests != 0 || n.LentBuffers != 0 {
		b.Fatalf("it holds %+v", n)
	}
}
