package manager

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// spined is dualHomed with spines that join the leaves.
func spined(hosts, spines int) *topology.Graph {
	var b topology.Builder
	var refs []topology.Ref
	for h := range hosts {
		refs = append(refs, must(b.AddHost(fmt.Sprint("h", h))))
	}
	var sp []topology.Ref
	for s := range spines {
		sp = append(sp, must(b.AddSwitch(fmt.Sprint("spine-", s), topology.DefaultCapability())))
	}
	for l := range 2 {
		leaf := must(b.AddSwitch(fmt.Sprint("leaf-", l), topology.DefaultCapability()))
		for h, host := range refs {
			link := must(b.Connect(host, topology.Port(l+1), leaf, topology.Port(h+1), topology.DefaultLink()))
			must(0, b.SetAddresses(link, railAddr(h, l), netip.AddrFrom4([4]byte{10, 1, byte(l), byte(h + 1)})))
		}
		for s := range sp {
			must(b.Connect(leaf, topology.Port(100+s), sp[s], topology.Port(l+1), topology.DefaultLink()))
		}
	}
	return must(b.Build())
}

// railStripes are two stripes of four hosts with two rails each, apart from each other. Report says
// which rails of a host are down, enter has all members enter the trees that there are.
func railStripes(t *testing.T, g *topology.Graph) (w *world, report func(host int, down ...int), enter func(), apart func() bool) {
	w = newWorld(g, Config{MinWindow: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	for i := range 2 {
		w.createIn(stripe(i, 2), pathsel.Purpose{}, fmt.Sprint("job/", i), 16, 0, 1, 2, 3)
	}
	report = func(host int, down ...int) {
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
	enter = func() {
		for group := range uint32(2) {
			if t := w.core.groups[group+1].active; t != nil {
				for h := range uint32(4) {
					w.enter(group+1, h, t.epoch)
				}
			}
		}
	}
	apart = func() bool {
		a, b := w.core.groups[1].active, w.core.groups[2].active
		if a == nil || b == nil {
			return false
		}
		used := map[topology.LinkID]bool{}
		for _, l := range a.plan.Tree.Leaves {
			used[l.Link] = true
		}
		for _, l := range b.plan.Tree.Leaves {
			if used[l.Link] {
				return false
			}
		}
		return true
	}
	w.run(time.Second)
	if enter(); !apart() || w.fault != nil {
		t.Fatalf("at first: %v", w.fault)
	}
	return w, report, enter, apart
}

// TestRailBackAfterRestart: a manager that starts anew while a rail is down moves trees back like
// the old one.
func TestRailBackAfterRestart(t *testing.T) {
	for name, g := range map[string]*topology.Graph{"no spine": dualHomed(4), "one spine": spined(4, 1), "two spines": spined(4, 2)} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restart), func(t *testing.T) {
				w, report, enter, apart := railStripes(t, g)
				report(2, 1)
				w.run(time.Second)
				enter()
				if apart() {
					t.Fatal("apart?")
				}
				if restart {
					w.killManager()
					for i := range w.agents {
						w.connect(i)
					}
					for h := range 4 {
						if h == 2 {
							report(h, 1)
						} else {
							report(h)
						}
					}
					w.run(time.Second)
					enter()
				}
				report(2)
				for range 100 {
					w.run(time.Second)
					enter()
				}
				if !apart() || w.fault != nil {
					t.Errorf("long after the rail is back stripes share a host's link: %v\n%s", w.fault, history(w))
				}
			})
		}
	}
}

// TestRailBackWhileAMemberIsAway: a member whose stream is away for a moment does not keep a group
// on its makeshift tree for good.
func TestRailBackWhileAMemberIsAway(t *testing.T) {
	for name, g := range map[string]*topology.Graph{"no spine": dualHomed(4), "one spine": spined(4, 1)} {
		t.Run(name, func(t *testing.T) {
			w, report, enter, apart := railStripes(t, g)
			report(2, 1)
			w.run(time.Second)
			enter()
			w.run(time.Minute)
			report(2)
			for group := range uint32(2) { // host 3 has lost the manager, for 2 s
				w.step(Unwatch{Group: group + 1, Rank: 3, Stream: w.members[[2]uint32{group + 1, 3}].stream})
			}
			w.run(2 * time.Second)
			report(3)
			for range 100 {
				w.run(time.Second)
				enter()
			}
			if !apart() || w.fault != nil {
				t.Errorf("long after the rail is back stripes share a host's link: %v\n%s", w.fault, history(w))
			}
		})
	}
}

// TestRefusedAfterRedraw: a draft that was refused before the fabric was redrawn is not explained by
// the hosts of another graph.
func TestRefusedAfterRedraw(t *testing.T) {
	w, report, _, _ := railStripes(t, dualHomed(4))
	report(2, 0, 1)
	w.run(time.Second)
	in := Create{Bundle: stripe(0, 2), ChunkBytes: 1024, Window: 16, Functions: topology.AllFunctions(), Types: topology.AllTypes()}
	in.Members = []string{"h0", "h1", "h2", "h3"}
	d, err := w.core.Draft(in)
	if err != nil {
		t.Fatal(err)
	}
	_, refusal := d.Choose(w.planner, w.overlay.View(), w.load)
	if refusal == nil {
		t.Fatal("no refusal")
	}
	if err := w.core.Refused(&d, refusal); !strings.Contains(err.Error(), "h2") {
		t.Errorf("before: %v", err)
	}
	overlay, _ := topology.NewMapping(w.graph, dualHomed(1)).Overlay(w.overlay)
	w.core.Step(w.now, []Input{Redrawn{View: overlay.View()}}, &w.out)
	if err := w.core.Refused(&d, refusal); !errors.Is(err, refusal) {
		t.Errorf("after: %v, want %v", err, refusal)
	}
}
