package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// build builds a fabric of links between nodes, of which those that begin with
// an h are hosts, and those in dumb cannot reduce.
func build(t *testing.T, dumb []string, links ...[2]string) *topology.Graph {
	t.Helper()
	return drawn(t, dumb, func(string, string) topology.LinkSpec { return topology.DefaultLink() }, links...)
}

func drawn(t *testing.T, dumb []string, spec func(a, b string) topology.LinkSpec, links ...[2]string) *topology.Graph {
	t.Helper()
	var b topology.Builder
	refs := map[string]topology.Ref{}
	node := func(name string) topology.Ref {
		if r, known := refs[name]; known {
			return r
		}
		var r topology.Ref
		var err error
		switch {
		case strings.HasPrefix(name, "h"):
			r, err = b.AddHost(name)
		case slices.Contains(dumb, name):
			r, err = b.AddSwitch(name, topology.Capability{})
		default:
			r, err = b.AddSwitch(name, topology.DefaultCapability())
		}
		if err != nil {
			t.Fatal(err)
		}
		refs[name] = r
		return r
	}
	for _, l := range links {
		if _, err := b.Connect(node(l[0]), 0, node(l[1]), 0, spec(l[0], l[1])); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// chain is four hosts on a and b, with a switch between these that cannot
// reduce.
func chain(t *testing.T) *topology.Graph {
	return build(t, []string{"plain"}, [2]string{"h0", "a"}, [2]string{"h1", "a"}, [2]string{"h2", "b"}, [2]string{"h3", "b"},
		[2]string{"a", "plain"}, [2]string{"plain", "b"})
}

// explained returns what the manager says of a group, and its active tree. Others
// are the same with another window.
func explained(ctx context.Context, t *testing.T, f *embedded.Fabric, name string) (rpc.Explanation, rpc.TreeState) {
	t.Helper()
	e, err := f.Explain(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	active := slices.IndexFunc(e.Trees, func(s rpc.TreeState) bool { return s.Stage == manager.TreeActive })
	if active < 0 {
		t.Fatalf("trees %+v, refusal %v", e.Trees, e.Refusal)
	}
	return e, e.Trees[active]
}

// TestSwitchThatOnlyForwards has one between two that reduce, with an agent that
// cannot, and without one.
func TestSwitchThatOnlyForwards(t *testing.T) {
	for name, unattended := range map[string][]string{"incapable": nil, "unattended": {"plain"}} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			f := start(ctx, t, embedded.Config{Topology: chain(t), Unattended: unattended})
			comms := communicators(ctx, t, f, "all")
			tree, err := f.AwaitTree(ctx, "all", 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(tree.Tree.Vertices) != 2 || len(tree.Tree.Routes) != 1 || tree.Tree.Hops() != 6 {
				t.Errorf("the tree is\n%s%+v", tree.Tree.Text(f.Topology()), tree.Tree.Routes)
			}
			if err := tree.Tree.Validate(f.Topology().View()); err != nil {
				t.Error(err)
			}
			if all := tree.Tree.Forwarders(f.Topology()); len(all) != 1 || f.Topology().Name(all[0]) != "plain" {
				t.Errorf("%v forward", all)
			}
			wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
			_, reported := explained(ctx, t, f, "all")
			if links := reported.Switches[1].Links; len(links) != 2 {
				t.Errorf("the edge leads over %v", links)
			}
			leave(ctx, t, comms)
		})
	}
}

// TestLeafThatOnlyForwards has the hosts of a leaf that cannot reduce sent to the
// switch above it, all over one link.
func TestLeafThatOnlyForwards(t *testing.T) {
	ctx := within(t)
	g := build(t, []string{"leaf-1"}, [2]string{"h0", "leaf-0"}, [2]string{"h1", "leaf-0"}, [2]string{"h2", "leaf-1"}, [2]string{"h3", "leaf-1"},
		[2]string{"leaf-0", "spine"}, [2]string{"leaf-1", "spine"})
	f := start(ctx, t, embedded.Config{Topology: g})
	comms := communicators(ctx, t, f, "all")
	tree, err := f.AwaitTree(ctx, "all", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Tree.Routes) != 2 || tree.Tree.Hops() != 7 {
		t.Errorf("the tree is\n%s%+v", tree.Tree.Text(g), tree.Tree.Routes)
	}
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
	leave(ctx, t, comms)
}

// TestForwardingIsRefused: not without leave, and not over an edge that packets
// might take another way.
func TestForwardingIsRefused(t *testing.T) {
	twice := build(t, []string{"p"}, [2]string{"h0", "a"}, [2]string{"h1", "b"}, [2]string{"a", "p"}, [2]string{"p", "b"}, [2]string{"p", "b"})
	for name, c := range map[string]embedded.Config{
		"not allowed": {Topology: chain(t), Core: manager.Config{NoForward: true}},
		"two ways":    {Topology: twice},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			f := start(ctx, t, c)
			comms := communicators(ctx, t, f, "all")
			if _, err := f.AwaitTree(ctx, "all", 0); !errors.Is(err, manager.ErrNoTree) {
				t.Errorf("waiting for a tree: %v", err)
			}
			wantTransport(t, sum(ctx, t, comms, nil), hostlib.HostTree)
			leave(ctx, t, comms)
		})
	}
}

