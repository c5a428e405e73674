package hostlib

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// drafter is a manager that plans and has no trees.
type drafter struct {
	managerClient
	plan func(manager.Create) (rpc.GroupPlan, error)
}

func (d drafter) PlanGroup(_ context.Context, g manager.Create) (rpc.GroupPlan, error) {
	return d.plan(g)
}

func (drafter) HostSession(context.Context) (*rpc.HostSession, error) {
	return nil, fmt.Errorf("%w: it only plans", rpc.ErrUnsupported)
}

func (drafter) Close() error { return nil }

// TestMeasurementDelaysNobody has the measurement of the host's speed not end: joining
// does not wait for it.
func TestMeasurementDelaysNobody(t *testing.T) {
	end := make(chan struct{})
	c, err := newControl(t.Context(), drafter{}, func() topology.Speed {
		<-end
		return topology.Speed{}
	})
	if err != nil {
		t.Fatal(err)
	}
	close(end)
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// stripesPlanned plans so many stripes as are wanted.
func stripesPlanned(g manager.Create) (rpc.GroupPlan, error) {
	return rpc.GroupPlan{Groups: make([]rpc.PlannedGroup, g.Bundle.Count)}, nil
}

// partsPlanned divides ranks as it is reported.
func partsPlanned(parts ...[]int) func(manager.Create) (rpc.GroupPlan, error) {
	return func(manager.Create) (rpc.GroupPlan, error) {
		p := rpc.GroupPlan{}
		for _, ranks := range parts {
			p.Groups = append(p.Groups, rpc.PlannedGroup{Ranks: ranks})
		}
		return p, nil
	}
}

// drafted joins n hosts with such a manager.
func drafted(t testing.TB, n int, plan func(manager.Create) (rpc.GroupPlan, error), change ...func(*Config)) ([]*Host, []Member) {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("h%d", i)
	}
	hosts, members := joinAs(t, names, change...)
	for _, h := range hosts {
		var err error
		if h.manager, err = newControl(h.ctx, drafter{plan: plan}, Config{Speed: topology.Speed{Bytes: 1}}.speed); err != nil {
			t.Fatal(err)
		}
	}
	return hosts, members
}

// call is an operation as all members call it, with vectors of bytes.
type call struct {
	session.Operation
	in [][]byte
}

// drawCall draws an operation of a group of n.
func drawCall(t *rapid.T, n, most int) call {
	var c call
	c.Collective = rapid.SampledFrom([]wire.Collective{wire.Allreduce, wire.Reduce, wire.Broadcast, wire.Barrier}).Draw(t, "collective")
	if c.Collective == wire.Barrier {
		return c
	}
	c.Element = rapid.SampledFrom((topology.AllTypes() &^ blockTypes).List()).Draw(t, "type")
	if c.Collective != wire.Broadcast {
		defined := slices.DeleteFunc(topology.AllFunctions().List(), func(f reduce.Function) bool { return !reduce.Defined(f, c.Element) })
		c.Function = rapid.SampledFrom(defined).Draw(t, "function")
	}
	if c.Collective != wire.Allreduce {
		c.Root = uint32(rapid.IntRange(0, n-1).Draw(t, "root"))
	}
	c.Elements = rapid.IntRange(0, most).Draw(t, "elements")
	c.in = make([][]byte, n)
	random := rapid.Uint64().Draw(t, "seed")
	for rank := range c.in {
		c.in[rank] = make([]byte, c.Elements*reduce.ElementSize(c.Function, c.Element))
		for i := range c.in[rank] {
			random = random*6364136223846793005 + 1442695040888963407
			c.in[rank][i] = byte(random >> 56)
		}
	}
	return c
}

// on runs c on all members and returns what each got; in place if asked for.
func (c call) on(t interface{ Errorf(string, ...any) }, comms []*Communicator, inPlace bool) ([][]byte, []Outcome) {
	out, outcomes := make([][]byte, len(comms)), make([]Outcome, len(comms))
	each(len(comms), func(i int) {
		o, rank := c.Operation, uint32(comms[i].rank)
		if o.Collective != wire.Barrier {
			vector := slices.Clone(c.in[rank])
			if !o.Collective.Copies() || o.Source(rank) {
				o.In = vector
			}
			if o.Sink(rank) {
				if out[i] = vector; !inPlace {
					out[i] = make([]byte, len(vector))
				}
				o.Out = out[i]
			}
		}
		var err error
		if outcomes[i], err = comms[i].start(o, nil, asked).finish(context.Background()); err != nil {
			t.Errorf("rank %d: %v", i, err)
		}
	})
	return out, outcomes
}

