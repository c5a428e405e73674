package world

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// story is a run in a random world: groups that do random work while random
// things go wrong. All of it follows from the seed.
type story struct {
	seed  uint64
	rand  *rand.Rand
	world *sim.World
	reg   *registry
	crews []*crew
	plan  Plan

	fabric *Fabric // nil: a director offers trees, not a manager
	deaths bool    // members may die
	died   []death

	withMessages bool     // there are operations by messages over rails, too
	railFaults   []string // of those
}

// longest is how long faults last at most.
const longest = 30 * time.Millisecond

func timing() session.Timing {
	return session.Timing{
		Initial: 200 * time.Microsecond, Min: 50 * time.Microsecond,
		Max: 2 * time.Millisecond, Quiet: 5 * time.Millisecond, Silence: 3 * time.Millisecond,
	}
}

func describe(head []byte) string {
	var h wire.Header
	name := "frame packet "
	if len(head) == 0 || head[0]>>4 == wire.Version {
		name = ""
	} else {
		head = head[1:]
	}
	if _, fault := h.Decode(head); fault != wire.NoFault && fault != wire.BadLength {
		return "frame"
	}
	return fmt.Sprintf("%s%v epoch %d chunk %d", name, typeNames[h.Type&7], h.Epoch, h.Chunk)
}

var typeNames = [8]string{"?", "contribution", "result", "probe", "heard", "want", "lost", "error"}

// newStory draws a story. In one with deaths members may die, too.
func newStory(seed uint64, deaths bool, trace io.Writer) *story {
	s := drawStory(seed, deaths, false, trace)
	for _, c := range s.crews {
		s.employ(c)
	}
	return s
}

// drawStory draws a story without work.
func drawStory(seed uint64, deaths, withMessages bool, trace io.Writer) *story {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	cfg := sim.DefaultConfig(seed)
	cfg.Death, cfg.Reconnect, cfg.Patience = detection, 5*time.Millisecond, 0
	if withMessages && seed%3 == 0 {
		cfg.Death = 50 * time.Microsecond // of a process: its host says so
	}
	cfg.Poison, cfg.Describe, cfg.Trace = true, describe, trace
	cfg.Budget = 3_000_000
	cfg.Service = time.Duration(r.IntN(4000))
	if r.IntN(4) > 0 {
		cfg.Link.Loss, cfg.Link.Duplicate, cfg.Link.Reorder = chance(r), chance(r), chance(r)
		cfg.Link.Jitter = time.Duration(r.IntN(20_000))
		cfg.Link.Stray = time.Duration(r.IntN(1_000_000))
	}
	w, err := sim.New(cfg)
	if err != nil {
		panic(err)
	}
	s := &story{seed: seed, rand: r, world: w, reg: newRegistry(), deaths: deaths, withMessages: withMessages}
	if r.IntN(4) == 0 {
		s.haunt()
	}
	if r.IntN(2) == 0 {
		s.managed()
	} else {
		s.directed()
	}
	return s
}

// haunt has a few packets come once more, long after.
func (s *story) haunt() {
	r := rand.New(rand.NewPCG(s.seed, 0x9057))
	s.world.Intercept(func(k sim.Kind, _, _ sim.Addr, _ []byte, fate *sim.Fate) {
		if k == sim.Datagram && r.IntN(100) == 0 {
			fate.Copy, fate.CopyDelay = true, time.Duration(r.Int64N(int64(longest)))
		}
	})
}

// chance draws a probability: often none, mostly small, at most a fifth.
func chance(r *rand.Rand) float64 { return 0.2 * r.Float64() * r.Float64() * float64(r.IntN(2)) }

// groupConfig draws what members agree upon.
func (s *story) groupConfig(size int) endpoint.Config {
	r := s.rand
	return endpoint.Config{
		Group: 1 + r.Uint32N(9), Cookie: wire.Cookie(r.Uint64() & wire.CookieMask), Size: size, Radix: 2 + r.IntN(3),
		ChunkBytes: 16 + r.IntN(49), Window: []uint32{1, 2, 4, 8, 64}[r.IntN(5)],
		First: -r.Uint32N(40), Timing: timing(),
	}
}

