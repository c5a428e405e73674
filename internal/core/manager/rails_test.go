package manager

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// dualHomed returns a fabric of hosts with a link to each of two leaves, of which those
// of single have only that to leaf-0. Host H has the address 10.0.L.1+H on its link to leaf L.
func dualHomed(hosts int, single ...int) *topology.Graph {
	var b topology.Builder
	var refs []topology.Ref
	for h := range hosts {
		refs = append(refs, must(b.AddHost(fmt.Sprint("h", h))))
	}
	for l := range 2 {
		leaf := must(b.AddSwitch(fmt.Sprint("leaf-", l), topology.DefaultCapability()))
		for h, host := range refs {
			if l == 0 || !slices.Contains(single, h) {
				link := must(b.Connect(host, topology.Port(l+1), leaf, topology.Port(h+1), topology.DefaultLink()))
				must(0, b.SetAddresses(link, railAddr(h, l), netip.AddrFrom4([4]byte{10, 1, byte(l), byte(h + 1)})))
			}
		}
	}
	return must(b.Build())
}

func railAddr(host, leaf int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(leaf), byte(host + 1)})
}

// railsOf returns a host's two rails, of which some are down.
func railsOf(host int, down ...int) (rails []Rail) {
	for l := range 2 {
		r := Rail{Name: fmt.Sprint("eth", l), Address: railAddr(host, l)}
		if slices.Contains(down, l) {
			r.Fault = "no carrier"
		}
		rails = append(rails, r)
	}
	return rails
}

// withRails returns a world whose group 1 has these hosts, with these rails.
func withRails(t *testing.T, g *topology.Graph, rails func(host int) []Rail) *world {
	t.Helper()
	w := newWorld(g, Config{MinWindow: 2, MaxAttempts: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	var hosts []int
	for h := range g.Hosts() {
		hosts = append(hosts, h)
	}
	group := w.create("g", 16, hosts...).Group
	for h := range hosts {
		w.railsAre(h, rails(h))
	}
	if w.settle(); w.fault != nil || group != 1 {
		t.Fatal(w.fault)
	}
	return w
}

// railsAre has the member of a host watch with these rails.
func (w *world) railsAre(host int, rails []Rail) {
	key := [2]uint32{1, uint32(host)}
	if w.members[key] == nil {
		w.members[key] = &fakeMember{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, 1, byte(host)}), 5000)}
	}
	w.members[key].rails = rails
	w.watch(1, uint32(host))
}

// checkSources holds the addresses of all members of group 1 against its tree's links.
func (w *world) checkSources(t *testing.T, want func(host int, l topology.LinkID) netip.Addr) {
	t.Helper()
	w.want(t, Active, w.core.groups[1].epoch)
	tree := w.core.groups[1].active
	children := tree.plan.Tree.AllChildren()
	configs := w.core.configure(w.core.groups[1], tree)
	for h, l := range tree.plan.Tree.Leaves {
		a := want(h, l.Link)
		offers := w.members[[2]uint32{1, uint32(h)}].offers
		if o := offers[len(offers)-1]; o.Source != a || o.Parent != w.core.leafOf(tree, uint32(h)) {
			t.Errorf("h%d is to send from %v to %v, want from %v", h, o.Source, o.Parent, a)
		}
		k := slices.IndexFunc(children[l.Vertex], func(c pathsel.Child) bool { return c.Vertex < 0 && int(c.Lowest) == h })
		if at := configs[l.Vertex].Children[k].Addr; at != netip.AddrPortFrom(a, 5000) {
			t.Errorf("the leaf switch of h%d expects %v, want %v", h, at, a)
		}
	}
}

// leaf returns the leaf of group 1's tree where a host is; empty: there is no tree.
func (w *world) leaf(host int) string {
	if t := w.core.groups[1].active; t != nil {
		return w.graph.Name(t.plan.Tree.Vertices[t.plan.Tree.Leaves[host].Vertex].Switch)
	}
	return ""
}

