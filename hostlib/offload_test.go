package hostlib

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

func TestOffload(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	comms := form(t, "job", hosts, members, OnTree())
	offloaded(t, comms, 0)
	before := comms[0].Stats()
	outcomes := sum(t, comms, 20_000)
	wantTransport(t, outcomes, Offload)
	for i := range outcomes {
		if by := outcomes[i].Reducers(); len(by) != 1 || by[0].By != topology.Software || by[0].Switches != len(by[0].Names) || by[0].Switches == 0 {
			t.Errorf("rank %d: reduced by %+v", i, by)
		}
	}
	ctx, n := within(t), len(comms)
	each(n, func(i int) {
		for root := range n {
			in, out := []int32{int32(i), 1}, make([]int32, 2)
			outcome, err := Reduce(ctx, comms[i], reduce.Max, root, in, out)
			if err != nil || outcome.Transport != Offload || i == root && (out[0] != int32(n-1) || out[1] != 1) {
				t.Errorf("reduce to %d: rank %d has %v by %v, %v", root, i, out, outcome.Transport, err)
			}
			v := []uint64{uint64(i) << 40}
			outcome, err = Broadcast(ctx, comms[i], root, v)
			if err != nil || outcome.Transport != Offload || v[0] != uint64(root)<<40 {
				t.Errorf("broadcast from %d: rank %d has %v by %v, %v", root, i, v, outcome.Transport, err)
			}
		}
		least := []reduce.Located[float64]{{Value: float64((i + 2) % n), Location: int64(i)}}
		outcome, err := AllreduceLocated(ctx, comms[i], reduce.MinLoc, least, least)
		if err != nil || outcome.Transport != Offload || least[0].Value != 0 || least[0].Location != 2 {
			t.Errorf("minloc: rank %d has %v by %v, %v", i, least, outcome.Transport, err)
		}
		most := []reduce.Located[int32]{{Value: int32(i), Location: int64(-i)}}
		outcome, err = StartReduceLocated(comms[i], reduce.MaxLoc, 1, most, most).Wait(ctx)
		if err != nil || outcome.Transport != Offload || i == 1 && most[0] != (reduce.Located[int32]{Value: int32(n - 1), Location: int64(1 - n)}) {
			t.Errorf("maxloc: rank %d has %v by %v, %v", i, most, outcome.Transport, err)
		}
		if outcome, err := Barrier(ctx, comms[i]); err != nil || outcome.Transport != Offload || outcome.Epochs[0]%2 != 0 {
			t.Errorf("barrier: rank %d: %+v, %v", i, outcome, err)
		}
	})
	after := comms[0].Stats()
	if payload := uint64(20_000 * 8); after.Data.BytesOut-before.Data.BytesOut < payload || after.Epoch%2 != 0 {
		t.Errorf("stats before %+v, after %+v", before, after)
	}
	if f.held() == 0 {
		t.Error("no switch has reserved a slot")
	}
	leave(t, comms)
	until(ctx, t, "the group's slots are free", func() bool { return f.held() == 0 })
	if end := comms[0].Stats(); end.Session.Results < after.Session.Results || end.Epoch < after.Epoch || end.Epoch%2 != 0 { // a window that grows is a later epoch
		t.Errorf("stats at the end %+v, before it %+v", end, after)
	}
}

func TestDatagramsAreLostDoubledAndReordered(t *testing.T) {
	faults := transport.Faults{Loss: 0.02, Duplicate: 0.02, Reorder: 0.05, Seed: 1}
	f := newFabric(t, 2, func(c *agentd.Config) {
		c.Faults = faults
		faults.Seed += 1000
	})
	var mu sync.Mutex
	var faulty []*transport.Faulty
	hosts, members := f.hooked(hooks.Hooks{
		Data: func(c transport.Conn) transport.Conn {
			mu.Lock()
			defer mu.Unlock()
			faults.Seed++
			conn, err := transport.WithFaults(c, faults)
			if err != nil {
				t.Error(err)
			}
			faulty = append(faulty, conn)
			return conn
		},
	})
	comms := form(t, "job", hosts, members)
	offloaded(t, comms, 0)
	for range 3 {
		wantTransport(t, sum(t, comms, 40_000), Offload)
	}
	leave(t, comms)
	for _, c := range faulty {
		if n := c.Faults(); n.Lost == 0 || n.Duplicated == 0 || n.Reordered == 0 {
			t.Errorf("too little went wrong: %+v", n)
		}
	}
}

func TestManagerComesLate(t *testing.T) {
	f := newFabric(t, 2, nil)
	f.manager.Kill()
	hosts, members := f.join()
	comms := form(t, "job", hosts, members)
	wantTransport(t, sum(t, comms, 1000), HostTree, f.front.addr())
	f.startManager()
	offloaded(t, comms, 0)
	wantTransport(t, sum(t, comms, 1000), Offload)
	leave(t, comms)
}

