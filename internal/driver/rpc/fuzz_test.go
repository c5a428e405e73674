package rpc

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/topology"
)

// A form is a message that is read into a plain struct, and made of one.
type form struct {
	name string
	read func(*testing.T, []byte) (plain any, ok bool)
	make func(plain any) proto.Message
}

// formOf returns the form of message M and struct P.
func formOf[M any, P any, PM interface {
	*M
	proto.Message
}](name string, read func(*reader, PM) P, made func(P) PM) form {
	return form{
		name: name,
		read: func(_ *testing.T, b []byte) (any, bool) {
			m := PM(new(M))
			if proto.Unmarshal(b, m) != nil {
				return nil, false
			}
			var r reader
			p := read(&r, m)
			return p, r.err == nil
		},
		make: func(plain any) proto.Message { return made(plain.(P)) },
	}
}

var forms = []form{
	formOf("prepare", (*reader).prepare, prepareRequest),
	formOf("commit", (*reader).commit, commitRequest),
	formOf("remove", (*reader).remove, removeRequest),
	formOf("agent state", (*reader).agentState, agentState),
	formOf("counters", (*reader).agentCounters, agentCounters),
	formOf("create", (*reader).create, createRequest),
	formOf("watch", (*reader).watch, watch),
	formOf("report", (*reader).report, report),
	formOf("node", (*reader).fabricNode, fabricNode),
	formOf("link", (*reader).fabricLink, fabricLink),
	formOf("tree", (*reader).treeState, treeState),
	formOf("summary", (*reader).summary, summary),
}

// FuzzMessages reads arbitrary bytes as each message. What is accepted must
// become the same message again.
func FuzzMessages(f *testing.F) {
	addr := netip.MustParseAddrPort("10.0.0.1:4000")
	someTree := someExplanation().Trees[0]
	plain := map[string]any{
		"prepare": agent.Prepare{
			Incarnation: 1, Group: 2, Epoch: 4, Children: 3, Window: 8, ChunkBytes: 1432,
			Functions: topology.AllFunctions(), Types: topology.AllTypes(), Lease: time.Second,
		},
		"commit": agent.Commit{Incarnation: 1, Config: switchreduce.Config{
			Group: 2, Epoch: 4, Cookie: 5, Window: 8, ChunkBytes: 64, Children: []switchreduce.Child{{Addr: addr, Lowest: 3, Cookie: 6}},
			Parent: addr, Index: 1, Probes: 3, Lease: time.Second,
		}},
		"remove":      agent.Remove{Incarnation: 1, Group: 2, Epoch: 4},
		"agent state": someState,
		"counters":    AgentCounters{Slots: 5, Trees: []TreeCounters{{Group: 1, Events: map[string]uint64{"taken": 1}}}},
		"create":      manager.Create{Name: "job", Members: []string{"h0", "h1"}, Window: 8},
		"watch":       manager.Watch{Group: 1, Rank: 2, DataAddr: addr, Entered: 3},
		"report":      manager.Report{Group: 1, Rank: 2, Entered: 3, Transport: manager.Offload, Lost: 4, Silent: true, Reason: "no answer"},
		"node":        someFabric().Nodes[0],
		"link":        someFabric().Cables[0],
		"tree":        someTree,
		"summary":     someExplanation().Summary,
	}
	for i, x := range forms {
		b, err := proto.Marshal(x.make(plain[x.name]))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		x := forms[int(which)%len(forms)]
		first, ok := x.read(t, b)
		if !ok {
			return
		}
		again, err := proto.Marshal(x.make(first))
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		second, ok := x.read(t, again)
		if diff := cmp.Diff(first, second, compareAddrs, cmpopts.EquateEmpty()); !ok || diff != "" {
			t.Errorf("%s: accepted %v; differs (-first +second):\n%s", x.name, ok, diff)
		}
	})
}

// FuzzProblem turns arbitrary messages into errors, which must not panic and
// must keep their text.
func FuzzProblem(f *testing.F) {
	for _, err := range []error{
		manager.ErrTooFew,
		&agent.Refusal{Cause: agent.Slots, Switch: "leaf-1", Need: 5, Holders: []agent.Holder{{Group: 1, Slots: 2}}},
		&manager.Refusal{Reason: manager.ErrRefused, Cause: &agent.Refusal{Cause: agent.Draining}},
	} {
		b, err := proto.Marshal(problem(err))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p pb.Problem
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		err := unproblem(&p)
		if err.Error() != p.GetMessage() {
			t.Errorf("%q became %q", p.GetMessage(), err)
		}
		if again := problem(err); again.GetMessage() != p.GetMessage() {
			t.Errorf("%q became %q", p.GetMessage(), again.GetMessage())
		}
		if code := codeOf(err); code == 0 {
			t.Errorf("%v has the code OK", err)
		}
	})
}