func TestStripesGiveWhatOneTreeGives(t *testing.T) {
	const n = 5
	hosts, members := drafted(t, n, stripesPlanned, func(c *Config) { c.ChunkBytes = 64 })
	one, block := form(t, "one", hosts, members), form(t, "block", hosts, members, BlockFloat())
	striped := [][]*Communicator{form(t, "two", hosts, members, Stripes(2)), form(t, "three", hosts, members, Stripes(3))}
	blocked := form(t, "blocked", hosts, members, Stripes(2), BlockFloat())
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t, n, 4*stripeChunks*16)
		inPlace := rapid.Bool().Draw(t, "in place")
		k := rapid.IntRange(0, 2).Draw(t, "communicator")
		with, without := blocked, block
		if k < 2 {
			with, without = striped[k], one
		}
		got, outcomes := c.on(t, with, inPlace)
		want, _ := c.on(t, without, inPlace)
		for rank := range got {
			if !bytes.Equal(got[rank], want[rank]) {
				t.Errorf("rank %d: the stripes give other bits than one tree", rank)
			}
			perChunk, _ := c.Chunk(64)
			cut := perChunk > 0 && (c.Elements+perChunk-1)/perChunk >= stripeChunks*len(with[0].Stripes())
			if (outcomes[rank].Stripes != nil) != cut {
				t.Errorf("rank %d: %d elements ran on stripes %v", rank, c.Elements, outcomes[rank].Stripes)
			}
		}
	})
	for _, comms := range append(striped, one, block, blocked) {
		leave(t, comms)
	}
}

// TestPartsReduceInRootOrder holds the parts against communicators of the same
// members, whose results are reduced one after the other.
func TestPartsReduceInRootOrder(t *testing.T) {
	partition := [][]int{{0, 3, 4}, {1, 6}, {2}, {5}}
	const n = 7
	hosts, members := drafted(t, n, partsPlanned(partition...), func(c *Config) { c.ChunkBytes = 64 })
	whole := form(t, "whole", hosts, members)
	divided := form(t, "divided", hosts, members, Roots(4))
	for _, c := range divided {
		if !slices.EqualFunc(c.Parts(), partition, slices.Equal) {
			t.Fatalf("parts are %v, want %v", c.Parts(), partition)
		}
	}
	parts := make([][]*Communicator, len(partition))
	for i, ranks := range partition {
		var of []*Host
		var list []Member
		for _, rank := range ranks {
			of, list = append(of, hosts[rank]), append(list, members[rank])
		}
		parts[i] = form(t, fmt.Sprint("like part ", i), of, list)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t, n, 3*segmentChunks*16)
		inPlace := rapid.Bool().Draw(t, "in place")
		got, _ := c.on(t, divided, inPlace)
		var want [][]byte
		if c.Function == reduce.NoFunction {
			want, _ = c.on(t, whole, inPlace)
		} else {
			want = c.inParts(t, partition, parts)
		}
		for rank := range got {
			if !bytes.Equal(got[rank], want[rank]) {
				t.Errorf("rank %d: the parts give other bits than their results one after the other", rank)
			}
		}
	})
	for _, comms := range append(parts, whole, divided) {
		leave(t, comms)
	}
}

// inParts reduces within each part, and then over these.
func (c call) inParts(t *rapid.T, partition [][]int, parts [][]*Communicator) [][]byte {
	kernel, err := reduce.KernelOf(c.Function, c.Element)
	if err != nil {
		t.Fatal(err)
	}
	results := make([][]byte, len(parts))
	for i, comms := range parts {
		local := call{Operation: c.Operation}
		local.Collective, local.Root = wire.Allreduce, 0
		for _, rank := range partition[i] {
			local.in = append(local.in, c.in[rank])
		}
		out, _ := local.on(t, comms, false)
		results[i] = out[0]
	}
	result := make([]byte, len(results[0]))
	kernel(result, results)
	want := make([][]byte, len(c.in))
	for rank := range want {
		if c.Sink(uint32(rank)) {
			want[rank] = result
		}
	}
	return want
}