func TestManagerLosesItsMemory(t *testing.T) {
	other := manager.Create{Name: "other", ChunkBytes: 1432, Window: 64}
	for name, others := range map[string][]manager.Create{"same number": nil, "number of another group": {other}} {
		t.Run(name, func(t *testing.T) { managerLosesItsMemory(t, others) })
	}
}

func managerLosesItsMemory(t *testing.T, others []manager.Create) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	for i := range others {
		for _, m := range members {
			others[i].Members = append(others[i].Members, m.Host)
		}
	}
	comms := form(t, "job", hosts, members)
	offloaded(t, comms, 0)
	epoch := comms[0].Stats().Epoch
	f.manager.Kill()
	wantTransport(t, sum(t, comms, 1000), Offload) // it is not needed
	f.startManager(others...)
	ctx := within(t)
	until(ctx, t, "the group is made again", func() bool {
		groups, err := f.client.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(groups, func(g manager.Summary) bool { return strings.HasPrefix(g.Name, "job/") })
		return i >= 0 && groups[i].Watching == len(comms)
	})
	sum(t, comms, 10_000)
	offloaded(t, comms, epoch)
	wantTransport(t, sum(t, comms, 1000), Offload)
	leave(t, comms)
	until(ctx, t, "the group alone is released", func() bool {
		groups, err := f.client.Groups(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(groups) == len(others) && (len(groups) == 0 || groups[0].Name == "other" && groups[0].State != manager.Releasing)
	})
}

func TestRootDiesInMidOperation(t *testing.T) {
	for spines := 1; spines <= 2; spines++ {
		t.Run(fmt.Sprintf("spines=%d", spines), func(t *testing.T) {
			var all [][]int64
			f, comms, outcomes, root := rootDies(t, spines, func(comms []*Communicator) (requests []*Request) {
				all = vectors(len(comms), 100_000)
				for i, c := range comms {
					requests = append(requests, StartAllreduce(c, reduce.Sum, all[i], all[i]))
				}
				return requests
			})
			for i, o := range outcomes {
				checkSum(t, len(comms), i, all[i])
				if o.Epochs[0]%2 != 0 || !strings.Contains(o.Reason, "switch") {
					t.Errorf("rank %d ran by %v in epochs %v because %q", i, o.Transport, o.Epochs, o.Reason)
				}
			}
			if spines == 1 {
				wantTransport(t, outcomes, Mixed)
				wantTransport(t, sum(t, comms, 1000), HostTree)
			} else {
				offloaded(t, comms, outcomes[0].Epochs[0])
				wantTransport(t, sum(t, comms, 1000), Offload)
				if f.root(comms[0]) == root {
					t.Errorf("the root is %s again", root)
				}
			}
			leave(t, comms)
		})
	}
}

func TestNoSwitchCanReduce(t *testing.T) {
	f := newFabric(t, 2, func(c *agentd.Config) { c.Capability = topology.Capability{} })
	hosts, members := f.join()
	comms := form(t, "job", hosts, members)
	wantTransport(t, sum(t, comms, 1000), HostTree, "no tree of switches", "leaf-")
	if via, why := comms[0].Transport(); via != HostTree || !strings.Contains(why, "leaf-") {
		t.Errorf("it would go by %v because %q", via, why)
	}
	leave(t, comms)
}

// fromLater is a Conn whose packets are of the data plane's next version.
type fromLater struct{ transport.Conn }

func (l fromLater) WriteBatch(messages []transport.Message) error {
	for i := range messages {
		head := slices.Clone(messages[i].Head)
		for at := 0; at < len(head); at += wire.HeaderSize { // of a run
			head[at] = 2<<4 | head[at]&0xf
		}
		messages[i].Head = head
	}
	return l.Conn.WriteBatch(messages)
}

// Switches drop, and count, packets of another version; the group goes over to
// its hosts, and says which switch does not answer.
func TestDataPlaneOfAnotherVersion(t *testing.T) {
	f := newFabric(t, 1, nil)
	hosts, members := f.join()
	hosts[3].hooks.Data = func(c transport.Conn) transport.Conn { return fromLater{c} }
	comms := form(t, "job", hosts, members)
	offloaded(t, comms, 0)
	var counted sync.WaitGroup
	counted.Go(func() {
		ctx := within(t)
		until(ctx, t, "leaf-1 has counted packets of another version", func() bool {
			counters, err := f.agents["leaf-1"].Counters(ctx)
			return err == nil && len(counters.Trees) == 1 && counters.Trees[0].Drops["fault-version"] > 0
		})
	})
	for rank, o := range sum(t, comms, 1000) {
		// The member itself says so, unless the manager was faster.
		if o.Transport == Offload || !strings.Contains(o.Reason, "does not answer (") {
			t.Errorf("rank %d ran by %v because %q", rank, o.Transport, o.Reason)
		}
	}
	counted.Wait()
}