func history(w *world) string {
	var b strings.Builder
	e, _ := w.core.Group(1)
	for _, h := range e.History {
		fmt.Fprintln(&b, h.What)
	}
	if e.Refusal != nil {
		fmt.Fprintln(&b, e.Refusal)
	}
	return b.String()
}

// TestMembersSendFromRails: from the one at the tree's link, whichever that is.
func TestMembersSendFromRails(t *testing.T) {
	for _, hosts := range []int{2, 4, 64} {
		for leaf := range 2 {
			w := withRails(t, dualHomed(hosts), func(h int) []Rail {
				if h == 1 {
					return railsOf(h, 1-leaf)
				}
				return railsOf(h)
			})
			if got, want := w.leaf(0), fmt.Sprint("leaf-", leaf); got != want {
				t.Errorf("%d hosts: the tree is on %s, want %s", hosts, got, want)
			}
			w.checkSources(t, func(h int, l topology.LinkID) netip.Addr { return railAddr(h, leaf) })
		}
	}
}

// TestRailsAndLinksDiffer: what is on one side alone is named, and not used.
func TestRailsAndLinksDiffer(t *testing.T) {
	foreign := Rail{Name: "mgmt", Address: netip.MustParseAddr("10.9.9.9")}
	for name, test := range map[string]struct {
		rails func(h int) []Rail
		want  []string // in the history
		leaf  string
	}{
		"a rail without a link": {
			func(h int) []Rail { return append(railsOf(h), foreign) },
			[]string{"rail mgmt (10.9.9.9) of h1, rank 1, is on no link: the topology has h1:1--leaf-0:2 (10.0.0.2), h1:2--leaf-1:2 (10.0.1.2)"}, "leaf-",
		},
		"a link without a rail": {
			func(h int) []Rail { return railsOf(h)[1:] },
			[]string{"the topology has 10.0.0.3 for h2, rank 2, on link h2:1--leaf-0:3, where there is no rail; its rails are eth1 (10.0.1.3)"}, "leaf-1",
		},
		"both": {
			func(h int) []Rail { return []Rail{foreign, railsOf(h)[0]} },
			[]string{"rail mgmt (10.9.9.9) of h0, rank 0, is on no link", "on link h0:2--leaf-1:1, where there is no rail"}, "leaf-0",
		},
		"all are down": {
			func(h int) []Rail {
				if h == 2 {
					return railsOf(h, 0, 1)
				}
				return railsOf(h)
			},
			[]string{"rail eth1 (10.0.1.3) of h2, rank 2, is down: no carrier"}, "",
		},
		"no leaf for all": {
			func(h int) []Rail { return railsOf(h)[h%2 : h%2+1] },
			[]string{"no tree"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withRails(t, dualHomed(3), test.rails)
			text := history(w)
			for _, s := range test.want {
				if !strings.Contains(text, s) {
					t.Errorf("it lacks %q:\n%s", s, text)
				}
			}
			if at := w.leaf(0); !strings.HasPrefix(at, test.leaf) || at == "" != (test.leaf == "") {
				t.Errorf("the tree is on %q, want %q\n%s", at, test.leaf, text)
			}
		})
	}
	t.Run("nothing is the same", func(t *testing.T) { // the data address counts, as without rails
		w := withRails(t, dualHomed(3), func(int) []Rail { return []Rail{foreign} })
		w.checkSources(t, func(h int, _ topology.LinkID) netip.Addr { return w.members[[2]uint32{1, uint32(h)}].addr.Addr() })
	})
}

