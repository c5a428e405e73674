package scoll_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestPoint37StatusesOverNodes: node 3 fails, and node 4, with node 5 beneath it
// and so on, does not have the service.
func TestPoint37StatusesOverNodes(t *testing.T) {
	c := start(t, 8, nil)
	var got *aggregate.Statuses
	c.register(func(i int) scoll.Callbacks {
		run := func(*scoll.Request) (uint32, string) {
			if i == 3 {
				return 28, "no space left"
			}
			return 0, ""
		}
		return scoll.Statuses(0, run, func(_ *scoll.Request, s *aggregate.Statuses) { got = s })
	})
	g := c.group(0, scoll.GroupSpec{})
	if err := c.service[4].Close(background(t)); err != nil {
		t.Fatal(err)
	}
	var incomplete *scoll.IncompleteError
	if _, err := call(t, g, scoll.Broadcast{}); !errors.As(err, &incomplete) || incomplete.Ran != 4 {
		t.Errorf("%v, want that 4 nodes ran it", err)
	}
	want := []aggregate.Failure{
		{Node: "n3", Nodes: 1, Code: 28, Text: "no space left"},
		{Node: "n4", Nodes: 4, Code: scoll.AbsentCode + uint32(scoll.StatusNoService), Text: "scoll: no service (library)"},
	}
	if got.Succeeded() != 3 || !slices.Equal(got.Failures(), want) {
		t.Errorf("%d succeeded, %+v failed; want 3 and %+v", got.Succeeded(), got.Failures(), want)
	}
}

// TestPoint35ConcatenationInFewMessages: along a chain of five nodes replies of
// 400 KB pile up to 2 MB. Each node sends as few messages as they fit into, of
// which the first goes before all of its children's have come.
func TestPoint35ConcatenationInFewMessages(t *testing.T) {
	const nodes, size = 6, 400_000
	c := start(t, nodes, nil)
	part := func(i int) []byte {
		b := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(b)
		return b
	}
	var got []aggregate.Part
	c.register(func(i int) scoll.Callbacks {
		run := func(*scoll.Request) ([]byte, error) { return part(i), nil }
		return scoll.Concatenation(size, run, func(_ *scoll.Request, p *aggregate.Parts) { got = slices.Collect(p.All()) })
	})
	g := c.group(0, scoll.GroupSpec{Tree: scoll.KAry(1)})
	var before []uint64
	for _, n := range c.nodes {
		before = append(before, n.Counters().MessagesOut)
	}
	if _, err := call(t, g, scoll.Broadcast{}); err != nil {
		t.Fatal(err)
	}
	if len(got) != nodes {
		t.Fatalf("%d parts, want %d", len(got), nodes)
	}
	for i := range nodes {
		k := slices.IndexFunc(got, func(p aggregate.Part) bool { return p.Source == c.nodes[i].Name() })
		if k < 0 || !bytes.Equal(got[k].Body, part(i)) {
			t.Errorf("the part of n%d is missing, or another", i)
		}
	}
	for i := 1; i < nodes; i++ {
		body := (nodes - i) * aggregate.PartSize("n0", size)
		want := uint64((body + 1<<20 - 1) / (1 << 20))
		if i < nodes-1 {
			want++ // the request
		}
		if sent := c.nodes[i].Counters().MessagesOut - before[i]; sent != want {
			t.Errorf("n%d has sent %d messages for %d bytes, want %d", i, sent, body, want)
		}
	}
}

// TestPoint37ReplyByReplyOrAtOnce: a floating-point sum has the same bits,
// whenever it is made.
func TestPoint37ReplyByReplyOrAtOnce(t *testing.T) {
	const nodes, elements = 9, 100
	var results [][]byte
	for _, atOnce := range []bool{false, true} {
		c := start(t, nodes, nil)
		var mu sync.Mutex
		c.register(func(i int) scoll.Callbacks {
			own := make([]float32, elements)
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for k := range own {
				own[k] = random.Float32() * 1e6
			}
			return scoll.Aggregation{
				New: func(*scoll.Request) (aggregate.Aggregator, error) {
					return aggregate.NewVector(reduce.Sum, reduce.Float32, elements)
				},
				Size: func(*scoll.Request, scoll.Child) int {
					return aggregate.VectorSize(reduce.Sum, reduce.Float32, elements)
				},
				Run: func(*scoll.Request) (func(aggregate.Aggregator) error, error) {
					vector := make([]byte, 4*elements)
					reduce.Put(vector, own)
					return func(a aggregate.Aggregator) error { return a.(*aggregate.Vector).Put(vector) }, nil
				},
				Done: func(_ *scoll.Request, a aggregate.Aggregator) {
					mu.Lock()
					defer mu.Unlock()
					results = append(results, a.AppendTo(nil))
				},
				AtOnce: atOnce,
			}.Callbacks()
		})
		g := c.group(0, scoll.GroupSpec{Tree: scoll.KNomial(3)})
		for range 20 {
			if _, err := call(t, g, scoll.Broadcast{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, r := range results {
		if len(results) != 40 || !bytes.Equal(r, results[0]) {
			t.Fatalf("%d results, of which not all have the same bits", len(results))
		}
	}
}

// TestAggregationOfMalformedReplies: what a child's service replies by mistake is
// reported, and nothing else is lost.
func TestAggregationOfMalformedReplies(t *testing.T) {
	c := start(t, 4, nil)
	var got *aggregate.Statuses
	c.register(func(i int) scoll.Callbacks {
		call := scoll.Statuses(0, func(*scoll.Request) (uint32, string) { return 0, "" }, func(_ *scoll.Request, s *aggregate.Statuses) { got = s })
		if i == 1 {
			call.PostReply = func(r *scoll.Request) { _ = r.Reply([]byte("nonsense")) }
		}
		return call
	})
	g := c.group(0, scoll.GroupSpec{})
	if _, err := call(t, g, scoll.Broadcast{}); err != nil {
		t.Fatal(err)
	}
	if f := got.Failures(); got.Succeeded() != 3 || len(f) != 1 || f[0].Node != "n1" || f[0].Code != scoll.AbsentCode {
		t.Errorf("%d succeeded, %+v failed", got.Succeeded(), f)
	}
}
