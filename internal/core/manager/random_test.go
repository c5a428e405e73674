package manager

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// smallFabric has two spines above three leaves with two hosts each.
func smallFabric() *topology.Graph { return must(topology.LeafSpine(2, 3, 2)) }

func smallConfig() Config {
	return Config{MaxGroups: 3, MaxHistory: 8, MinWindow: 2, StartWindow: 4, MaxWindow: 64, MaxAttempts: 3, MaxBuilding: 2}
}

// slimConfig has switches forward wherever that is better.
func slimConfig() Config {
	c := smallConfig()
	c.Slim = true
	return c
}

// kinds is how many kinds of things play knows.
const kinds = 32

// play lets one thing happen in the world.
func (w *world) play(kind, which, detail byte) {
	if len(w.agents) == 0 {
		kind = 30
	}
	i := int(which) % max(1, len(w.agents))
	group := uint32(which%4) + 1
	if n := len(w.core.order); n > 0 && which < 224 {
		group = w.core.order[int(which)%n]
	}
	rank := uint32(detail % 4)
	switch kind % kinds {
	case 0, 1, 2:
		w.settle()
	case 3:
		w.plan()
	case 4:
		w.full = detail%8 == 0
		w.store()
	case 5, 6:
		w.deliver(i, int(detail))
	case 7, 8:
		w.answer(i)
	case 9:
		w.bind(i)
	case 10: // lost on the way, either way; what an agent says by itself is not
		a := w.agents[i]
		if len(a.requests) > 0 && detail%2 == 0 {
			a.requests = a.requests[1:]
		} else if len(a.answers) > 0 {
			if _, ok := a.answers[0].(Answer); ok {
				a.answers = a.answers[1:]
			}
		}
	case 11: // twice
		if a := w.agents[i]; len(a.requests) > 0 {
			a.requests = append(a.requests, a.requests[0])
		}
	case 12:
		w.wait([]time.Duration{time.Millisecond, 60 * time.Millisecond, time.Second, 2 * time.Second, 10 * time.Second, time.Minute, 20 * time.Minute}[detail%7])
	case 13:
		purpose := pathsel.Purpose{Bytes: int64(detail/16) << (detail % 24), Criterion: pathsel.Criterion(which / 4 % 6)}
		w.createIn(bundleOf(which, detail), purpose, fmt.Sprint("g", which%4), 1<<(detail%6), int(detail)%6, int(detail+1)%6, int(detail+3)%6)
	case 14, 15:
		w.watchAll(group)
	case 16:
		if m := w.members[[2]uint32{group, rank}]; m != nil && m.watching && detail > 128 {
			w.unwatch(group, rank, detail > 240)
		} else {
			w.watch(group, rank)
		}
	case 17:
		w.crash(i)
		w.agents[i].outlives = detail%2 == 1
	case 18:
		if w.agents[i].connected && detail > 128 {
			w.disconnect(i)
		} else {
			w.connect(i)
		}
	case 19:
		for i := range w.agents {
			w.connect(i)
		}
	case 20:
		w.hosts(group, rank, detail)
	case 21:
		w.operator(i, group, detail)
	case 22:
		if detail > 160 {
			w.killManager()
		}
	case 24, 25:
		for i := range w.agents {
			w.connect(i)
		}
		w.settle()
	case 26, 27:
		for _, id := range slices.Clone(w.core.order) {
			w.watchAll(id)
		}
	case 28:
		w.run(time.Second)
	case 29:
		w.demand(group, 1<<(detail%8))
		for r := range uint32(4) {
			w.enterNewest(group, r)
		}
		w.run(100 * time.Millisecond)
	case 30:
		if w.shaped {
			w.redraw(which, detail)
		}
	case 31:
		if detail < 128 {
			w.ask(Turn{Owner: []string{"", w.hostNames[which%2]}[which/2%2], Cost: int(detail)})
		} else {
			w.step(TurnOver{Req: w.nextReq - uint64(which%4)})
		}
	case 23: // the lease of a running epoch is over
		if holds := w.agents[i].core.Holds(); len(holds) > 0 {
			h := holds[int(detail)%len(holds)]
			for socket := uint64(1); socket < 256; socket++ {
				if w.socketAddr(w.agents[i], socket) == h.Addr {
					w.stepAgent(i, agent.Expired{Socket: socket, Epoch: h.Epoch})
				}
			}
		}
	}
}

// bundleOf returns the bundle of a new group: of every second one none.
func bundleOf(which, detail byte) Bundle {
	if detail%2 == 0 {
		return Bundle{}
	}
	return Bundle{Name: fmt.Sprint("b", which%2), Kind: Stripes + BundleKind(which/4%2), Index: int(which / 8 % 3), Count: 3}
}