// TestRailsComeAndGo at random: whenever nothing is under way, the tree is on rails that
// are up, and there is one as soon as a leaf has all hosts.
func TestRailsComeAndGo(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		const hosts = 4
		w := withRails(t, dualHomed(hosts), func(h int) []Rail { return railsOf(h) })
		var down [hosts][2]bool
		for step := range 60 {
			h, l := r.IntN(hosts), r.IntN(2)
			down[h][l] = !down[h][l] && r.IntN(4) > 0
			var faults []int
			for i, is := range down[h] {
				if is {
					faults = append(faults, i)
				}
			}
			w.railsAre(h, railsOf(h, faults...))
			if r.IntN(3) == 0 {
				continue // changes come together
			}
			if r.IntN(8) == 0 {
				w.killManager()
				for i := range w.agents {
					w.connect(i)
				}
				w.watchAll(1)
			}
			w.run(w.cfg.withDefaults().RetryMax)
			possible := false
			for leaf := range 2 {
				whole := true
				for h := range hosts {
					whole = whole && !down[h][leaf]
				}
				possible = possible || whole
			}
			if w.fault != nil {
				t.Fatal(w.fault)
			}
			if active := w.core.groups[1].active; (active != nil) != possible {
				t.Fatalf("seed %d, step %d: down are %v, the tree is on %q\n%s", seed, step, down, w.leaf(0), history(w))
			} else if active != nil {
				w.enterAll(active.epoch)
				w.checkSources(t, func(h int, l topology.LinkID) netip.Addr {
					for leaf := range 2 {
						if railAddr(h, leaf) == w.graph.AddressAt(l, topology.NodeID(h)) && down[h][leaf] {
							t.Fatalf("seed %d, step %d: h%d is on leaf-%d; down are %v", seed, step, h, leaf, down)
						}
					}
					return w.graph.AddressAt(l, topology.NodeID(h))
				})
			}
		}
	}
}

// TestStripesPerRail: as many as every host has rails that are up, with links of their own.
func TestStripesPerRail(t *testing.T) {
	for name, test := range map[string]struct {
		graph *topology.Graph
		down  map[int][]int // rails by host
		want  int
	}{
		"two rails":           {dualHomed(4), nil, 2},
		"one host with one":   {dualHomed(4, 2), nil, 1},
		"one is down":         {dualHomed(4), map[int][]int{3: {1}}, 1},
		"one is down of each": {dualHomed(4), map[int][]int{3: {1}, 0: {1}}, 1},
		"a single leaf":       {must(topology.LeafSpine(4, 1, 0)), nil, 1},
		"several spines":      {must(topology.LeafSpine(2, 2, 4)), nil, 1},
		"three rails":         {must(topology.Parse("rail:4,3,2,3")), nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(test.graph, Config{MinWindow: 2}, 1000)
			for i := range w.agents {
				w.connect(i)
			}
			bundle := Bundle{Name: "job", Kind: Stripes, Count: 8, PerRail: true}
			var hosts []int
			for h := range w.graph.Hosts() {
				hosts = append(hosts, h)
			}
			w.createIn(bundle, pathsel.Purpose{}, "job/0", 16, hosts...)
			for h := range hosts {
				if w.graph.AddressAt(w.graph.Adjacent(0)[0], 0).IsValid() {
					w.railsAre(h, railsOf(h, test.down[h]...))
				} else {
					w.watch(1, uint32(h))
				}
			}
			w.settle()
			p, err := w.draft(bundle, 32, hosts...)
			if err != nil || len(p.Groups) != test.want || p.Fewer != nil {
				t.Fatalf("%d stripes, want %d; %v, %v", len(p.Groups), test.want, p.Fewer, err)
			}
			used := map[topology.LinkID]bool{}
			for _, g := range p.Groups {
				for _, l := range g.Plan.Tree.Leaves {
					if used[l.Link] {
						t.Errorf("two stripes are on %s", w.graph.LinkName(l.Link))
					}
					used[l.Link] = true
				}
			}
		})
	}
	if err := (Bundle{Name: "job", Kind: Parts, Count: 2, PerRail: true}).Validate(); err == nil {
		t.Error("parts over a rail each")
	}
}

