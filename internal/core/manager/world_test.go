package manager

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// world is a manager with all that is around it: agents' cores on every
// switch, a planner, a store, and members that watch. What is under way waits
// in queues until the test lets it go on.
type world struct {
	graph   *topology.Graph
	overlay *topology.Overlay
	cfg     Config
	slots   int
	core    *Core
	now     core.Time
	out     Output
	nextReq uint64
	stream  uint64
	fault   error
	watcher func(*Output) // sees every output

	agents      []*switchAgent          // by switch index
	known       map[string]*switchAgent // also those that the graph does not have
	firstSwitch int                     // its number in the first graph
	hostNames   []string                // of the first graph
	shape       shape                   // of redrawn graphs
	shaped      bool                    // the fabric is smallFabric, and redrawn at times
	plans       []PlanRequest
	planner     *pathsel.Planner
	load        *pathsel.Load
	loaded      int        // trees that count in load
	reported    []int      // slots by switch, as the planner was reported
	later       []loadTask // what the planner has yet to count
	asked       uint64     // the last plan that was asked for
	toStore     []Record
	disk        map[diskKey]Record
	full        bool                      // the store refuses everything
	members     map[[2]uint32]*fakeMember // by group and rank
	replies     map[uint64]Reply
	seen        *sightings
}

// loadTask is what the planner is to count: it does so in the order of all that
// it is asked.
type loadTask struct {
	after          uint64 // the plan that is made before
	loads, unloads []pathsel.Tree
	slots          []SlotUse
}

type diskKey struct {
	kind  RecordKind
	group uint32
}

// switchAgent is an agent, its connection to the manager, and its fake driver.
type switchAgent struct {
	name      string
	node      topology.NodeID // in the graph of the moment
	number    topology.NodeID // in that where it was first
	core      *agent.Core
	lives     uint64 // the incarnation
	outlives  bool   // its trees go on without it
	reducer   topology.Reducer
	piece     int // slots that it has side by side; 0: any
	connected bool
	requests  []agent.Input // on their way to it
	answers   []Input       // on their way to the manager
	unbound   []uint64      // sockets that it opens
	out       agent.Output
}

type fakeMember struct {
	watching bool
	stream   uint64
	addr     netip.AddrPort
	rails    []Rail  // its only ones, if there are any
	offers   []Offer // that were not withdrawn
	entered  uint32
}

func newWorld(graph *topology.Graph, cfg Config, slots int) *world {
	w := &world{
		graph: graph, overlay: topology.NewOverlay(graph), cfg: cfg, slots: slots,
		planner: must(pathsel.NewPlanner(graph, pathsel.Config{Work: 1 << 16})),
		load:    pathsel.NewLoad(graph), disk: map[diskKey]Record{}, known: map[string]*switchAgent{},
		members: map[[2]uint32]*fakeMember{}, replies: map[uint64]Reply{}, seen: newSightings(),
	}
	for h := range topology.NodeID(graph.Hosts()) {
		w.hostNames = append(w.hostNames, graph.Name(h))
	}
	w.firstSwitch = graph.Hosts()
	w.seat()
	w.startManager()
	return w
}

// seat puts the agents in the order of the graph's switches; those that are new are
// booted, those that it does not have are cut off.
func (w *world) seat() {
	w.agents = nil
	for _, a := range w.known {
		a.node = topology.NoNode
	}
	for i := range w.graph.Switches() {
		n := w.graph.Switch(i)
		name := w.graph.Name(n)
		a := w.known[name]
		if a == nil {
			a = &switchAgent{name: name, number: topology.NodeID(w.firstSwitch + len(w.known))}
			w.known[name] = a
		}
		a.node = n
		w.agents = append(w.agents, a)
		if a.core == nil {
			w.boot(i)
		}
	}
	for _, a := range w.known {
		if a.node == topology.NoNode {
			a.connected, a.answers = false, nil
		}
	}
}

// must is for what cannot fail in a test.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func (w *world) fail(format string, args ...any) {
	if w.fault == nil {
		w.fault = fmt.Errorf(format, args...)
	}
}