// managed makes a fabric with a manager, and one group or two that share it.
func (s *story) managed() {
	r := s.rand
	graph := drawGraph(r)
	var err error
	s.fabric, err = NewFabric(s.world, graph, FabricConfig{
		Manager: managerConfig(),
		Slots:   []int{0, 0, 160, 16, 4}[r.IntN(5)],
		Plan:    time.Duration(r.IntN(500_000)), Store: time.Duration(r.IntN(500_000)),
		Redial: time.Duration(100_000 + r.IntN(3_000_000)), Installed: s.reg.installed,
	})
	if err != nil {
		panic(err)
	}
	t := Targets{Switches: s.fabric.Switches, Fabric: s.fabric}
	for i := range 1 + r.IntN(2) {
		var hosts []topology.NodeID
		for _, h := range r.Perm(graph.Hosts())[:1+r.IntN(16)] {
			hosts = append(hosts, topology.NodeID(h))
		}
		g, err := s.fabric.NewGroup(string(rune('a'+i)), hosts, s.groupConfig(0))
		if err != nil {
			panic(err)
		}
		s.crews = append(s.crews, newCrew(g, s.reg))
		s.rest(s.crews[i], len(g.Hosts))
		s.resize(g)
		t.Hosts, t.Pairs = append(t.Hosts, g.Nodes...), append(t.Pairs, g.Pairs()...)
	}
	for l := range topology.LinkID(graph.Links()) {
		t.Edges = append(t.Edges, s.fabric.Edges(l)...)
	}
	s.disturb(t)
}

// resize has a group's operations need this window and that, at random moments.
func (s *story) resize(g *Group) {
	r := rand.New(rand.NewPCG(s.seed, 0x512e))
	for range r.IntN(12) {
		window := Demand(1) << r.IntN(7)
		s.world.After(time.Duration(r.Int64N(int64(20*time.Millisecond))), "demand", func() { s.world.Command(g.Nodes[0], window) })
	}
}

func drawGraph(r *rand.Rand) *topology.Graph {
	equipment := topology.DefaultEquipment()
	var g *topology.Graph
	var err error
	switch r.IntN(3) {
	case 0:
		g, err = equipment.FourSwitches(4)
	case 1:
		g, err = equipment.LeafSpine(4, 4, 2)
	default:
		g, err = equipment.FatTree(4)
	}
	if err != nil {
		panic(err)
	}
	return g
}

// managerConfig has the periods of a small and hasty world.
func managerConfig() manager.Config {
	return manager.Config{
		MinWindow: 1, StartWindow: 2, Share: 100 * time.Microsecond, Hold: 500 * time.Microsecond, Idle: time.Millisecond, Probes: 5, Answer: 5 * time.Millisecond, Repeat: 5 * time.Millisecond,
		RetryMin: 500 * time.Microsecond, RetryMax: 50 * time.Millisecond, Lease: 60 * time.Millisecond,
		Suspicion: 50 * time.Millisecond, ReleaseGrace: 10 * time.Millisecond, Abandon: 500 * time.Millisecond,
	}
}

// disturb draws the faults: sometimes none, sometimes many, and sometimes one
// right after the other.
func (s *story) disturb(t Targets) {
	r := s.rand
	kinds := [][]FaultKind{
		nil, nil,
		{CrashSwitch, RestartSwitch, BreakPair},
		{CutEdge, BadEdge, CutPair, PauseHost, PauseSwitch},
		{RestartSwitch, RestartManager, BreakPair, CutPair, DownLink, DrainSwitch},
	}[r.IntN(5)]
	if s.deaths {
		kinds = []FaultKind{CrashHost, CrashHost, CrashSwitch, RestartSwitch, BreakPair, RestartManager}
	}
	if s.withMessages && len(kinds) > 0 {
		kinds = append(kinds, DeafEdge, SlowEdge, PauseSwitch, CrashManager, BreakAgent)
	}
	s.plan = Draw(r, r.IntN(1+r.IntN(12)), 200<<r.IntN(7), longest, kinds...)
	if r.IntN(2) == 0 {
		start := 200 + r.Uint64N(6000)
		for i := range s.plan {
			s.plan[i].Event = start + r.Uint64N(1+200*uint64(i))
		}
	}
	if s.deaths && s.withMessages {
		early := rand.New(rand.NewPCG(s.seed, 0xdead))
		s.plan = append(s.plan, Fault{Kind: CrashHost, Event: 100 + early.Uint64N(400<<early.IntN(6)), Which: early.IntN(1 << 20)})
	}
	t.Kill = s.kill
	s.plan.Schedule(s.world, t)
}