// TestSlimTree has switches that could reduce forward: a root between two, where
// that is less load.
func TestSlimTree(t *testing.T) {
	ctx := within(t)
	f := start(ctx, t, embedded.Config{
		Topology: parsed(t, "leaf-spine:2,2,2"), Core: manager.Config{Slim: true}, Options: []hostlib.GroupOption{hostlib.ChooseBy(pathsel.LeastLoad)},
	})
	comms := communicators(ctx, t, f, "all")
	tree, err := f.AwaitTree(ctx, "all", 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Tree.Vertices) != 2 || len(tree.Tree.Routes) != 1 || !has(tree.Reason, "1 switch forwarding") {
		t.Errorf("the tree is\n%s%s", tree.Tree.Text(f.Topology()), tree.Reason)
	}
	wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
	leave(ctx, t, comms)
}

// TestSlowSwitchIsAvoided has an agent report that its switch is slow: the tree is over
// another one, and the explanation says why. Where there is no other, it is used.
func TestSlowSwitchIsAvoided(t *testing.T) {
	const fast, slow = "{name: %s, speed: {bytes: 4G, packets: 3M}}", "{name: %s, speed: {bytes: 100M, packets: 50k}}"
	const links = "links: [{between: [h0, leaf-0]}, {between: [h1, leaf-0]}, {between: [h2, leaf-1]}, {between: [h3, leaf-1]}"
	for name, test := range map[string]struct {
		spines map[string]string
		root   string
		says   []string
	}{
		"avoided":      {map[string]string{"spine-0": slow, "spine-1": fast}, "spine-1", []string{"the next, spine-0, lost by a slow switch (", "51.2 MB/s, here it is 3.07 GB/s)"}},
		"the only way": {map[string]string{"spine-0": slow}, "spine-0", []string{"root spine-0"}},
	} {
		for _, option := range []hostlib.GroupOption{
			hostlib.ChooseBy(pathsel.FewestHops), hostlib.Expect(pathsel.Allreduce, 64), hostlib.Expect(pathsel.Allreduce, 8<<20),
		} {
			t.Run(name, func(t *testing.T) {
				ctx := within(t)
				switches, between := fmt.Sprintf(fast+", "+fast, "leaf-0", "leaf-1"), links
				for spine, speed := range test.spines {
					switches += ", " + fmt.Sprintf(speed, spine)
					between += fmt.Sprintf(", {between: [leaf-0, %s]}, {between: [leaf-1, %s]}", spine, spine)
				}
				text := "version: 1\nhosts: [h0, h1, h2, h3]\nswitches: [" + switches + "]\n" + between + "]\n"
				g, err := topology.Read(strings.NewReader(text), "f")
				if err != nil {
					t.Fatal(err)
				}
				f := start(ctx, t, embedded.Config{Topology: g, Options: []hostlib.GroupOption{option}, Core: manager.Config{NoHosts: true}})
				comms := communicators(ctx, t, f, "all")
				if _, err := f.AwaitTree(ctx, "all", 0); err != nil {
					t.Fatal(err)
				}
				_, tree := explained(ctx, t, f, "all")
				if root := tree.Switches[0].Switch; root != test.root || !has(tree.Reason, test.says...) {
					t.Errorf("the root is %s: %s", root, tree.Reason)
				}
				wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
				leave(ctx, t, comms)
			})
		}
	}
}

// wideAndNear has two spines above two leaves: over one, links have ten times the
// bandwidth, over the other a hundredth of the latency.
func wideAndNear(t *testing.T) *topology.Graph {
	spec := func(a, b string) topology.LinkSpec {
		switch b {
		case "wide":
			return topology.LinkSpec{Bandwidth: 100e9, Latency: 50 * time.Microsecond}
		case "near":
			return topology.LinkSpec{Bandwidth: 10e9, Latency: 500 * time.Nanosecond}
		}
		return topology.LinkSpec{Bandwidth: 100e9, Latency: 500 * time.Nanosecond}
	}
	return drawn(t, nil, spec, [2]string{"h0", "leaf-0"}, [2]string{"h1", "leaf-0"}, [2]string{"h2", "leaf-1"}, [2]string{"h3", "leaf-1"},
		[2]string{"leaf-0", "wide"}, [2]string{"leaf-1", "wide"}, [2]string{"leaf-0", "near"}, [2]string{"leaf-1", "near"})
}