// TestRailComesBack: the stripe that had to leave a rail returns soon after that is back, and
// the later the more often that has come.
func TestRailComesBack(t *testing.T) {
	w := newWorld(dualHomed(4), Config{MinWindow: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	for i := range 2 {
		w.createIn(stripe(i, 2), pathsel.Purpose{}, fmt.Sprint("job/", i), 16, 0, 1, 2, 3)
	}
	report := func(host int, down ...int) {
		for group := range uint32(2) {
			key := [2]uint32{group + 1, uint32(host)}
			if w.members[key] == nil {
				w.members[key] = &fakeMember{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, byte(group), byte(host)}), 5000)}
			}
			w.members[key].rails = railsOf(host, down...)
			w.watch(group+1, uint32(host))
		}
	}
	for h := range 4 {
		report(h)
	}
	enter := func() {
		for group := range uint32(2) {
			if t := w.core.groups[group+1].active; t != nil {
				for h := range uint32(4) {
					w.enter(group+1, h, t.epoch)
				}
			}
		}
	}
	apart := func() bool {
		a, b := w.core.groups[1].active, w.core.groups[2].active
		return a != nil && b != nil && pathsel.Shared(w.graph, a.plan.Tree, []pathsel.Tree{b.plan.Tree}) == 0
	}
	w.run(time.Second)
	if enter(); !apart() || w.fault != nil {
		t.Fatalf("at first: %v", w.fault)
	}
	cfg := w.cfg.withDefaults()
	for times, wait := range []time.Duration{cfg.RailSettle, 2 * cfg.RailSettle, 4 * cfg.RailSettle} {
		report(2, 1)
		w.run(300 * time.Millisecond)
		if enter(); apart() || w.core.groups[1].active == nil || w.core.groups[2].active == nil {
			t.Fatalf("the %d. time without a rail: %s", times+1, history(w))
		}
		report(2)
		w.run(wait - time.Millisecond)
		if apart() {
			t.Fatalf("the %d. time: it is back before %v", times+1, wait)
		}
		w.run(100 * time.Millisecond)
		if enter(); !apart() || w.fault != nil {
			t.Fatalf("the %d. time: it is not back after %v: %v\n%s", times+1, wait, w.fault, history(w))
		}
	}
	w.run(2 * cfg.Settle)
	report(2, 0)
	w.run(300 * time.Millisecond)
	enter()
	report(2)
	w.run(cfg.RailSettle + 100*time.Millisecond)
	if enter(); !apart() || w.fault != nil {
		t.Fatalf("after a long time: %v\n%s", w.fault, history(w))
	}
	w.run(2 * cfg.Settle)
	report(3, 0) // and what was long ago is forgotten
	report(3)
	if len(w.core.returns) != 1 {
		t.Errorf("%d hosts are remembered", len(w.core.returns))
	}
}

// TestDeadRailExplainsALoss: a member that says that its rail is down, before or after it has
// lost the tree, has nobody suspect its leaf switch.
func TestDeadRailExplainsALoss(t *testing.T) {
	for _, before := range []bool{false, true} {
		w := withRails(t, dualHomed(4), func(h int) []Rail { return railsOf(h) })
		w.enterAll(2)
		leaf := int(w.leaf(0)[len("leaf-")] - '0')
		if before {
			w.railsAre(2, railsOf(2, leaf))
		}
		w.step(Report{Group: 1, Rank: 2, Entered: 2, Transport: Offload, Lost: 2, Silent: true, Reason: "silence"})
		if n := len(w.core.groups[1].suspects); n > 0 == before {
			t.Errorf("%v: %d switches are suspected", before, n)
		}
		w.railsAre(2, railsOf(2, leaf))
		if n := len(w.core.groups[1].suspects); n > 0 {
			t.Errorf("%v: %d switches are suspected, though the rail is down", before, n)
		}
		w.run(300 * time.Millisecond)
		if at := w.leaf(2); at != fmt.Sprint("leaf-", 1-leaf) {
			t.Errorf("the tree is on %q", at)
		}
	}
}