// hosts lets members do something.
func (w *world) hosts(group, rank uint32, detail byte) {
	g := w.core.groups[group]
	m := w.members[[2]uint32{group, rank}]
	if g == nil || m == nil || int(rank) >= len(g.members) {
		return
	}
	switch {
	case detail < 100 && len(m.offers) > 0: // all enter an offer
		for r := range g.members {
			w.enter(group, uint32(r), m.offers[len(m.offers)-1].Epoch)
		}
	case detail < 140 && len(m.offers) > 0: // one does
		w.enter(group, rank, m.offers[len(m.offers)-1].Epoch)
	case detail < 170: // one goes over to a host tree
		w.enter(group, rank, (m.entered+1)|1)
	case detail < 220 && len(m.offers) > 0:
		w.step(Report{Group: group, Rank: rank, Entered: m.entered, Transport: HostTree, Lost: m.offers[0].Epoch, Silent: detail%2 == 0})
	case detail < 240: // it comes back at another address
		m.addr = addPort(m.addr)
		w.watch(group, rank)
	default: // its operations need another window
		w.demand(group, 1<<(detail%8))
	}
}

// operator lets somebody change the fabric or release a group.
func (w *world) operator(i int, group uint32, detail byte) {
	node, name := w.agents[i].node, w.agents[i].name
	link := topology.LinkID(int(detail) % max(1, w.graph.Links()))
	if w.graph.Links() == 0 && detail >= 60 {
		return
	}
	switch {
	case detail < 60:
		w.ask(Drain{Switch: name, On: detail < 30})
	case detail < 120:
		w.overlay = must(w.overlay.With(topology.LinkState(link, detail >= 90)))
		w.step(TopologyChanged{View: w.overlay.View()})
	case detail < 150:
		w.stepAgent(i, agent.Drain{On: detail < 135})
	case detail < 180: // it learns that a switch can do less, or everything again
		can := w.graph.Capability(node)
		if detail < 165 {
			can.Functions = 0
		}
		w.overlay = must(w.overlay.With(topology.SwitchCapability(node, can)))
		w.step(TopologyChanged{View: w.overlay.View()})
	case detail < 210:
		w.overlay = must(w.overlay.With(topology.LinkUtilization(link, float64(detail-180)/30), topology.NodeUtilization(node, float64(210-detail)/30)))
		w.step(TopologyChanged{View: w.overlay.View()})
	case detail > 235:
		w.ask(Release{Group: group})
	}
}

// heal ends all faults, and expects that everything comes right: every group
// has a tree or a good reason, and nothing lies about on the switches.
func (w *world) heal() {
	w.full = false
	w.store()
	for req := range w.core.drafts {
		w.step(TurnOver{Req: req})
	}
	if w.shaped {
		w.everything()
	}
	w.overlay = topology.NewOverlay(w.graph)
	w.step(TopologyChanged{View: w.overlay.View()})
	for i, a := range w.agents {
		w.ask(Drain{Switch: a.name})
		w.stepAgent(i, agent.Drain{})
		w.connect(i)
	}
	for _, s := range w.core.Groups() {
		w.watchAll(s.Group)
	}
	w.run(5 * time.Minute)
	w.obey()
	if err := w.core.unfair(); err != nil {
		w.fail("in the end: %w", err)
	}
	for _, s := range w.core.Groups() {
		e, _ := w.core.Group(s.Group)
		if s.State != Active && !(s.State == Refusing && errors.Is(e.Refusal, ErrNoTree)) && !(s.State == OnHosts && errors.Is(e.Refusal, ErrHostsFaster)) {
			w.fail("group %d is %v in the end: %v %+v", s.Group, s.State, e.Refusal, e.History)
		}
		for rank := range s.Members {
			m := w.members[[2]uint32{s.Group, uint32(rank)}]
			if s.State == Active && (len(m.offers) == 0 || m.offers[len(m.offers)-1].Epoch != s.Epoch) {
				w.fail("rank %d of group %d does not know epoch %d", rank, s.Group, s.Epoch)
			}
		}
	}
	w.checkStripes()
	w.checkSwitches()
}

// checkStripes expects that stripes are apart where the planner finds so many trees
// that are, slots and suspicions aside.
func (w *world) checkStripes() {
	for name, b := range w.core.bundles {
		var trees []pathsel.Tree
		free := b.Kind == Stripes && w.slots >= 1000
		for _, g := range b.groups {
			if g != nil && g.active != nil {
				trees = append(trees, g.active.plan.Tree)
			}
			free = free && (g == nil || len(g.suspects) == 0)
		}
		if !free || len(trees) < 2 {
			continue
		}
		var members []topology.NodeID
		for _, l := range trees[0].Leaves {
			members = append(members, l.Host)
		}
		s := must(w.planner.Stripes(w.graph.View(), nil, pathsel.Request{Members: members}, len(trees)))
		on := map[topology.LinkID]int{}
		for _, t := range trees {
			for _, v := range t.Vertices[1:] {
				if on[v.Up]++; s.Apart == len(trees) && on[v.Up] > 1 {
					w.fail("bundle %q: %d of %d stripes are on link %s", name, on[v.Up], len(trees), w.graph.LinkName(v.Up))
				}
			}
		}
	}
}