// startManager begins a manager from what is stored.
func (w *world) startManager() {
	var records []Record
	for _, kind := range []RecordKind{SpecRecord, TreesRecord, FleetRecord} {
		for group := uint32(0); group < 64; group++ {
			if r, ok := w.disk[diskKey{kind, group}]; ok {
				records = append(records, r)
			}
		}
	}
	w.core = must(Restore(w.graph, w.cfg, records))
	w.load, w.loaded = pathsel.NewLoad(w.graph), 0
	w.plans, w.later, w.asked, w.toStore, w.reported = nil, nil, 0, nil, make([]int, w.graph.Switches())
	for _, m := range w.members {
		m.watching = false
	}
	w.step()
	w.step(TopologyChanged{View: w.overlay.View()})
}

// killManager ends the manager and all its connections; what was on its way to
// the agents may still arrive.
func (w *world) killManager() {
	for _, a := range w.agents {
		a.connected = false
		a.answers = nil
	}
	w.startManager()
}

// boot begins an agent that knows nothing.
func (w *world) boot(i int) {
	a := w.agents[i]
	a.lives++
	capability := w.graph.Capability(a.node)
	capability.Slots = w.slots
	a.core = must(agent.New(agent.Config{Name: a.name, Incarnation: a.lives, Capability: capability}))
	a.requests, a.answers, a.unbound = nil, nil, nil
	a.connected = false
}

func (w *world) connect(i int) {
	a := w.agents[i]
	a.connected = true
	a.answers = nil
	w.step(SwitchUp{Switch: a.name, Incarnation: a.lives, Capability: a.core.Capability(), Draining: a.core.Draining(), Outlives: a.outlives, Holds: a.core.Holds()})
}

func (w *world) disconnect(i int) {
	a := w.agents[i]
	if a.connected {
		a.connected = false
		a.answers = nil
		w.step(SwitchDown{Switch: a.name, Why: "connection lost"})
	}
}

func (w *world) crash(i int) {
	w.disconnect(i)
	w.boot(i)
}

// step gives the manager its inputs and takes its output in.
func (w *world) step(batch ...Input) {
	w.out.Reset()
	w.core.Step(w.now, batch, &w.out)
	if err := w.core.check(); err != nil {
		w.fail("after %+v: %w", batch, err)
	}
	w.seen.manager(w)
	if w.watcher != nil {
		w.watcher(&w.out)
	}
	w.toStore = append(w.toStore, w.out.Persist...)
	if w.out.Anew {
		w.planner, w.load, w.loaded = w.planner.For(w.out.View.Graph()), pathsel.NewLoad(w.out.View.Graph()), 0
		w.plans, w.later, w.reported = nil, nil, make([]int, w.out.View.Graph().Switches())
	}
	w.loaded += len(w.out.Loads) - len(w.out.Unloads)
	for _, u := range w.out.Slots {
		w.reported[w.graph.SwitchIndex(u.Switch)] = u.Slots
	}
	for i := range w.core.fleet {
		if d := w.core.fleet[i]; d.used != w.reported[i] {
			w.fail("switch %s: %d slots are reserved, the planner was reported %d", d.name, d.used, w.reported[i])
		}
	}
	w.later = append(w.later, loadTask{
		w.asked, slices.Clone(w.out.Loads), slices.Clone(w.out.Unloads), slices.Clone(w.out.Slots),
	})
	w.plans = append(w.plans, w.out.Plans...)
	for _, c := range w.out.Cancels {
		w.plans = slices.DeleteFunc(w.plans, func(p PlanRequest) bool { return p.Plan == c.Plan })
	}
	for _, p := range w.out.Plans {
		w.asked = max(w.asked, p.Plan)
	}
	w.count()
	for _, m := range w.out.Prepares {
		w.send(m.Switch, m.Prepare)
	}
	for _, m := range w.out.Commits {
		w.send(m.Switch, m.Commit)
	}
	for _, m := range w.out.Removes {
		w.send(m.Switch, m.Remove)
	}
	for _, r := range w.out.Replies {
		w.replies[r.Req] = r
	}
	w.notifyMembers()
}

// count has the planner count what comes before the next plan.
func (w *world) count() {
	for len(w.later) > 0 && (len(w.plans) == 0 || w.later[0].after < w.plans[0].Plan) {
		t := w.later[0]
		w.later = w.later[1:]
		for _, tree := range t.loads {
			w.load.Add(tree, 0)
		}
		for _, tree := range t.unloads {
			w.load.Remove(tree, 0)
		}
		for _, u := range t.slots {
			w.load.SetSlots(u.Switch, u.Slots)
		}
	}
}