// employ gives a group work, at a pace of its own.
func (s *story) employ(c *crew) {
	r := s.rand
	n := len(c.Hosts)
	pace := time.Duration(1 + r.IntN(1<<(10+r.IntN(14))))
	late := make([]time.Duration, n)
	for i := range late {
		late[i] = time.Duration(r.Int64N(int64(pace)))
		if r.IntN(20) == 0 {
			late[i] += time.Duration(r.IntN(200)) * time.Millisecond
		}
	}
	if r.IntN(2) == 0 {
		wait := r.Int64N(5_000_000) // for the first tree
		for i := range late {
			late[i] += time.Duration(wait)
		}
	}
	length := []int{20, 80, 80, 300}[r.IntN(4)]
	for range 1 + r.IntN(12) {
		k := c.add(drawWork(r, n, length))
		for i := range late {
			late[i] += time.Duration(r.Int64N(int64(pace)))
			c.startAfter(late[i], k, uint32(i))
		}
	}
	k := c.leave()
	for i := range late {
		c.startAfter(late[i]+time.Duration(r.Int64N(int64(pace))), k, uint32(i))
	}
}

// directed makes a group to which trees of all shapes are offered, by no rule.
func (s *story) directed() {
	r := s.rand
	var switches []sim.NodeID
	for i := range 6 {
		switches = append(switches, s.world.Add(fmt.Sprintf("switch-%d", i), s.newSwitch()))
	}
	g, err := NewGroup(s.world, s.groupConfig(1+r.IntN(16)))
	if err != nil {
		panic(err)
	}
	c := newCrew(g, s.reg)
	c.number = 7
	s.crews = append(s.crews, c)
	s.rest(c, len(g.Hosts))
	t := Targets{Switches: switches, Hosts: g.Nodes, Pairs: g.Pairs(), Renew: s.newSwitch}
	at := time.Duration(0)
	pace := int64(1) << (12 + r.IntN(12))
	for i := range 1 + r.IntN(6) {
		tree, used := drawTree(r, switches, len(g.Hosts))
		t.Edges = append(t.Edges, g.Edges(tree, used)...)
		at += time.Duration(r.Int64N(pace))
		epoch := uint32(2*i + 2)
		s.world.After(at, fmt.Sprintf("epoch %d is offered", epoch), func() { s.offer(c, tree, used, epoch) })
	}
	s.disturb(t)
}

func (s *story) newSwitch() *Switch { return &Switch{Installed: s.reg.installed} }

// offer installs a tree and offers it: to each member when it likes, sometimes
// not to all, and sometimes it is taken back.
func (s *story) offer(c *crew, tree pathsel.Tree, switches []sim.NodeID, epoch uint32) {
	r := s.rand
	group := c.Config()
	terms := Terms{
		Config: switchreduce.Config{
			Group: c.number, Epoch: epoch, Cookie: wire.Cookie(r.Uint64() & wire.CookieMask),
			Window: min(group.Window, 1<<r.IntN(7)), ChunkBytes: group.ChunkBytes, Probes: 2 + r.IntN(6),
			Lease: time.Duration(r.IntN(2)) * 50 * time.Millisecond,
		},
		Port: 100, Switches: switches,
	}
	for rank, link := range c.Install(tree, terms) {
		if r.IntN(40) == 0 {
			continue
		}
		later := time.Duration(r.IntN(300_000))
		s.world.After(later, "offer", func() { c.Offer(uint32(rank), link) })
		if r.IntN(10) == 0 {
			s.world.After(later+time.Duration(r.IntN(10_000_000)), "offer again", func() { c.Offer(uint32(rank), link) })
		}
		if r.IntN(40) == 0 {
			s.world.After(time.Duration(r.IntN(1_000_000)), "withdrawal", func() {
				c.Notify(uint32(rank), rankWithdraw(epoch))
			})
		}
	}
}

// rest has a crew's members rest now and then, some in the middle of operations.
func (s *story) rest(c *crew, members int) {
	r := s.rand
	for range r.IntN(6) {
		at := time.Duration(r.Int64N(int64(200 * time.Millisecond)))
		for rank := range members {
			s.world.After(at+time.Duration(r.IntN(1_000_000)), "rest", func() { c.Notify(uint32(rank), rankRest()) })
		}
	}
}

func rankRest() endpoint.Input { return endpoint.Input{Kind: endpoint.Rest} }

func rankWithdraw(epoch uint32) endpoint.Input {
	return endpoint.Input{Kind: endpoint.Withdraw, News: &endpoint.News{Epoch: epoch, Reason: "withdrawn"}}
}