func TestPartsSumInBlockFloat(t *testing.T) {
	const n, length = 5, 3 * segmentChunks * 358
	hosts, members := drafted(t, n, partsPlanned([]int{0, 2}, []int{1, 3, 4}))
	comms := form(t, "job", hosts, members, Roots(2), BlockFloat())
	outcomes := sumFloats(t, comms, length)
	for _, o := range outcomes {
		if !o.BlockFloat || !strings.Contains(o.Reason, "of 2: ") {
			t.Errorf("it ran as %+v", o)
		}
	}
	leave(t, comms)
}

// eachKind forms a communicator of two stripes, and one of two parts, of new hosts.
func eachKind(t *testing.T, n int, run func(t *testing.T, hosts []*Host, comms []*Communicator)) {
	t.Run("stripes", func(t *testing.T) {
		hosts, members := drafted(t, n, stripesPlanned)
		run(t, hosts, form(t, "job", hosts, members, Stripes(2)))
	})
	t.Run("parts", func(t *testing.T) {
		var even, odd []int
		for i := range n {
			if i%2 == 0 {
				even = append(even, i)
			} else {
				odd = append(odd, i)
			}
		}
		hosts, members := drafted(t, n, partsPlanned(even, odd))
		run(t, hosts, form(t, "job", hosts, members, Roots(2)))
	})
}

// long is more elements than go over one stripe.
const long = 2 * stripeChunks * 358

func TestDisagreementOverSeveralTrees(t *testing.T) {
	sum := func(f reduce.Function, length int) func(*Communicator) *Request {
		return func(c *Communicator) *Request {
			v := make([]int32, length)
			return StartAllreduce(c, f, v, v)
		}
	}
	sumTo := func(root int) func(*Communicator) *Request {
		return func(c *Communicator) *Request {
			v := make([]int32, long)
			return StartReduce(c, reduce.Sum, root, v, v)
		}
	}
	for name, odd := range map[string]func(*Communicator) *Request{
		"one more":   sum(reduce.Sum, long+1),
		"half":       sum(reduce.Sum, long/2), // as much as a stripe has of the others'
		"short":      sum(reduce.Sum, 1),
		"nothing":    sum(reduce.Sum, 0),
		"function":   sum(reduce.Max, long),
		"barrier":    StartBarrier,
		"collective": sumTo(0),
	} {
		t.Run(name, func(t *testing.T) {
			disagree(t, sum(reduce.Sum, long), odd)
		})
	}
	t.Run("root", func(t *testing.T) { disagree(t, sumTo(0), sumTo(3)) })
}

// disagree has rank 3 call something else than the others, who all get an error
// that reports it.
func disagree(t *testing.T, usual, odd func(*Communicator) *Request) {
	eachKind(t, 4, func(t *testing.T, _ []*Host, comms []*Communicator) {
		ctx := within(t)
		first := make([]string, len(comms))
		each(len(comms), func(i int) {
			if _, err := Barrier(ctx, comms[i]); err != nil {
				t.Error(err)
			}
			start := usual
			if i == 3 {
				start = odd
			}
			_, err := start(comms[i]).Wait(ctx)
			var d *Disagreement
			if !errors.As(err, &d) || d.Calls[0].Rank != 3 && d.Calls[1].Rank != 3 {
				t.Errorf("rank %d: got %v, want a disagreement with rank 3", i, err)
				return
			}
			if d.Calls[0].Operation != 1 || d.Calls[1].Operation != 1 {
				t.Errorf("rank %d: %v, want operation 1", i, err)
			}
			first[i] = err.Error()
		})
		for i := range first {
			if first[i] != first[0] {
				t.Errorf("rank %d got %q, rank 0 %q", i, first[i], first[0])
			}
		}
	})
}

// TestEndOfOneTreeEndsAll has each tree in turn end by itself.
func TestEndOfOneTreeEndsAll(t *testing.T) {
	for which := range 3 {
		eachKind(t, 5, func(t *testing.T, _ []*Host, comms []*Communicator) {
			trees := append(comms[0].multitree.others(), comms[0])
			if which >= len(trees) {
				return
			}
			requests := make([]*Request, len(comms))
			v := make([][]int64, len(comms))
			for i, c := range comms[:4] { // rank 4 never calls it
				v[i] = make([]int64, long)
				requests[i] = StartAllreduce(c, reduce.Sum, v[i], v[i])
			}
			tree := trees[which]
			for peer, l := range tree.links {
				l.dead("it was struck by lightning")
				whole := peer
				if tree.sub.ranks != nil {
					whole = tree.sub.ranks[peer]
				}
				for i, c := range comms {
					if i < 4 {
						_, err := requests[i].Wait(within(t))
						wantMember(t, err, whole, "lightning")
					}
					<-c.Done()
					wantMember(t, c.Err(), whole, "lightning")
				}
				break
			}
		})
	}
}

