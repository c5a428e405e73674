package world

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// scene is a world for one trace: a group, and switches that the test puts
// trees on. Nothing is random in it but the vectors: everything takes hop from
// node to node, and what is to go wrong is scripted by rules.
type scene struct {
	*testing.T
	*crew
	w    *sim.World
	rand *rand.Rand
	ids  []sim.NodeID
	sw   []*Switch
}

const (
	hop        = 10 * time.Microsecond
	chunkBytes = 16 // four float32
	treePort   = 100
	patience   = 10 * time.Second // of virtual time, for what takes milliseconds
)

func sceneConfig() sim.Config {
	return sim.Config{
		Seed: 1, Link: sim.Link{Delay: hop}, Reconnect: 100 * time.Microsecond, Death: time.Millisecond,
		Budget: 3_000_000, Poison: true, Describe: describe,
	}
}

// newScene makes a group of that size and window, and so many switches.
func newScene(t *testing.T, switches, size int, window uint32) *scene {
	t.Helper()
	return newSceneFrom(t, switches, endpoint.Config{
		Group: 1, Cookie: 7, Size: size, ChunkBytes: chunkBytes, Window: window, Timing: timing(),
	})
}

func newSceneFrom(t *testing.T, switches int, cfg endpoint.Config) *scene {
	t.Helper()
	w, err := sim.New(sceneConfig())
	if err != nil {
		t.Fatal(err)
	}
	reg := newRegistry()
	s := &scene{T: t, w: w, rand: rand.New(rand.NewPCG(1, 2))}
	for i := range switches {
		n := &Switch{Installed: reg.installed}
		s.sw = append(s.sw, n)
		s.ids = append(s.ids, w.Add("switch-"+string(rune('A'+i)), n))
	}
	g, err := NewGroup(w, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.crew = newCrew(g, reg)
	s.number = 9
	s.run(time.Millisecond) // the members are connected
	return s
}

// shape is a tree by numbers: for each switch its parent's index among the
// shape's switches, and for each rank the index of its leaf switch.
type shape struct {
	on      []int // the scene's switches; the first is the root
	parents []int // of all but the root
	leaves  []int
}

// star is the shape of one switch with all n ranks beneath it.
func star(on, n int) shape { return shape{on: []int{on}, leaves: make([]int, n)} }

func (f shape) tree() pathsel.Tree {
	t := pathsel.Tree{Vertices: []pathsel.Vertex{{Parent: -1}}}
	for _, p := range f.parents {
		t.Vertices = append(t.Vertices, pathsel.Vertex{Parent: int32(p)})
	}
	for _, v := range f.leaves {
		t.Leaves = append(t.Leaves, pathsel.Leaf{Vertex: int32(v)})
	}
	return t
}

// install puts a tree on its switches and returns the members' offers.
func (s *scene) install(f shape, epoch, window uint32) []session.Link {
	var on []sim.NodeID
	for _, i := range f.on {
		on = append(on, s.ids[i])
	}
	links := s.Install(f.tree(), Terms{
		Config: switchreduce.Config{
			Group: s.number, Epoch: epoch, Cookie: wire.Cookie(epoch) * 11, Window: window,
			ChunkBytes: chunkBytes, Probes: 4,
		},
		Port: treePort, Switches: on,
	})
	s.run(hop)
	return links
}

// enter has all members enter a tree.
func (s *scene) enter(f shape, epoch, window uint32) {
	s.Helper()
	s.OfferAll(s.install(f, epoch, window))
	s.until("all have entered", func() bool { return s.allIn(epoch) })
	s.run(time.Millisecond)
}

func (s *scene) allIn(epoch uint32) bool {
	for _, h := range s.Hosts {
		if h.Core().Epoch() != epoch {
			return false
		}
	}
	return true
}

// until lets the world go on until something is so.
func (s *scene) until(what string, done func() bool) {
	s.Helper()
	if err := s.w.Await(patience, done); err != nil {
		s.Fatalf("waiting until %s: %v", what, err)
	}
}

func (s *scene) run(d time.Duration) {
	s.Helper()
	if err := s.w.RunFor(d); err != nil {
		s.Fatal(err)
	}
}

// finish lets all work be done and judges it.
func (s *scene) finish() {
	s.Helper()
	if err := await(s.w, patience, &verdict{}, s.crew); err != nil {
		s.Fatal(err)
	}
}

// sum adds an allreduce of float32 of so many chunks, which is not started.
func (s *scene) sum(chunks int) *work { return s.floats(wire.Allreduce, 0, chunks) }

func (s *scene) floats(c wire.Collective, root uint32, chunks int) *work {
	op := session.Operation{Collective: c, Element: reduce.Float32, Root: root, Elements: chunks * chunkBytes / 4}
	if !c.Copies() {
		op.Function = reduce.Sum
	}
	return s.add(newWork(s.rand, len(s.Hosts), op))
}

// counters returns what the tree's core on a switch has counted.
func (s *scene) counters(i int) switchreduce.Counters { return s.sw[i].Counters(treePort) }

// drops checks how many packets a switch has dropped for a reason.
func (s *scene) drops(i int, why switchreduce.Drop, want uint64) {
	s.Helper()
	if got := s.counters(i).Drops[why]; got != want {
		s.Errorf("switch %c has dropped %d packets as %v, want %d", 'A'+i, got, why, want)
	}
}

// inSwitchTree checks that all bits are those of a tree of switches, and
// that these are not also the bits of the tree of hosts.
func (s *scene) inSwitchTree(k *work, epoch uint32) {
	s.Helper()
	root, ok := s.registry.root(s.number, epoch)
	if !ok {
		s.Fatalf("epoch %d was never installed", epoch)
	}
	want := s.registry.fold(k, root)
	if slices.Equal(want, foldHosts(k, s.Group, 0)) {
		s.Fatal("both trees give the same bits: the test shows nothing")
	}
	for r, got := range k.out {
		if k.op.Sink(uint32(r)) && !slices.Equal(got, want) {
			s.Errorf("rank %d has %x, epoch %d gives %x", r, got, epoch, want)
		}
	}
}

// packet is a packet or frame on its way.
type packet struct {
	from, to sim.NodeID
	offload  bool // a datagram, from or to a switch
	wire.Header
	frame any // of the agreement; then there is no header
}

// is reports whether p is a data packet of that type about a chunk.
func (p *packet) is(t wire.Type, chunk uint32) bool {
	return p.frame == nil && p.Type == t && p.Chunk == chunk && p.Flags&wire.Idle == 0
}

// rule has f see, and change the fate of, all that is sent from now on.
func (s *scene) rule(f func(p *packet, fate *sim.Fate)) { intercept(s.w, f) }

func intercept(w *sim.World, f func(p *packet, fate *sim.Fate)) {
	w.Intercept(func(k sim.Kind, from, to sim.Addr, b []byte, fate *sim.Fate) {
		p := packet{from: from.Node, to: to.Node, offload: k == sim.Datagram}
		if k == sim.Message {
			m, err := wire.ReadFrame(b)
			if err != nil {
				panic(err)
			}
			data, ok := m.([]byte)
			if !ok {
				p.frame = m
				f(&p, fate)
				return
			}
			b = data
		}
		if _, fault := p.Decode(b); fault != wire.NoFault {
			panic(fault)
		}
		f(&p, fate)
	})
}

// once changes the fate of the first packet that matches, and returns how many
// have.
func (s *scene) once(match func(p *packet) bool, do func(fate *sim.Fate)) *int {
	seen := new(int)
	s.rule(func(p *packet, fate *sim.Fate) {
		if match(p) {
			if *seen++; *seen == 1 {
				do(fate)
			}
		}
	})
	return seen
}

// lose loses the first packet that matches.
func (s *scene) lose(match func(p *packet) bool) *int {
	return s.once(match, func(fate *sim.Fate) { fate.Lose = true })
}

// happened checks that what a rule waits for has come.
func (s *scene) happened(what string, seen *int) {
	s.Helper()
	if *seen == 0 {
		s.Errorf("the trace has not happened: %s", what)
	}
}

// node returns a member's node.
func (s *scene) node(r int) sim.NodeID { return s.Nodes[r] }

// total sums a counter over all members.
func (s *scene) total(of func(session.Counters) uint64) uint64 {
	var sum uint64
	for _, h := range s.Hosts {
		sum += of(h.Core().Counters())
	}
	return sum
}

func TestAddresses(t *testing.T) {
	for _, a := range []sim.Addr{{Node: 0, Port: 1}, {Node: 300, Port: 65535}, {Node: 1<<24 - 1}} {
		if back, ok := AddrOf(AddrPort(a)); !ok || back != a {
			t.Errorf("%v becomes %v and %v", a, AddrPort(a), back)
		}
	}
	for _, text := range []string{"11.0.0.1:7", "[::1]:7"} {
		if a, ok := AddrOf(netip.MustParseAddrPort(text)); ok {
			t.Errorf("%s is %v", text, a)
		}
	}
}

func TestRegular(t *testing.T) {
	tree := Regular(3, 2)
	if len(tree.Vertices) != 7 || len(tree.Leaves) != 8 || tree.Depth() != 3 {
		t.Errorf("%d switches, %d members, depth %d", len(tree.Vertices), len(tree.Leaves), tree.Depth())
	}
	for v, children := range tree.AllChildren() {
		if len(children) != 2 {
			t.Errorf("switch %d has %v", v, children)
		}
	}
}

// TestOffload: where nothing goes wrong, every chunk is reduced in the switches
// and nothing is sent twice.
func TestOffload(t *testing.T) {
	s := newScene(t, 4, 9, 4)
	s.enter(shape{on: []int{0, 1, 2, 3}, parents: []int{0, 0, 0}, leaves: []int{1, 1, 1, 2, 2, 2, 3, 3, 3}}, 2, 4)
	k := s.sum(63)
	s.startAll(k)
	s.finish()
	s.inSwitchTree(k, 2)
	for r, h := range s.Hosts {
		if c := h.Completions[0]; c.OffloadDone != 63 || c.Chunks != 63 {
			t.Errorf("rank %d: %d of %d chunks by offload", r, c.OffloadDone, c.Chunks)
		}
		if c := h.Core().Counters(); c.Sent != 63 || c.Resent+c.Probes > 0 {
			t.Errorf("rank %d, and nothing was lost: %+v", r, c)
		}
	}
}