// A host may leave its address to the topology; where that does not report it
// either, the reason names host and link.
func TestAddressThatNobodyReports(t *testing.T) {
	f := newFabric(t, 1, nil)
	hosts, members := f.join(func(c *Config) { c.Data = netip.IPv4Unspecified() })
	comms := form(t, "job", hosts, members)
	wantTransport(t, sum(t, comms, 1000), HostTree, "address (h0 on link h0:1--leaf-0:1: ")
	leave(t, comms)
}

func TestOptionsLetWeakerSwitchesServe(t *testing.T) {
	f := newFabric(t, 2, func(c *agentd.Config) {
		c.Capability.Functions = topology.FunctionsOf(reduce.Sum, reduce.Max)
		c.Capability.Types = topology.TypesOf(reduce.Int64)
	})
	hosts, members := f.join()
	all := form(t, "all", hosts, members)
	wantTransport(t, sum(t, all, 10), HostTree, "no tree of switches")
	leave(t, all)

	some := form(t, "some", hosts, members, OnlyFunctions(reduce.Sum), OnlyTypes(reduce.Int64))
	offloaded(t, some, 0)
	wantTransport(t, sum(t, some, 10), Offload)
	for name, r := range map[string]*Request{
		"max":     StartAllreduce(some[0], reduce.Max, []int64{1}, []int64{1}),
		"float32": StartAllreduce(some[0], reduce.Sum, []float32{1}, []float32{1}),
	} {
		if _, err := r.Wait(within(t)); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want that it is not among the options", name, err)
		}
	}
	wantTransport(t, sum(t, some, 10), Offload)
	leave(t, some)
}

func TestOptionsMustBeEqual(t *testing.T) {
	for name, term := range map[string]GroupOption{
		"functions": OnlyFunctions(reduce.Sum), "block float": BlockFloat(), "what is expected": Expect(pathsel.Allreduce, 4096), "criterion": ChooseBy(pathsel.LeastLoad),
	} {
		t.Run(name, func(t *testing.T) { mustBeEqual(t, term) })
	}
}

// mustBeEqual has one of two members alone name an option.
func mustBeEqual(t *testing.T, term GroupOption) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	ctx := within(t)
	each(2, func(i int) {
		var options []GroupOption
		if i == 1 {
			options = append(options, term)
		}
		_, err := hosts[i].Communicator(ctx, "test", members, options...)
		if i == 1 {
			if !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "other members or settings") {
				t.Errorf("got %v, want a refusal", err)
			}
			_ = hosts[0].Close(context.Background()) // it waits for the other
		} else if !errors.Is(err, ErrFormation) || !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want that its host was closed", err)
		}
	})
}

// Groups that share hosts run at once, each on its own tree.
func TestCommunicatorsOverlap(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	ranks := [][]int{{0, 1, 2, 3}, {3, 0}, {1, 2, 0}, {0, 1, 2, 3}, {2, 1}}
	var wg sync.WaitGroup
	for k, in := range ranks {
		wg.Go(func() {
			h, m := make([]*Host, len(in)), make([]Member, len(in))
			for i, host := range in {
				h[i], m[i] = hosts[host], members[host]
			}
			comms := form(t, fmt.Sprintf("group-%d", k), h, m)
			offloaded(t, comms, 0)
			for range 5 {
				wantTransport(t, sum(t, comms, 10_000), Offload)
			}
			leave(t, comms)
		})
	}
	wg.Wait()
}

func TestManyOperationsInFlight(t *testing.T) {
	const operations = 200
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	comms := form(t, "job", hosts, members)
	ctx, n := within(t), len(comms)
	each(n, func(i int) {
		v, requests := make([][]int64, operations), make([]*Request, operations)
		for k := range requests {
			v[k] = vectors(n, 13*k)[i]
			switch k % 4 {
			case 0:
				requests[k] = StartBroadcast(comms[i], k%n, v[k])
			case 1:
				requests[k] = StartBarrier(comms[i])
			default:
				requests[k] = StartAllreduce(comms[i], reduce.Sum, v[k], v[k])
			}
		}
		for k, r := range requests {
			if _, err := r.Wait(ctx); err != nil {
				t.Errorf("rank %d, operation %d: %v", i, k, err)
				return
			}
			if k%4 >= 2 {
				checkSum(t, n, i, v[k])
			} else if k%4 == 0 && k > 0 && v[k][0] != -7*int64(k%n+1) {
				t.Errorf("rank %d, operation %d: %d", i, k, v[k][0])
			}
		}
	})
	leave(t, comms)
}