// checkOwn holds what does not count for a plan against what counts.
func (w *world) checkOwn(p *PlanRequest) {
	own := pathsel.NewLoad(w.graph)
	for _, t := range p.Own {
		own.Add(t, 0)
	}
	for _, u := range p.OwnSlots {
		own.SetSlots(u.Switch, u.Slots)
	}
	for l := range w.graph.AllLinks() {
		if own.LinkTrees(l) > w.load.LinkTrees(l) {
			w.fail("plan %d: the group has %d trees on link %d, where %d count", p.Plan, own.LinkTrees(l), l, w.load.LinkTrees(l))
		}
	}
	for i := range w.graph.Switches() {
		if n := w.graph.Switch(i); own.UsedSlots(n) > w.load.UsedSlots(n) {
			w.fail("plan %d: the group has %d slots on %s, where %d count", p.Plan, own.UsedSlots(n), w.graph.Name(n), w.load.UsedSlots(n))
		}
	}
}

func (w *world) send(name string, in agent.Input) {
	if a := w.known[name]; a.connected {
		a.requests = append(a.requests, in)
	}
}

func (w *world) notifyMembers() {
	for _, o := range w.out.Offers {
		m := w.members[[2]uint32{o.Group, o.Rank}]
		if m == nil || !m.watching || m.stream != o.Stream {
			w.fail("an offer to a member that does not watch: %+v", o)
			continue
		}
		m.offers = slices.DeleteFunc(m.offers, func(x Offer) bool { return x.Epoch == o.Epoch })
		m.offers = append(m.offers, o)
	}
	for _, o := range w.out.Withdrawals {
		if m := w.members[[2]uint32{o.Group, o.Rank}]; m != nil {
			m.offers = slices.DeleteFunc(m.offers, func(x Offer) bool { return x.Epoch == o.Epoch })
		}
	}
	for _, n := range w.out.Notices {
		if m := w.members[[2]uint32{n.Group, n.Rank}]; n.End && m != nil && m.stream == n.Stream {
			m.watching = false
		}
	}
}

// stepAgent gives an agent one input (or none) and takes its output in.
func (w *world) stepAgent(i int, in agent.Input) { w.stepSwitch(w.agents[i], in) }

func (w *world) stepSwitch(a *switchAgent, in agent.Input) {
	a.out.Reset()
	var batch, installed []agent.Input
	var refusal *agent.Refusal
	if in != nil {
		batch = append(batch, in)
	}
	a.core.Step(w.now, batch, &a.out)
	for _, act := range a.out.Actions {
		switch act.Kind {
		case agent.Open:
			a.unbound = append(a.unbound, act.Socket)
		case agent.Close:
			a.unbound = slices.DeleteFunc(a.unbound, func(s uint64) bool { return s == act.Socket })
		case agent.Install:
			if need := 2 * int(act.Config.Window); a.piece > 0 && need > a.piece {
				installed = append(installed, agent.Expired{Socket: act.Socket, Epoch: act.Epoch, Lost: true})
				refusal = &agent.Refusal{Cause: agent.Slots, Switch: a.name, Need: need, Free: a.piece}
				continue
			}
			w.seen.install(w, a, act.Config)
			installed = append(installed, agent.Installed{Socket: act.Socket, Epoch: act.Epoch, Reducer: a.reducer})
		}
	}
	for k := range a.out.Replies { // the driver holds them back until the epoch is there
		if r := &a.out.Replies[k]; r.Kind == agent.Committed && len(installed) > 0 {
			r.Reducer = a.reducer
			if refusal != nil {
				r.Kind, r.Refusal = agent.Refused, refusal
			}
		}
	}
	var after agent.Output
	a.core.Step(w.now, installed, &after)
	for _, e := range after.Ended {
		a.answers = append(a.answers, Ended{Switch: a.name, End: e})
	}
	for _, r := range a.out.Replies {
		w.seen.reply(a, r)
		a.answers = append(a.answers, Answer{Switch: a.name, Reply: r})
	}
	for _, e := range a.out.Ended {
		a.answers = append(a.answers, Ended{Switch: a.name, End: e})
	}
	if used, all := a.core.Slots(); used > all {
		w.fail("switch %s has promised %d slots of %d", a.name, used, all)
	}
}