// TestExplainNamesRails: the explanation of a group names the rails at its tree's links, as far
// as members have reported them.
func TestExplainNamesRails(t *testing.T) {
	w := withRails(t, dualHomed(3), func(host int) []Rail {
		if host == 2 {
			return nil
		}
		return railsOf(host, 0)
	})
	e, ok := w.core.Group(1)
	if !ok || len(e.Trees) != 1 {
		t.Fatalf("%+v", e)
	}
	if got, want := e.Trees[0].Rails, []string{"eth1 (10.0.1.1)", "eth1 (10.0.1.2)", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w.core.groups[1].members[1].rails = railsOf(1, 1)
	if e, _ = w.core.Group(1); e.Trees[0].Rails[1] != "eth1 (10.0.1.2), which is down: no carrier" {
		t.Errorf("%q", e.Trees[0].Rails)
	}
}

// TestRailsKeepNobodyFromReviews: however often a host reports other rails, the trees of all
// are reviewed. With mere texts or faults that is as often as without.
func TestRailsKeepNobodyFromReviews(t *testing.T) {
	for name, test := range map[string]struct {
		report func(i int) []Rail
		quiet  int // of 40 periods of 10 s, at least
	}{
		"the same":       {func(int) []Rail { return railsOf(0, 1) }, 38},
		"other texts":    {func(i int) []Rail { r := railsOf(0, 1); r[1].Fault = fmt.Sprint("no carrier ", i); return r }, 38},
		"down and up":    {func(i int) []Rail { return railsOf(0, []int{1}[i%2:]...) }, 38},
		"other names":    {func(i int) []Rail { r := railsOf(0); r[0].Name = fmt.Sprint("eth", i); return r }, 12},
		"one more, less": {func(i int) []Rail { return railsOf(0)[:1+i%2] }, 12},
	} {
		t.Run(name, func(t *testing.T) {
			w := withRails(t, dualHomed(4), func(h int) []Rail { return railsOf(h) })
			quiet := 0
			for i := range 40 {
				w.railsAre(0, test.report(i))
				w.run(10 * time.Second)
				if !w.core.quiet.Running() {
					quiet++
				}
			}
			if quiet < test.quiet || w.fault != nil {
				t.Errorf("it is quiet after %d of 40 periods, want %d; %v", quiet, test.quiet, w.fault)
			}
		})
	}
}

// TestTextOfAFaultIsNoChange: it is kept for people.
func TestTextOfAFaultIsNoChange(t *testing.T) {
	w := withRails(t, dualHomed(3), func(h int) []Rail { return railsOf(h, 1) })
	before := w.core.changes
	r := railsOf(1, 1)
	r[1].Fault = "silence"
	w.railsAre(1, r)
	if w.core.changes != before {
		t.Errorf("%d changes, then %d", before, w.core.changes)
	}
	if got := w.core.groups[1].members[1].rails[1].Fault; got != "silence" {
		t.Errorf("the fault is %q", got)
	}
}

// TestRailEndsOwnRefusals: that hosts are faster, too, but not for groups of other hosts.
func TestRailEndsOwnRefusals(t *testing.T) {
	w := withRails(t, dualHomed(3), func(h int) []Rail { return railsOf(h, 1) })
	w.create("other", 16, 0, 1)
	w.settle()
	for id := range uint32(2) {
		g := w.core.groups[id+1]
		g.blocked, g.refusal = true, &Refusal{Reason: ErrHostsFaster}
		w.core.blocked = append(w.core.blocked, g.id)
	}
	w.railsAre(2, railsOf(2))
	if own, other := w.core.groups[1].blocked, w.core.groups[2].blocked; own || !other {
		t.Errorf("its own group is refused: %v; another: %v", own, other)
	}
}
