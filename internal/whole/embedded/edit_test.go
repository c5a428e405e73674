package embedded_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// work is allreduces that run all the time, one after the other at all members.
type work struct {
	mu      sync.Mutex
	begun   int  // operations that some member has begun
	over    bool // none is begun any more
	offload int  // operations that ran over switches, as rank 0 says
	hosts   int  // over hosts
	wrong   error
	done    sync.WaitGroup
}

// begin reports whether operation i is begun, at all members or at none.
func (w *work) begin(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over && i >= w.begun {
		return false
	}
	w.begun = max(w.begun, i+1)
	return true
}

func (w *work) ended(rank int, o hostlib.Outcome, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && w.wrong == nil:
		w.wrong = fmt.Errorf("rank %d: %w", rank, err)
	case rank > 0 || err != nil:
	case o.Transport == hostlib.Offload:
		w.offload++
	default:
		w.hosts++
	}
}

// start has all members reduce, each operation other numbers, and checks the sums.
func (w *work) start(ctx context.Context, comms []*hostlib.Communicator) {
	const elements = 1000
	for rank, c := range comms {
		w.done.Go(func() {
			vector := make([]int64, elements)
			for i := 0; w.begin(i); i++ {
				for k := range vector {
					vector[k] = int64((rank + 1) * (i + k))
				}
				o, err := hostlib.Allreduce(ctx, c, reduce.Sum, vector, vector)
				for k, x := range vector {
					if want := int64(len(comms) * (len(comms) + 1) / 2 * (i + k)); err == nil && x != want {
						err = fmt.Errorf("operation %d, element %d: %d, want %d", i, k, x, want)
					}
				}
				if w.ended(rank, o, err); err != nil {
					return
				}
			}
		})
	}
}

func (w *work) stop() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.done.Wait()
}

func (w *work) counts() (offload int, wrong error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.offload, w.wrong
}

// TestFabricIsEditedUnderWay changes the topology of a fabric in which an allreduce runs
// all the time, and restarts the manager in between: all results are right, the tree goes
// along, and the explanation says why.
func TestFabricIsEditedUnderWay(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{
		Topology: parsed(t, "leaf-spine:2,3,1"), Store: new(managerd.Memory), Core: manager.Config{MaxHistory: 200, NoHosts: true},
	})
	comms := communicators(ctx, t, f, "job")
	var w work
	w.start(ctx, comms)
	defer w.stop()

	agent := func(name string) string {
		a, err := agentd.Start(agentd.Config{Switch: name, Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a.Addr()
	}
	edit := func(patch string) {
		t.Helper()
		if d, err := f.Manager().EditTopology(ctx, rpc.TopologyFile{Name: "patch", Content: []byte(patch)}); err != nil || len(d.What) == 0 {
			t.Fatalf("%s: %+v, %v", patch, d, err)
		}
	}
	epoch := uint32(0)
	// runs waits for a tree of a later epoch on which operations run, and returns its
	// switches.
	runs := func(because string) (switches []string) {
		t.Helper()
		until(ctx, t, func() bool {
			e, err := f.Explain(ctx, "job")
			if err != nil {
				return false // the manager begins anew
			}
			tree, err := embedded.Active(&e)
			if err != nil || tree.Epoch <= epoch || comms[0].Stats().Epoch != tree.Epoch {
				return false
			}
			if because != "" && !slices.ContainsFunc(e.History, func(c rpc.Change) bool { return strings.Contains(c.What, because) }) {
				t.Fatalf("nothing says %q: %v", because, e.History)
			}
			epoch, switches = tree.Epoch, nil
			for _, s := range tree.Switches {
				switches = append(switches, s.Switch)
			}
			return true
		})
		before, _ := w.counts()
		until(ctx, t, func() bool {
			offload, wrong := w.counts()
			if wrong != nil {
				t.Fatal(wrong)
			}
			return offload > before+2
		})
		return switches
	}
	connected := func(names ...string) {
		t.Helper()
		until(ctx, t, func() bool {
			fabric, err := f.Manager().Topology(ctx)
			missing := 0
			for _, n := range fabric.Nodes {
				if n.Switch != nil && slices.Contains(names, n.Name) && n.Switch.Connected {
					missing++
				}
			}
			return err == nil && missing == len(names)
		})
	}
	runs("")

	// A spine comes, and the one before goes.
	edit(fmt.Sprintf("switches: [{name: spine-1}]\nagents: {spine-1: %q}\nlinks:\n"+
		"- {between: [leaf-0, spine-1], ports: [4, 1]}\n- {between: [leaf-1, spine-1], ports: [4, 2]}\n- {between: [leaf-2, spine-1], ports: [4, 3]}\n", agent("spine-1")))
	connected("spine-1")
	edit("remove: {switches: [spine-0]}")
	if on := runs("switch spine-0: it is not in the fabric any more: an operator has edited the topology"); !slices.Contains(on, "spine-1") || slices.Contains(on, "spine-0") {
		t.Errorf("the tree is on %v", on)
	}

	// A host moves to another leaf, so that its old one has one member.
	edit("remove: {links: [\"h0:1\"]}\nlinks: [{between: [h0, leaf-1], ports: [1, 9]}]")
	runs("link h0:1--leaf-0:1: it is not in the fabric any more")

	// The manager dies, and goes on where it was.
	if err := f.KillManager(); err != nil {
		t.Fatal(err)
	}
	if err := f.RestartManager(); err != nil {
		t.Fatal(err)
	}
	connected("leaf-0", "leaf-1", "leaf-2", "spine-1")
	if o := f.Manager().Operator(); o.Version != 3 {
		t.Errorf("the restarted manager has version %d", o.Version)
	}

	// A cable goes into another port.
	edit("remove: {links: [\"leaf-2:4\"]}\nlinks: [{between: [leaf-2, spine-1], ports: [5, 3]}]")
	runs("link leaf-2:4--spine-1:3: it is not in the fabric any more")

	// A switch gets another name, as its agent has.
	edit(fmt.Sprintf("rename: {leaf-2: edge}\nagents: {edge: %q}", agent("edge")))
	if on := runs("switch leaf-2: it is not in the fabric any more"); !slices.Contains(on, "edge") || slices.Contains(on, "leaf-2") {
		t.Errorf("the tree is on %v", on)
	}
	w.stop()
	if w.wrong != nil {
		t.Error(w.wrong)
	}
	t.Logf("%d operations over switches, %d over hosts", w.offload, w.hosts)
	history, err := f.Manager().TopologyHistory(ctx)
	// Three changes, the restart, and two more.
	if err != nil || len(history) != 6 || !slices.Contains(history[4].What, "link spine-1:3 moved from leaf-2:4 to leaf-2:5") {
		t.Errorf("history %+v, %v", history, err)
	}
	leave(ctx, t, comms)
}