// bind gives an agent the address of the oldest socket that it opens.
func (w *world) bind(i int) {
	a := w.agents[i]
	if len(a.unbound) > 0 {
		socket := a.unbound[0]
		a.unbound = a.unbound[1:]
		w.stepAgent(i, agent.Bound{Socket: socket, Addr: w.socketAddr(a, socket)})
	}
}

func (w *world) socketAddr(a *switchAgent, socket uint64) netip.AddrPort {
	ip := netip.AddrFrom4([4]byte{10, byte(a.lives), byte(a.number >> 8), byte(a.number)})
	return netip.AddrPortFrom(ip, uint16(1000+socket))
}

// deliver hands an agent the k-th request that is on its way.
func (w *world) deliver(i, k int) {
	a := w.agents[i]
	if len(a.requests) > 0 {
		k %= len(a.requests)
		in := a.requests[k]
		a.requests = slices.Delete(a.requests, k, k+1)
		w.stepAgent(i, in)
	}
}

// answer hands the manager the first answer of an agent.
func (w *world) answer(i int) {
	a := w.agents[i]
	if len(a.answers) > 0 {
		in := a.answers[0]
		a.answers = a.answers[1:]
		w.step(in)
	}
}

// plan answers the oldest request for a plan.
func (w *world) plan() {
	if len(w.plans) == 0 {
		return
	}
	p := w.plans[0]
	w.plans = w.plans[1:]
	w.checkOwn(&p)
	plan, err := p.Choose(w.planner, w.overlay.View(), w.load)
	if err == nil {
		w.checkPlan(&p, &plan.Tree)
		w.load.Add(plan.Tree, 0)
		w.loaded++
	}
	w.step(Planned{Group: p.Group, Plan: p.Plan, Chosen: plan, Err: err})
}

// checkPlan holds a tree against what was asked for: it spans the group, reduces
// on switches alone that can and are allowed to, within their room, and has no
// cycle, since each vertex stands after its parent.
func (w *world) checkPlan(p *PlanRequest, t *pathsel.Tree) {
	r, view := &p.Request, w.overlay.View()
	if err := t.Validate(view); err != nil || !spans(t, r.Members) || len(t.Routes) > 0 && !r.Forward && !r.Slim {
		w.fail("plan %d: %w; it spans %v", p.Plan, err, spans(t, r.Members))
	}
	seen := map[topology.NodeID]bool{}
	for i, children := range t.AllChildren() {
		n := t.Vertices[i].Switch
		can, used := view.Capability(n), w.load.UsedSlots(n)
		for _, u := range p.OwnSlots {
			if u.Switch == n {
				used -= u.Slots
			}
		}
		if seen[n] || slices.Contains(r.Exclude, n) || slices.Contains(r.Idle, n) || !can.Functions.Covers(r.Functions) || !can.Types.Covers(r.Types) ||
			can.Chunk < r.ChunkBytes || len(children) > can.Children || can.Slots-used < r.Slots {
			w.fail("plan %d: %s is to reduce for %d children: it can %+v, %d of its slots are used", p.Plan, w.graph.Name(n), len(children), can, used)
		}
		seen[n] = true
	}
	for _, n := range t.Forwarders(w.graph) {
		if seen[n] || slices.Contains(r.Exclude, n) {
			w.fail("plan %d: %s forwards", p.Plan, w.graph.Name(n))
		}
	}
}

// errFull is what a full store says.
var errFull = errors.New("/var/manager.db: no space left on device")

// store writes what there is to store.
func (w *world) store() {
	if len(w.toStore) == 0 {
		return
	}
	if w.full {
		last := w.toStore[len(w.toStore)-1].Seq
		w.toStore = slices.DeleteFunc(w.toStore, func(r Record) bool { return r.Kind == SpecRecord && !r.Delete })
		w.step(Unstored{Seq: last, Err: errFull})
		return
	}
	for _, r := range w.toStore {
		if r.Delete {
			delete(w.disk, diskKey{r.Kind, r.Group})
		} else {
			w.disk[diskKey{r.Kind, r.Group}] = r
		}
	}
	last := w.toStore[len(w.toStore)-1].Seq
	w.toStore = nil
	w.step(Stored{Seq: last})
}