// checkSwitches compares what agents hold with the trees that the manager has.
func (w *world) checkSwitches() {
	trees := 0
	for _, s := range w.core.Groups() {
		for _, t := range w.core.groups[s.Group].trees() {
			trees++
			if t.removing {
				w.fail("epoch %d of group %d is still being removed", t.epoch, s.Group)
			}
		}
	}
	if trees != w.loaded {
		w.fail("%d trees count for the planner, there are %d", w.loaded, trees)
	}
	for i, a := range w.agents {
		for _, h := range a.core.Holds() {
			g := w.core.groups[h.Group]
			if g == nil || g.treeOf(h.Epoch) == nil || !h.Committed {
				w.fail("switch %s holds %+v in the end", a.name, h)
			}
		}
		if used, _ := a.core.Slots(); used != w.core.fleet[i].used {
			w.fail("switch %s has promised %d slots, the manager counts %d", a.name, used, w.core.fleet[i].used)
		}
	}
}

// dissolve releases all groups, and expects that nothing is left anywhere.
func (w *world) dissolve() {
	for _, s := range w.core.Groups() {
		w.ask(Release{Group: s.Group})
	}
	w.run(time.Minute)
	if n := len(w.core.Groups()); n != 0 {
		w.fail("%d groups are left", n)
	}
	for _, a := range w.agents {
		if holds := a.core.Holds(); len(holds) > 0 {
			w.fail("switch %s holds %+v when all is released", a.name, holds)
		}
	}
	for l := range topology.LinkID(w.graph.Links()) {
		if n := w.load.LinkTrees(l); n != 0 {
			w.fail("%d trees count on link %s when all is released", n, w.graph.LinkName(l))
		}
	}
	if len(w.disk) > 1 || len(w.core.timers) > 0 {
		w.fail("%d records and %d timers are left", len(w.disk), len(w.core.timers))
	}
}

// finish ends a random life.
func (w *world) finish() error {
	if w.fault == nil {
		w.heal()
	}
	if w.fault == nil {
		w.dissolve()
	}
	return w.fault
}

// live plays one random life of a small fabric with two groups.
func live(graph *topology.Graph, random *rand.Rand, steps int) error {
	cfg := []Config{smallConfig(), slimConfig()}[random.IntN(2)]
	w := newWorld(graph, cfg, []int{8, 40, 128, 1000}[random.IntN(4)])
	w.shaped = random.IntN(2) == 0
	// Begin with something that runs, or the faults meet nothing.
	for i := range w.agents {
		w.connect(i)
	}
	stripes := random.IntN(2) == 0
	for k := range 2 {
		if stripes {
			w.watchAll(w.createIn(stripe(k, 2), pathsel.Purpose{}, fmt.Sprint("g", k), 16, 0, 2, 3).Group)
		} else {
			w.watchAll(w.create(fmt.Sprint("g", k), 16<<(2*k), k, k+2, k+3).Group)
		}
	}
	for range steps {
		if w.play(byte(random.IntN(kinds)), byte(random.Uint32()), byte(random.Uint32())); w.fault != nil {
			return w.fault
		}
	}
	return w.finish()
}

func TestInvariants(t *testing.T) {
	graph := smallFabric()
	rapid.Check(t, func(t *rapid.T) {
		// Steps come from a seed: rapid's own numbers are mostly small, and
		// only the first faults would ever happen. It still finds the least
		// number of steps that fails.
		seed := rapid.Uint64().Draw(t, "seed")
		steps := rapid.IntRange(1, 200).Draw(t, "steps")
		for more := range 10 {
			random := rand.New(rand.NewPCG(seed, uint64(more)))
			if err := live(graph, random, steps+more*50); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Arbitrary inputs, most of them nonsense, break nothing.
func TestNonsense(t *testing.T) {
	graph := smallFabric()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		data := make([]byte, 1500)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if err := playRaw(graph, data); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzWorld(f *testing.F) {
	f.Add([]byte{19, 0, 0, 13, 0, 4, 14, 0, 0, 0, 0, 0, 20, 0, 20, 17, 3, 0, 0, 0, 0, 19, 0, 0, 0, 0, 0})
	f.Add([]byte{19, 0, 0, 13, 0, 4, 13, 1, 6, 14, 0, 0, 14, 1, 0, 3, 0, 0, 4, 0, 0, 22, 0, 200, 19, 0, 0, 14, 0, 0})
	f.Add([]byte{19, 0, 0, 13, 0, 4, 14, 0, 0, 0, 0, 0, 21, 3, 10, 0, 0, 0, 20, 0, 20, 21, 3, 40, 21, 0, 240})
	f.Add([]byte{19, 0, 0, 13, 0, 4, 14, 0, 0, 0, 0, 0, 16, 0, 249, 16, 0, 250, 4, 0, 1, 22, 0, 200, 19, 0, 0, 0, 0, 0}) // rank 2 reports that it is over
	graph := smallFabric()
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWorld(graph, smallConfig(), 64)
		w.shaped = true
		for n := 0; len(data) >= 3 && n < 200 && w.fault == nil; n++ {
			w.play(data[0], data[1], data[2])
			data = data[3:]
		}
		if err := w.finish(); err != nil {
			t.Fatal(err)
		}
	})
}