func TestDeathOverSeveralTrees(t *testing.T) {
	for dead := range 4 {
		eachKind(t, 4, func(t *testing.T, hosts []*Host, comms []*Communicator) {
			ctx := within(t)
			each(4, func(i int) {
				if i == dead {
					if err := hosts[i].Close(context.Background()); err != nil {
						t.Error(err)
					}
					return
				}
				v := make([]float32, long)
				for {
					_, err := Allreduce(ctx, comms[i], reduce.Sum, v, v)
					if err != nil {
						wantMember(t, err, dead, "closed its host")
						return
					}
				}
			})
		})
	}
}

func TestManyOverSeveralTrees(t *testing.T) {
	eachKind(t, 4, func(t *testing.T, _ []*Host, comms []*Communicator) {
		const ops = 12
		ctx := within(t)
		each(4, func(i int) {
			requests, all := make([]*Request, ops), make([][]int64, ops)
			for k := range requests {
				all[k] = vectors(4, k%3*long/2)[i]
				requests[k] = StartAllreduce(comms[i], reduce.Sum, all[k], all[k])
			}
			left := make(chan error, 1)
			go func() { left <- comms[i].Leave(ctx) }()
			for k, r := range requests {
				if _, err := r.Wait(ctx); err != nil {
					t.Errorf("rank %d, operation %d: %v", i, k, err)
					continue // it may go on
				}
				checkSum(t, 4, i, all[k])
			}
			if err := <-left; err != nil {
				t.Error(err)
			}
			if _, err := Barrier(ctx, comms[i]); !errors.Is(err, ErrEnded) {
				t.Errorf("rank %d: after leaving: %v", i, err)
			}
		})
	})
}

// TestSeveralFormAgain: all that serves a communicator is gone with it.
func TestSeveralFormAgain(t *testing.T) {
	hosts, members := drafted(t, 3, stripesPlanned)
	for range 3 {
		comms := form(t, "job", hosts, members, Stripes(3))
		sum(t, comms, long)
		leave(t, comms)
		for i, c := range comms {
			<-c.Done()
			hosts[i].mu.Lock()
			if len(hosts[i].comms) != 0 {
				t.Errorf("rank %d still has %d communicators", i, len(hosts[i].comms))
			}
			hosts[i].mu.Unlock()
		}
	}
}

// TestSeveralFormAgainAfterAnEnd: whoever has the error can call the successor.
func TestSeveralFormAgainAfterAnEnd(t *testing.T) {
	hosts, members := drafted(t, 3, stripesPlanned)
	for round := range 5 {
		comms := form(t, "job", hosts, members, Stripes(8))
		again := make([]*Communicator, len(comms))
		each(len(comms), func(i int) {
			ctx := within(t)
			if i == round%3 {
				comms[i].abort("it starts again")
			}
			v := make([]int64, 1) // over one tree: the others may still be there
			_, err := Allreduce(ctx, comms[i], reduce.Sum, v, v)
			wantMember(t, err, round%3, "starts again")
			hosts[i].mu.Lock()
			if names := slices.Collect(maps.Keys(hosts[i].names)); len(names) != 0 {
				t.Errorf("rank %d: %q stand while the end is known", i, names)
			}
			hosts[i].mu.Unlock()
			if again[i], err = hosts[i].Communicator(ctx, "job", members, Stripes(8)); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		})
		if t.Failed() {
			return
		}
		leave(t, again)
	}
}

// TestSocketOfATreeFails: also where the tree has no other member, who would take
// this one for dead.
func TestSocketOfATreeFails(t *testing.T) {
	eachKind(t, 3, func(t *testing.T, _ []*Host, comms []*Communicator) {
		tree := comms[1].multitree.others()[0]
		if err := tree.conn.Close(); err != nil {
			t.Fatal(err)
		}
		tree.offload.Store(true) // only on a tree of switches is the socket looked at
		tree.loop.Wake()
		each(3, func(i int) {
			v := make([]int64, long)
			_, err := Allreduce(within(t), comms[i], reduce.Sum, v, v)
			wantMember(t, err, 1, "")
			<-comms[i].Done()
		})
	})
}

