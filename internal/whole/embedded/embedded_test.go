package embedded_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// limit ends a test that would hang.
const limit = 60 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func start(ctx context.Context, t *testing.T, c embedded.Config) *embedded.Fabric {
	t.Helper()
	c.OfferWait = limit // for a first tree, where there is one
	f, err := embedded.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Errorf("closing the fabric: %v", err)
		}
	})
	return f
}

func parsed(t *testing.T, spec string) *topology.Graph {
	t.Helper()
	g, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func communicators(ctx context.Context, t *testing.T, f *embedded.Fabric, name string, hosts ...string) []*hostlib.Communicator {
	t.Helper()
	comms, err := f.Communicators(ctx, name, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return comms
}

// elements makes vectors of many windows.
const elements = 128 * 1024

// sum runs an allreduce of integers at all members, and checks it. Once every
// member but the last waits for results, meanwhile is called; only then does
// the last one begin.
func sum(ctx context.Context, t *testing.T, comms []*hostlib.Communicator, meanwhile func()) []hostlib.Outcome {
	t.Helper()
	vectors := make([][]int64, len(comms))
	for rank := range vectors {
		vectors[rank] = make([]int64, elements)
		for i := range vectors[rank] {
			vectors[rank][i] = int64(rank+1) * int64(i-7)
		}
	}
	requests := make([]*hostlib.Request, len(comms))
	sent := make([]uint64, len(comms))
	for rank, c := range comms {
		sent[rank] = c.Stats().Session.Sent
	}
	last := len(comms) - 1
	for rank, c := range comms[:last] {
		requests[rank] = hostlib.StartAllreduce(c, reduce.Sum, vectors[rank], vectors[rank])
	}
	for rank, c := range comms[:last] {
		until(ctx, t, func() bool { return c.Stats().Session.Sent > sent[rank] })
	}
	if meanwhile != nil {
		meanwhile()
	}
	requests[last] = hostlib.StartAllreduce(comms[last], reduce.Sum, vectors[last], vectors[last])
	outcomes := make([]hostlib.Outcome, len(comms))
	ranks := int64(len(comms) * (len(comms) + 1) / 2)
	for rank, r := range requests {
		var err error
		if outcomes[rank], err = r.Wait(ctx); err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
		for i, x := range vectors[rank] {
			if want := ranks * int64(i-7); x != want {
				t.Fatalf("rank %d, element %d: %d, want %d", rank, i, x, want)
			}
		}
	}
	return outcomes
}

// until waits for a condition.
func until(ctx context.Context, t *testing.T, holds func() bool) {
	t.Helper()
	for !holds() {
		if ctx.Err() != nil {
			t.Fatal(ctx.Err())
		}
		runtime.Gosched()
	}
}

func leave(ctx context.Context, t *testing.T, comms []*hostlib.Communicator) {
	t.Helper()
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Fatal(err)
	}
}

// wantTransport checks the way of every member, and that a reason is reported.
func wantTransport(t *testing.T, outcomes []hostlib.Outcome, want hostlib.Transport) {
	t.Helper()
	for rank, o := range outcomes {
		if o.Transport != want || o.Reason == "" {
			t.Errorf("rank %d ran by %v because %q, want %v and a reason", rank, o.Transport, o.Reason, want)
		}
	}
}

// has reports whether s has all of the parts.
func has(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

func TestReducesInTheSwitches(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "fat-tree:4")})
	comms := communicators(ctx, t, f, "all")
	before := embedded.TrafficOf(comms)
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
	for rank, after := range embedded.TrafficOf(comms) {
		d := after.Since(before[rank])
		if d.In < elements*8 || d.Out < elements*8 {
			t.Errorf("%s gave %d bytes and got %d, which is less than the vector", d.Host, d.Out, d.In)
		}
	}
	tree, err := f.ActiveTree(ctx, "all")
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Tree.Validate(f.Topology().View()); err != nil {
		t.Error(err)
	}
	if len(tree.Tree.Leaves) != 16 || tree.Epoch != comms[0].Stats().Epoch || tree.Reason == "" {
		t.Errorf("a tree of %d members in epoch %d because %q, want 16 in %d and a reason",
			len(tree.Tree.Leaves), tree.Epoch, tree.Reason, comms[0].Stats().Epoch)
	}
	leave(ctx, t, comms)
}