// drawTree draws a tree over n members and the switches that it is on.
func drawTree(r *rand.Rand, switches []sim.NodeID, n int) (pathsel.Tree, []sim.NodeID) {
	t := pathsel.Tree{Leaves: make([]pathsel.Leaf, n)}
	for v := range 1 + r.IntN(len(switches)) {
		t.Vertices = append(t.Vertices, pathsel.Vertex{Parent: int32(v - 1 - r.IntN(max(v, 1)))})
	}
	t.Vertices[0].Parent = -1
	children := make([]int, len(t.Vertices))
	for rank := range t.Leaves {
		v := r.IntN(len(t.Vertices))
		t.Leaves[rank].Vertex = int32(v)
		children[v]++
	}
	// The last one may have no child; then it goes, and so does the next.
	for v := len(t.Vertices) - 1; v > 0; v-- {
		if children[v] == 0 {
			t = without(t, int32(v))
			continue
		}
		children[t.Vertices[v].Parent]++
	}
	var used []sim.NodeID
	for _, i := range r.Perm(len(switches))[:len(t.Vertices)] {
		used = append(used, switches[i])
	}
	return t, used
}

// without returns t without a vertex that has no child.
func without(t pathsel.Tree, v int32) pathsel.Tree {
	t.Vertices = append(t.Vertices[:v:v], t.Vertices[v+1:]...)
	for i := range t.Vertices {
		if t.Vertices[i].Parent > v {
			t.Vertices[i].Parent--
		}
	}
	for i := range t.Leaves {
		if t.Leaves[i].Vertex > v {
			t.Leaves[i].Vertex--
		}
	}
	return t
}

// run lives the story to its end and judges it: all work is right, everyone has
// left, or knows of a death, and nothing is left behind.
func (s *story) run(v *verdict) error {
	defer func() {
		if p := recover(); p != nil {
			panic(fmt.Sprintf("story %d, deaths %v: %v", s.seed, s.deaths, p))
		}
	}()
	err := s.await(v)
	if err == nil {
		err = s.reg.err
	}
	if err == nil && s.fabric != nil {
		err = s.world.Await(time.Minute, s.clean)
	}
	if err == nil && s.fair() {
		err = s.quiet()
	}
	if err != nil {
		return fmt.Errorf("story %d, deaths %v (run it again with -story %d -v): %w\nits faults: %s\n%s", s.seed, s.deaths, s.seed, err, s.faults(), s.waiting())
	}
	return nil
}

func (s *story) await(v *verdict) error {
	if !s.deaths && !s.revokes() {
		return await(s.world, time.Minute, v, s.crews...)
	}
	err := s.world.Await(time.Minute, func() bool {
		return !slices.ContainsFunc(s.crews, func(c *crew) bool { return !c.settled() })
	})
	if err == nil && s.revokes() {
		err = s.world.RunFor(detection + longest) // for notices to members that have ended otherwise
	}
	for _, c := range s.crews {
		if err == nil {
			err = c.checkDeaths(v)
		}
		if err == nil && s.withMessages {
			err = s.late(c)
		}
		if err == nil {
			err = s.checkRevoked(c)
		}
	}
	return err
}

// revokes reports whether a communicator may be revoked.
func (s *story) revokes() bool {
	return slices.ContainsFunc(s.crews, func(c *crew) bool { return c.revocation != nil })
}

// fair reports whether nothing is to go wrong in a story.
func (s *story) fair() bool {
	return s.fabric != nil && len(s.plan) == 0 && s.world.DefaultLink().Loss == 0
}

// quiet checks that where nothing goes wrong nobody takes a tree for lost.
func (s *story) quiet() error {
	for _, c := range s.crews {
		for r, h := range c.Hosts {
			if len(h.Losses) > 0 {
				return s.world.Fail(fmt.Errorf("rank %d has lost its tree, and nothing was wrong: %+v", r, h.Losses[0]))
			}
		}
	}
	return nil
}

// clean reports whether no switch holds anything and the manager, if there is
// one, has no group any more.
func (s *story) clean() bool {
	for i, id := range s.fabric.Switches {
		if used, _ := s.fabric.Switch(i).Agent().Slots(); s.world.Alive(id) && used > 0 {
			return false
		}
	}
	return !s.world.Alive(s.fabric.Manager) || len(s.fabric.ManagerNode().Core().Groups()) == 0
}

func (s *story) faults() string {
	var all []string
	for _, f := range s.plan {
		all = append(all, f.String())
	}
	all = append(all, s.railFaults...)
	return strings.Join(all, "; ")
}

// isHang reports whether an error says that a run did not get to its end.
func isHang(err error) bool { return errors.Is(err, sim.ErrNoProgress) }