// TestOperationsAllocateNothing: none that its caller waits for does, at no
// member.
func TestOperationsAllocateNothing(t *testing.T) {
	kept := sync.Pool{New: func() any { return new(int) }}
	for range 100 {
		one := kept.Get()
		if kept.Put(one); kept.Get() != one {
			t.Skip("pools do not keep what they are given, under the race detector")
		}
		kept.Put(one)
	}
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	runtime.MemProfileRate = 1
	t.Run("offload", func(t *testing.T) {
		f := newFabric(t, 2, nil)
		hosts, members := f.join()
		comms := form(t, "job", hosts, members)
		offloaded(t, comms, 0)
		allocateNothing(t, comms)
	})
	t.Run("host tree", func(t *testing.T) {
		hosts, members := joinAll(t, hooks.Hooks{}, []string{"h0", "h1", "h2", "h3"})
		allocateNothing(t, form(t, "job", hosts, members, OnTree()))
	})
}

// allocateNothing has members run operations, and leave.
func allocateNothing(t *testing.T, comms []*Communicator) {
	t.Helper()
	beneath := []string{"hostlib.Allreduce", "hostlib.Barrier", "peer.(*Conn).run"}
	const runs = 100
	ctx, n := within(t), len(comms)
	in, out := vectors(n, 1000), vectors(n, 1000)
	operations := func() {
		each(n, func(i int) {
			for range runs {
				if _, err := Allreduce(ctx, comms[i], reduce.Sum, in[i], out[i]); err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
				if _, err := Barrier(ctx, comms[i]); err != nil {
					t.Errorf("rank %d: %v", i, err)
				}
			}
		})
	}
	operations() // until every place of the windows has been used
	before := allocatedBeneath(beneath...)
	operations()
	// Some are made when the collector has emptied a pool, or the loop's own
	// goroutine has to be asked for its turn: fewer than one an allreduce.
	if made := allocatedBeneath(beneath...) - before; made >= int64(n*runs) {
		t.Errorf("%d allocations in %d operations", made, 2*n*runs)
	}
	if before == 0 {
		t.Error("the first operations have allocated nothing either: the profile does not see them")
	}
	for i := range comms {
		checkSum(t, n, i, out[i])
	}
	leave(t, comms)
}

// allocatedBeneath returns how many objects have been allocated by calls of
// functions whose names end so, but for their type parameters.
func allocatedBeneath(names ...string) (objects int64) {
	runtime.GC() // which completes the profile
	runtime.GC()
	records := make([]runtime.MemProfileRecord, 10_000)
	n, ok := runtime.MemProfile(records, true)
	for !ok {
		records = make([]runtime.MemProfileRecord, 2*n)
		n, ok = runtime.MemProfile(records, true)
	}
next:
	for i := range records[:n] {
		frames := runtime.CallersFrames(records[i].Stack())
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			name, _, _ := strings.Cut(f.Function, "[")
			if slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(name, s) }) {
				objects += records[i].AllocObjects
				continue next
			}
		}
	}
	return objects
}

// A member may be done with leaving, and form the next group, before another
// one has heard that the last barrier is done.
func TestSameNameAgainAndAgain(t *testing.T) {
	faults := transport.Faults{Loss: 0.1}
	f := newFabric(t, 2, func(c *agentd.Config) {
		c.Faults = faults
		faults.Seed += 1000
	})
	hosts, members := f.join()
	ctx := within(t)
	each(len(hosts), func(i int) {
		for range 5 {
			c, err := hosts[i].Communicator(ctx, "job", members)
			if err != nil {
				t.Errorf("rank %d: %v", i, err)
				return
			}
			if _, err := Barrier(ctx, c); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
			if err := c.Leave(ctx); err != nil {
				t.Errorf("rank %d: %v", i, err)
			}
		}
	})
	until(ctx, t, "all slots are free", func() bool { return f.held() == 0 })
}

// The manager's groups are those of one forming each.
func TestGroupsOfTheManager(t *testing.T) {
	f := newFabric(t, 2, nil)
	hosts, members := f.join()
	name := strings.Repeat("ä", 126) + "\xff" // long, and no valid text
	comms := form(t, name, hosts, members)
	offloaded(t, comms, 0)
	groups, err := f.client.Groups(within(t))
	if err != nil || len(groups) != 1 || groups[0].Members != len(comms) {
		t.Fatalf("groups %+v, %v", groups, err)
	}
	e, err := f.client.Explain(within(t), rpc.GroupRef{Group: groups[0].Group})
	if err != nil || e.State != manager.Active {
		t.Errorf("%+v, %v", e, err)
	}
	leave(t, comms)
}