func TestWithoutAManager(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,1"), WithoutManager: true})
	comms := communicators(ctx, t, f, "all")
	outcomes := sum(ctx, t, comms, nil)
	wantTransport(t, outcomes, hostlib.HostTree)
	if !has(outcomes[0].Reason, "no offload manager") {
		t.Errorf("the reason is %q", outcomes[0].Reason)
	}
	if _, err := f.Explain(ctx, "all"); !errors.Is(err, embedded.ErrState) {
		t.Errorf("explaining: %v, want %v", err, embedded.ErrState)
	}
	leave(ctx, t, comms)
}

func TestHostsApartReduceAmongThemselves(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,1")})
	comms, err := f.CommunicatorsApart(ctx, "some", "h3", "h0", "h2")
	if err != nil {
		t.Fatal(err)
	}
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.HostTree)
	if rank := comms[0].Rank(); rank != 0 || comms[0].Members()[0].Host != "h3" {
		t.Errorf("h3 has rank %d among %v", rank, comms[0].Members())
	}
	leave(ctx, t, comms)
}

func TestNoSwitchCanReduce(t *testing.T) {
	ctx := within(t)
	g, err := topology.Equipment{Link: topology.DefaultLink()}.LeafSpine(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := start(ctx, t, embedded.Config{Topology: g})
	comms := communicators(ctx, t, f, "all")
	outcomes := sum(ctx, t, comms, nil)
	wantTransport(t, outcomes, hostlib.HostTree)
	for rank, o := range outcomes {
		if !has(o.Reason, "no tree") {
			t.Errorf("rank %d: the reason is %q", rank, o.Reason)
		}
	}
	if _, err := f.AwaitTree(ctx, "all", 0); !errors.Is(err, embedded.ErrNoTree) {
		t.Errorf("waiting for a tree: %v, want %v", err, embedded.ErrNoTree)
	}
	leave(ctx, t, comms)
}

func TestManagerDiesInMidOperation(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,2")})
	comms := communicators(ctx, t, f, "all")
	outcomes := sum(ctx, t, comms, func() {
		if err := f.KillManager(); err != nil {
			t.Error(err)
		}
	})
	wantTransport(t, outcomes, hostlib.Offload)
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
	leave(ctx, t, comms)
}

// killed returns what kills switches, and the manager, too, at once.
func killed(t *testing.T, f *embedded.Fabric, manager bool, switches ...string) func() {
	return func() {
		var kills []func() error
		for _, name := range switches {
			kills = append(kills, func() error { return f.KillSwitch(name) })
		}
		if manager {
			kills = append(kills, f.KillManager)
		}
		done := make(chan error)
		for _, kill := range kills {
			go func() { done <- kill() }()
		}
		for range kills {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

func TestLeafDiesInMidOperation(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,2")})
	comms := communicators(ctx, t, f, "all")
	wantTransport(t, sum(ctx, t, comms, killed(t, f, false, "leaf-1")), hostlib.HostTree) // its hosts have no other
	if _, err := f.AwaitTree(ctx, "all", comms[0].Stats().Epoch); !errors.Is(err, embedded.ErrNoTree) || !has(err.Error(), "leaf-1") {
		t.Errorf("waiting for a tree: %v, want %v that names leaf-1", err, embedded.ErrNoTree)
	}
	leave(ctx, t, comms)
}

func TestRootDiesInMidOperation(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,2")})
	comms := communicators(ctx, t, f, "all")
	first, err := f.AwaitTree(ctx, "all", 0)
	if err != nil {
		t.Fatal(err)
	}
	root := f.Topology().Name(first.Tree.Root())
	sum(ctx, t, comms, killed(t, f, false, root))
	second, err := f.AwaitTree(ctx, "all", first.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	if second.Tree.Root() == first.Tree.Root() {
		t.Errorf("the new tree has the dead root %s", root)
	}
	until(ctx, t, func() bool { return comms[0].Stats().Epoch == second.Epoch })
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
	leave(ctx, t, comms)
}

func TestRootAndManagerDieAtOnce(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,2")})
	comms := communicators(ctx, t, f, "all")
	tree, err := f.AwaitTree(ctx, "all", 0)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := sum(ctx, t, comms, killed(t, f, true, f.Topology().Name(tree.Tree.Root())))
	wantTransport(t, outcomes, hostlib.HostTree)
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.HostTree)
	leave(ctx, t, comms)
}

func TestRestartedSwitchServesNewGroups(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,1")})
	if err := f.KillSwitch("spine-0"); err != nil {
		t.Fatal(err)
	}
	comms := communicators(ctx, t, f, "without")
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.HostTree)
	leave(ctx, t, comms)
	if err := f.RestartSwitch(ctx, "spine-0"); err != nil {
		t.Fatal(err)
	}
	comms = communicators(ctx, t, f, "with")
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
	tree, err := f.ActiveTree(ctx, "with")
	if err != nil {
		t.Fatal(err)
	}
	if root := f.Topology().Name(tree.Tree.Root()); root != "spine-0" {
		t.Errorf("the root is %s, want spine-0", root)
	}
	leave(ctx, t, comms)
}

func TestParallelLinksAreReported(t *testing.T) {
	ctx := within(t)
	g, err := topology.DefaultEquipment().FourSwitches(1)
	if err != nil {
		t.Fatal(err)
	}
	f := start(ctx, t, embedded.Config{Topology: g})
	comms := communicators(ctx, t, f, "all")
	tree, err := f.AwaitTree(ctx, "all", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Tree.Validate(g.View()); err != nil {
		t.Error(err)
	}
	leave(ctx, t, comms)
}

func TestWhatCannotBe(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,1,0")})
	apart := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,1,0"), WithoutManager: true})
	done, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"no topology":           {second(embedded.Start(ctx, embedded.Config{})), embedded.ErrConfig},
		"negative wait":         {second(embedded.Start(ctx, embedded.Config{Topology: f.Topology(), OfferWait: -1})), embedded.ErrConfig},
		"cancelled start":       {second(embedded.Start(done, embedded.Config{Topology: f.Topology()})), context.Canceled},
		"unknown host":          {second(f.Communicators(ctx, "x", "h0", "h9")), embedded.ErrUnknown},
		"a switch as a host":    {second(f.Communicators(ctx, "x", "h0", "leaf-0")), embedded.ErrUnknown},
		"duplicate member":      {second(f.Communicators(ctx, "x", "h0", "h0")), hostlib.ErrMembers},
		"unknown switch":        {f.KillSwitch("leaf-9"), embedded.ErrUnknown},
		"restart of one alive":  {f.RestartSwitch(ctx, "leaf-0"), embedded.ErrState},
		"no switch to kill":     {apart.KillSwitch("leaf-0"), embedded.ErrState},
		"no manager to kill":    {apart.KillManager(), embedded.ErrState},
		"unknown group":         {second(f.Explain(ctx, "nobody")), embedded.ErrUnknown},
		"tree of unknown group": {second(f.ActiveTree(ctx, "nobody")), embedded.ErrUnknown},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if err := errors.Join(f.KillSwitch("leaf-0"), f.KillManager()); err != nil {
		t.Fatal(err)
	}
	if err := f.KillSwitch("leaf-0"); !errors.Is(err, embedded.ErrState) {
		t.Errorf("killing it twice: %v, want %v", err, embedded.ErrState)
	}
	if err := f.RestartSwitch(ctx, "leaf-0"); err != nil {
		t.Errorf("restarting it without a manager: %v", err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Errorf("closing it twice: %v", err)
	}
	if _, err := f.CommunicatorsApart(ctx, "late"); !errors.Is(err, embedded.ErrClosed) {
		t.Errorf("communicators of a closed fabric: %v, want %v", err, embedded.ErrClosed)
	}
}

func second[T any](_ T, err error) error { return err }
