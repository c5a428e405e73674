package embedded_test

import (
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/conformance"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
)

// pieces are the collectives of pieces that a tree carries.
var pieces = []string{"gather", "scatter", "allgather", "allgatherv", "alltoall", "reduce-scatter", "reduce-scatterv"}

// conform runs the suite of collectives of pieces, and returns what each member has counted.
func conform(t *testing.T, comms []*hostlib.Communicator, cfg conformance.Config) []conformance.Result {
	t.Helper()
	ctx := within(t)
	results := make([]conformance.Result, len(comms))
	var g sync.WaitGroup
	for rank, c := range comms {
		mine := cfg
		if rank > 0 {
			mine.OnCase = nil
		}
		g.Go(func() {
			var err error
			if results[rank], err = conformance.Run(ctx, c, mine); err != nil {
				t.Error(err)
				c.Abort("it has failed")
			}
		})
	}
	g.Wait()
	return results
}

// TestPiecesInTheSwitches: the conformance suite of the collectives of pieces passes in switches,
// also while these die and come back.
func TestPiecesInTheSwitches(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,3,1")})
	cfg := conformance.Config{
		Collectives: pieces, Counts: []int{0, 1, 13, 3000}, Roots: []int{0, 4},
		Functions: []reduce.Function{reduce.Sum, reduce.BXor}, Types: []reduce.Type{reduce.Int32, reduce.Float64},
	}
	comms, err := f.Communicators(ctx, "all")
	if err != nil {
		t.Fatal(err)
	}
	for rank, r := range conform(t, comms, cfg) {
		if r.Transports[hostlib.Offload] < r.Cases/2 || r.Transports[hostlib.HostTree]+r.Transports[hostlib.Mixed] > 0 {
			t.Errorf("rank %d: %+v", rank, r)
		}
	}
	cases := 0
	cfg.OnCase = func(conformance.Case) {
		cases++
		var err error
		switch cases % 20 {
		case 5:
			err = f.KillSwitch("spine-0")
		case 15:
			err = f.RestartSwitch(ctx, "spine-0")
		}
		if err != nil {
			t.Error(err)
		}
	}
	for rank, r := range conform(t, comms, cfg) {
		if r.Transports[hostlib.HostTree] == 0 {
			t.Errorf("rank %d has never fallen back: %+v", rank, r)
		}
	}
	leave(ctx, t, comms)
}

// formOnTree makes a communicator of all hosts whose operations run over its tree.
func formOnTree(t *testing.T, f *embedded.Fabric) []*hostlib.Communicator {
	t.Helper()
	ctx, hosts := within(t), f.Hosts()
	members := make([]hostlib.Member, len(hosts))
	for i, h := range hosts {
		members[i] = h.Member()
	}
	comms := make([]*hostlib.Communicator, len(hosts))
	var g sync.WaitGroup
	for i, h := range hosts {
		g.Go(func() {
			var err error
			if comms[i], err = h.Communicator(ctx, "on the tree", members, hostlib.OnTree()); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return comms
}

// TestPiecesFallBack: the tree dies when all members but the last have contributed. The others
// finish over the tree of hosts.
func TestPiecesFallBack(t *testing.T) {
	const n, root, count = 4, 1, 20_000
	type calls func(c *hostlib.Communicator, all, own, whole []int32) *hostlib.Request
	for what, begin := range map[string]calls{
		"allgather": func(c *hostlib.Communicator, _, own, whole []int32) *hostlib.Request {
			return hostlib.StartAllgather(c, own, whole)
		},
		"gather": func(c *hostlib.Communicator, _, own, whole []int32) *hostlib.Request {
			return hostlib.StartGather(c, root, own, whole)
		},
		"scatter": func(c *hostlib.Communicator, all, own, _ []int32) *hostlib.Request {
			return hostlib.StartScatter(c, root, all, own)
		},
		"reduce-scatter": func(c *hostlib.Communicator, all, own, _ []int32) *hostlib.Request {
			return hostlib.StartReduceScatter(c, reduce.Sum, all, own)
		},
	} {
		t.Run(what, func(t *testing.T) {
			ctx := within(t)
			f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,1")})
			comms := formOnTree(t, f)
			all, own, whole := make([][]int32, n), make([][]int32, n), make([][]int32, n)
			for rank := range n {
				all[rank], own[rank], whole[rank] = make([]int32, n*count), make([]int32, count), make([]int32, n*count)
				for i := range all[rank] {
					all[rank][i] = int32(i * (rank + 1))
				}
				for i := range own[rank] {
					own[rank][i] = int32(rank*count + i)
				}
			}
			sent := make([]uint64, n)
			requests := make([]*hostlib.Request, n)
			for rank, c := range comms {
				sent[rank] = c.Stats().Session.Sent
				if rank == n-1 {
					break
				}
				requests[rank] = begin(c, all[rank], own[rank], whole[rank])
			}
			for rank, c := range comms[:n-1] {
				until(ctx, t, func() bool { return c.Stats().Session.Sent > sent[rank] })
			}
			if err := f.KillSwitch("spine-0"); err != nil {
				t.Fatal(err)
			}
			requests[n-1] = begin(comms[n-1], all[n-1], own[n-1], whole[n-1])
			for rank, r := range requests {
				o, err := r.Wait(ctx)
				if err != nil || o.Transport != hostlib.HostTree || rank < n-1 && len(o.Epochs) < 2 { // the last may begin after the change
					t.Errorf("rank %d: %+v, %v", rank, o, err)
				}
				if (what == "allgather" || what == "gather" && rank == root) && !isCounting(whole[rank]) {
					t.Fatalf("rank %d: elements are wrong", rank)
				}
				factor := map[string]int{"scatter": root + 1, "reduce-scatter": n * (n + 1) / 2}[what]
				for i := range count {
					if at := rank*count + i; factor != 0 && own[rank][i] != int32(at*factor) {
						t.Fatalf("rank %d: element %d is wrong", rank, i)
					}
				}
			}
			leave(ctx, t, comms)
		})
	}
}

// isCounting reports whether each element is its index.
func isCounting(v []int32) bool {
	for i, x := range v {
		if x != int32(i) {
			return false
		}
	}
	return true
}
