package embedded_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// trunks returns the links between switches of a communicator's tree.
func trunks(ctx context.Context, t *testing.T, f *embedded.Fabric, name string) (links []topology.LinkID) {
	t.Helper()
	tree, err := f.AwaitTree(ctx, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range tree.Tree.Vertices {
		if v.Up != topology.NoLink {
			links = append(links, v.Up)
		}
	}
	return links
}

// root returns the switch at the root of a communicator's tree.
func root(ctx context.Context, t *testing.T, f *embedded.Fabric, name string) string {
	t.Helper()
	tree, err := f.AwaitTree(ctx, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f.Topology().Name(tree.Tree.Root())
}

// onSwitches waits until all stripes and parts of the members are.
func onSwitches(ctx context.Context, t *testing.T, comms []*hostlib.Communicator) {
	t.Helper()
	for _, c := range comms {
		until(ctx, t, func() bool {
			transport, _ := c.Transport()
			return transport == hostlib.Offload
		})
	}
}

// striped starts a fabric of two leaves and two spines, and a communicator with a
// stripe over each of these.
func striped(ctx context.Context, t *testing.T) (*embedded.Fabric, []*hostlib.Communicator) {
	t.Helper()
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:2,2,2"), Options: []hostlib.GroupOption{hostlib.Stripes(2)}})
	comms := communicators(ctx, t, f, "job")
	onSwitches(ctx, t, comms)
	return f, comms
}

func TestStripesTakeLinksOfTheirOwn(t *testing.T) {
	ctx := within(t)
	f, comms := striped(ctx, t)
	first, second := trunks(ctx, t, f, "job"), trunks(ctx, t, f, "job/stripe-1")
	for _, l := range first {
		if slices.Contains(second, l) {
			t.Errorf("both stripes use link %d", l)
		}
	}
	if len(first) != 2 || len(second) != 2 {
		t.Errorf("the stripes use %v and %v between switches", first, second)
	}
	before := comms[0].Stripes()
	for rank, o := range sum(ctx, t, comms, nil) {
		if o.Transport != hostlib.Offload || len(o.Stripes) != 2 || o.Chunks != o.Stripes[0].Chunks+o.Stripes[1].Chunks {
			t.Errorf("rank %d: %+v", rank, o)
		}
	}
	for i, l := range comms[0].Stripes() {
		if out := l.Stats.Data.BytesOut - before[i].Stats.Data.BytesOut; out < elements*8/2 || out > elements*8*3/5 {
			t.Errorf("stripe %d has carried %d bytes of %d", i, out, elements*8)
		}
	}
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Error(err)
	}
}

func TestSpineOfAStripeDies(t *testing.T) {
	for _, stripe := range []string{"job", "job/stripe-1"} {
		t.Run(strings.ReplaceAll(stripe, "/", "-"), func(t *testing.T) {
			ctx := within(t)
			f, comms := striped(ctx, t)
			dead := root(ctx, t, f, stripe)
			outcomes := sum(ctx, t, comms, func() {
				if err := f.KillSwitch(dead); err != nil {
					t.Error(err)
				}
			})
			for rank, o := range outcomes {
				hit, other := o.Stripes[0], o.Stripes[1]
				if stripe != "job" {
					hit, other = other, hit
				}
				// The last one starts after the death, maybe in the next epoch.
				isOne := len(hit.Epochs) < 2 && rank < len(outcomes)-1
				if isOne || other.Transport != hostlib.Offload {
					t.Errorf("rank %d: the stripe whose root died ran as %+v, the other as %+v", rank, hit, other)
				}
			}
			onSwitches(ctx, t, comms) // both over the spine that is left
			for rank, o := range sum(ctx, t, comms, nil) {
				if o.Transport != hostlib.Offload {
					t.Errorf("rank %d, afterwards: %+v", rank, o)
				}
			}
			if err := embedded.Leave(ctx, comms); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStripeWithoutATree: nobody is there to plan another one.
func TestStripeWithoutATree(t *testing.T) {
	ctx := within(t)
	f, comms := striped(ctx, t)
	dead := root(ctx, t, f, "job/stripe-1")
	if err := f.KillManager(); err != nil {
		t.Fatal(err)
	}
	sum(ctx, t, comms, func() {
		if err := f.KillSwitch(dead); err != nil {
			t.Error(err)
		}
	})
	for rank, o := range sum(ctx, t, comms, nil) {
		if o.Transport != hostlib.Mixed || o.Stripes[0].Transport != hostlib.Offload || o.Stripes[1].Transport != hostlib.HostTree ||
			!strings.Contains(o.Reason, "stripe 1: ") {
			t.Errorf("rank %d: %+v", rank, o)
		}
	}
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Error(err)
	}
}

// TestNoSlotsForASecondStripe: switches have room for one tree.
func TestNoSlotsForASecondStripe(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{
		Topology: narrow(t, 2*8), Window: 64, Options: []hostlib.GroupOption{hostlib.Stripes(2)},
	})
	comms := communicators(ctx, t, f, "job")
	onSwitches(ctx, t, comms)
	for rank, o := range sum(ctx, t, comms, nil) {
		if o.Transport != hostlib.Offload || o.Stripes != nil {
			t.Errorf("rank %d: %+v", rank, o)
		}
	}
	if _, why := comms[1].Transport(); !strings.Contains(why, "1 of 2 stripes: ") {
		t.Errorf("rank 1 runs because %q, which does not report the stripes", why)
	}
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Error(err)
	}
}

// narrow is a fabric of two leaves and two spines with so many slots each.
func narrow(t *testing.T, slots int) *topology.Graph {
	t.Helper()
	var b topology.Builder
	capability := topology.DefaultCapability()
	capability.Slots = slots
	add := func(name string) topology.Ref {
		r, err := b.AddSwitch(name, capability)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	join := func(x, y topology.Ref) {
		if _, err := b.Connect(x, 0, y, 0, topology.DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	spines := []topology.Ref{add("spine-0"), add("spine-1")}
	for _, leaf := range []string{"0", "1"} {
		l := add("leaf-" + leaf)
		for _, i := range []string{"0", "1"} {
			h, err := b.AddHost("h" + leaf + i)
			if err != nil {
				t.Fatal(err)
			}
			join(h, l)
		}
		join(l, spines[0])
		join(l, spines[1])
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// divided starts a fabric of two leaves and a communicator with two roots.
func divided(ctx context.Context, t *testing.T) (*embedded.Fabric, []*hostlib.Communicator) {
	t.Helper()
	f := start(ctx, t, embedded.Config{Topology: parsed(t, "leaf-spine:3,2,2"), Options: []hostlib.GroupOption{hostlib.Roots(2)}})
	comms := communicators(ctx, t, f, "job")
	if parts := comms[0].Parts(); len(parts) != 2 {
		t.Fatalf("the parts are %v", parts)
	}
	onSwitches(ctx, t, comms)
	return f, comms
}

func TestEachPartHasARoot(t *testing.T) {
	ctx := within(t)
	f, comms := divided(ctx, t)
	if a, b := root(ctx, t, f, "job/part-0"), root(ctx, t, f, "job/part-1"); a == b {
		t.Errorf("both parts have the root %s", a)
	}
	for rank, o := range sum(ctx, t, comms, nil) {
		if o.Transport != hostlib.Offload || !strings.Contains(o.Reason, "of 2: ") {
			t.Errorf("rank %d: %+v", rank, o)
		}
	}
	if err := embedded.Each(comms, func(rank int, c *hostlib.Communicator) error {
		for to := range comms {
			in, out := []int64{int64(rank), 1}, make([]int64, 2)
			if _, err := hostlib.Reduce(ctx, c, reduce.Sum, to, in, out); err != nil {
				return err
			}
			if rank == to && (out[0] != 15 || out[1] != 6) {
				t.Errorf("rank %d has got %v", rank, out)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Error(err)
	}
}

func TestRootOfAPartDies(t *testing.T) {
	ctx := within(t)
	f, comms := divided(ctx, t)
	dead := root(ctx, t, f, "job/part-1")
	outcomes := sum(ctx, t, comms, func() {
		if err := f.KillSwitch(dead); err != nil {
			t.Error(err)
		}
	})
	for _, rank := range comms[0].Parts()[1] {
		if o := outcomes[rank]; o.Transport == hostlib.Offload {
			t.Errorf("rank %d: %+v", rank, o)
		}
	}
	sum(ctx, t, comms, nil)
	if err := embedded.Leave(ctx, comms); err != nil {
		t.Error(err)
	}
}

func TestMemberOfSeveralTreesDies(t *testing.T) {
	for name, make := range map[string]func(context.Context, *testing.T) (*embedded.Fabric, []*hostlib.Communicator){
		"stripes": striped, "parts": divided,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			f, comms := make(ctx, t)
			v := make64(len(comms))
			requests := []*hostlib.Request{}
			for rank, c := range comms[1:] {
				requests = append(requests, hostlib.StartAllreduce(c, reduce.Sum, v[rank], v[rank]))
			}
			if err := f.Hosts()[0].Close(ctx); err != nil {
				t.Error(err)
			}
			for i, r := range requests {
				_, err := r.Wait(ctx)
				var dead *hostlib.MemberError
				if !errors.As(err, &dead) || dead.Rank != 0 {
					t.Errorf("rank %d: %v", i+1, err)
				}
			}
		})
	}
}

func make64(n int) [][]int64 {
	all := make([][]int64, n)
	for i := range all {
		all[i] = make([]int64, elements)
	}
	return all
}