func TestOneTreeWhereNoMoreArePlanned(t *testing.T) {
	fails := errors.New("the plan was eaten")
	for name, test := range map[string]struct {
		plan func(manager.Create) (rpc.GroupPlan, error)
		says string
	}{
		"refused": {func(manager.Create) (rpc.GroupPlan, error) {
			return rpc.GroupPlan{}, fmt.Errorf("%w: %w", manager.ErrRequest, fails)
		}, "eaten"},
		"fewer": {func(manager.Create) (rpc.GroupPlan, error) {
			return rpc.GroupPlan{Groups: make([]rpc.PlannedGroup, 1), Fewer: fails}, nil
		}, "1 of 3 stripes: the plan was eaten"},
		"none": {func(manager.Create) (rpc.GroupPlan, error) { return rpc.GroupPlan{}, nil }, "0 trees"},
		"more": {func(manager.Create) (rpc.GroupPlan, error) {
			return rpc.GroupPlan{Groups: make([]rpc.PlannedGroup, 4)}, nil
		}, "4 trees"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts, members := drafted(t, 3, test.plan)
			comms := form(t, "job", hosts, members, Stripes(3))
			for _, o := range sum(t, comms, long) {
				if o.Stripes != nil {
					t.Errorf("it ran as %+v", o)
				}
			}
			for _, c := range comms {
				if _, why := c.Transport(); !strings.Contains(why, test.says) || len(c.Stripes()) != 1 {
					t.Errorf("%d stripes because %q, want one since %q", len(c.Stripes()), why, test.says)
				}
			}
			leave(t, comms)
		})
	}
}

func TestOptionsOfSeveralTrees(t *testing.T) {
	hosts, members := drafted(t, 2, stripesPlanned)
	long := strings.Repeat("x", maxName)
	for says, options := range map[string][]GroupOption{
		"cannot be combined": {Stripes(2), Roots(2)},
		"65 trees":           {Stripes(65)},
		"-1 trees":           {Roots(-1)},
		"a name of 255":      {Stripes(2)},
	} {
		_, err := hosts[0].Communicator(t.Context(), long, members, options...)
		if !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", says, err)
		}
	}
	mustBeEqual(t, Stripes(2))
	mustBeEqual(t, Roots(2))
}

func TestMalformedPartitions(t *testing.T) {
	for _, planned := range [][][]int{
		{{0, 1}, {2}},        // without rank 3
		{{0, 1, 2}, {2, 3}},  // rank 2 twice
		{{0, 1}, {2, 4}},     // no such rank
		{{0, -1}, {2, 3}},    // nor that
		{{1, 2}, {0, 3}},     // not in order
		{{0, 1, 2, 3}, {}},   // an empty one
		{{0}, {1}, {2}, {3}}, // more than were wanted
	} {
		d := treePartition{count: 1, part: make([]int, 4)}
		p, _ := partsPlanned(planned...)(manager.Create{})
		if err := d.take(p, 3); !errors.Is(err, errPartition) {
			t.Errorf("%v was taken: %v", planned, err)
		}
		if d.count != 1 || slices.Max(d.part) != 0 {
			t.Errorf("after %v there are %d parts", planned, d.count)
		}
	}
}

func FuzzPartitionWords(f *testing.F) {
	t := groupOptions{roots: 3}
	valid := newPartitionWords(4, true)
	valid.put(treePartition{lowest: 7, count: 2, part: []int{0, 1, 0, 1}, why: "because"})
	f.Add([]byte(valid))
	f.Add(make([]byte, len(valid)))
	f.Fuzz(func(t1 *testing.T, b []byte) {
		w := newPartitionWords(4, true)
		copy(w, b)
		d, err := w.get(t, 4)
		if err != nil {
			return
		}
		again := newPartitionWords(4, true)
		again.put(d)
		other, err := again.get(t, 4)
		if err != nil || other.lowest != d.lowest || other.count != d.count || !slices.Equal(other.part, d.part) || other.why != d.why {
			t1.Errorf("%+v is %+v (%v) when it is reported", d, other, err)
		}
	})
}