// TestTreeFollowsFromWhatIsExpected: by default the load decides among the trees that
// the purpose bears, and otherwise what is given.
func TestTreeFollowsFromWhatIsExpected(t *testing.T) {
	for name, test := range map[string]struct {
		options []hostlib.GroupOption
		by      pathsel.Criterion
		root    string
	}{
		"long vectors":        {[]hostlib.GroupOption{hostlib.Expect(pathsel.Allreduce, 64<<20)}, pathsel.LeastLoad, "wide"},
		"short ones":          {[]hostlib.GroupOption{hostlib.Expect(pathsel.Allreduce, 64)}, pathsel.LeastLoad, "near"},
		"barriers":            {[]hostlib.GroupOption{hostlib.Expect(pathsel.Barrier, 0)}, pathsel.LeastLoad, "near"},
		"nothing is known":    {nil, pathsel.LeastLoad, ""},
		"given":               {[]hostlib.GroupOption{hostlib.Expect(pathsel.Allreduce, 64), hostlib.ChooseBy(pathsel.WidestLink)}, pathsel.WidestLink, "wide"},
		"given by weights":    {[]hostlib.GroupOption{hostlib.ChooseByWeights(pathsel.Weights{pathsel.LeastLatency: 1})}, pathsel.ByFunction, "near"},
		"the last word holds": {[]hostlib.GroupOption{hostlib.ChooseByWeights(pathsel.Weights{pathsel.LeastLatency: 1}), hostlib.ChooseBy(pathsel.WidestLink)}, pathsel.WidestLink, "wide"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			f := start(ctx, t, embedded.Config{Topology: wideAndNear(t), Options: test.options, Core: manager.Config{NoHosts: true}})
			comms := communicators(ctx, t, f, "all")
			if _, err := f.AwaitTree(ctx, "all", 0); err != nil {
				t.Fatal(err)
			}
			_, tree := explained(ctx, t, f, "all")
			if tree.Criterion != test.by || tree.Because == "" || test.root != "" && tree.Switches[0].Switch != test.root {
				t.Errorf("by %v, since %s: root %s", tree.Criterion, tree.Because, tree.Switches[0].Switch)
			}
			if len(tree.RunnersUp) == 0 || tree.RunnersUp[0].Lost == "" || tree.Figures.Bandwidth == 0 || tree.Figures.Latency == 0 {
				t.Errorf("figures %+v, runners-up %+v", tree.Figures, tree.RunnersUp)
			}
			wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
			leave(ctx, t, comms)
		})
	}
}

// TestHostsWhereTheyAreFaster: a group that says what it does stays on hosts where
// these are faster, and the manager says why; where that is not wanted, or not
// so, it has a tree.
func TestHostsWhereTheyAreFaster(t *testing.T) {
	slow := pathsel.DefaultModel()
	slow.SwitchReduce = 1e6
	expect := []hostlib.GroupOption{hostlib.Expect(pathsel.Allreduce, 1<<20)}
	for name, test := range map[string]struct {
		config    embedded.Config
		transport hostlib.Transport
	}{
		"slow switches":  {embedded.Config{Options: expect, Model: slow}, hostlib.HostTree},
		"fast ones":      {embedded.Config{Options: expect}, hostlib.Offload},
		"unknown length": {embedded.Config{Model: slow}, hostlib.Offload},
		"not wanted":     {embedded.Config{Options: expect, Model: slow, Core: manager.Config{NoHosts: true}}, hostlib.Offload},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			test.config.Topology = parsed(t, "leaf-spine:2,2,2")
			f := start(ctx, t, test.config)
			comms := communicators(ctx, t, f, "all")
			wantTransport(t, sum(ctx, t, comms, nil), test.transport)
			e, err := f.Explain(ctx, "all")
			if err != nil {
				t.Fatal(err)
			}
			if test.transport == hostlib.Offload {
				if e.State != manager.Active {
					t.Errorf("%v: %v", e.State, e.Refusal)
				}
			} else {
				_, why := comms[0].Transport()
				if e.State != manager.OnHosts || !errors.Is(e.Refusal, manager.ErrHostsFaster) || len(e.Trees) != 0 ||
					!has(e.Refusal.Error(), "over hosts") || !has(why, "hosts are faster") {
					t.Errorf("%v: %v; rank 0 says %s", e.State, e.Refusal, why)
				}
			}
			leave(ctx, t, comms)
		})
	}
}
