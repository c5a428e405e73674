package world

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// ManagerConfig is what a Manager is made of.
type ManagerConfig struct {
	Graph    *topology.Graph
	Core     manager.Config
	Switches []sim.NodeID  // by switch index of Graph
	Plan     time.Duration // that the choice of a tree takes
	Store    time.Duration // until a record survives a crash
	Redial   time.Duration // pause before a switch that is not there is called again
}

// Disk is what survives a manager: records that are stored, and those that
// may be.
type Disk struct {
	records map[diskKey]manager.Record
	pending []write // by due
}

type diskKey struct {
	kind  manager.RecordKind
	group uint32
}

type write struct {
	due    core.Time
	record manager.Record
}

func (d *Disk) write(r *manager.Record) {
	if d.records == nil {
		d.records = map[diskKey]manager.Record{}
	}
	key := diskKey{r.Kind, r.Group}
	if r.Delete {
		delete(d.records, key)
	} else {
		d.records[key] = *r
	}
}

// settle writes what was due by now and returns the last number; 0: none was.
func (d *Disk) settle(now core.Time) (seq uint64) {
	for len(d.pending) > 0 && d.pending[0].due <= now {
		d.write(&d.pending[0].record)
		seq = d.pending[0].record.Seq
		d.pending = d.pending[1:]
	}
	return seq
}

// Records returns how many records are stored.
func (d *Disk) Records() int { return len(d.records) }

// recover returns what a new manager finds: of what was being written when the
// former one crashed, a random part from the front.
func (d *Disk) recover(r *rand.Rand) []manager.Record {
	for range r.IntN(len(d.pending) + 1) {
		d.write(&d.pending[0].record)
		d.pending = d.pending[1:]
	}
	d.pending = nil
	var all []manager.Record
	for _, record := range d.records {
		all = append(all, record)
	}
	slices.SortFunc(all, func(a, b manager.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// Manager is the node of an offload manager: the core, a planner, and the
// connections to agents and members. A command of type manager.Input goes to
// the core.
type Manager struct {
	cfg  ManagerConfig
	disk *Disk
	core *manager.Core
	in   []manager.Input
	out  manager.Output

	planner *manager.Planner
	planned core.Time // when it has the next plan; Never: none waits

	links   []link // by switch index
	indexOf map[sim.NodeID]int
	watches map[sim.NodeID]manager.Watch // the last one of each member
	serial  uint64
}

// link is the connection to one switch's agent.
type link struct {
	up     bool      // it was met
	serial uint64    // of the last meet
	redial core.Time // Never: it is connected, or called
}

// NewManager returns a manager that goes on from what disk has. The generator
// decides what an earlier one's last writes have come to.
func NewManager(cfg ManagerConfig, disk *Disk, r *rand.Rand) (*Manager, error) {
	c, err := manager.Restore(cfg.Graph, cfg.Core, disk.recover(r))
	if err != nil {
		return nil, err
	}
	planner, err := manager.NewPlanner(cfg.Graph, pathsel.DefaultConfig())
	if err != nil {
		return nil, err
	}
	return &Manager{
		cfg: cfg, disk: disk, core: c, planner: planner, planned: core.Never,
		links: make([]link, len(cfg.Switches)), indexOf: indexOf(cfg.Switches),
		watches: map[sim.NodeID]manager.Watch{},
	}, nil
}

func indexOf(nodes []sim.NodeID) map[sim.NodeID]int {
	m := make(map[sim.NodeID]int, len(nodes))
	for i, id := range nodes {
		m[id] = i
	}
	return m
}

// Core returns the manager's core.
func (m *Manager) Core() *manager.Core { return m.core }

// Deadline implements sim.Node.
func (m *Manager) Deadline() core.Time {
	at := m.core.Deadline()
	for i := range m.links {
		at = at.Earlier(m.links[i].redial)
	}
	at = at.Earlier(m.planned)
	if len(m.disk.pending) > 0 {
		at = at.Earlier(m.disk.pending[0].due)
	}
	return at
}

// Step implements sim.Node.
func (m *Manager) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	for i := range m.links {
		if m.links[i].redial <= now {
			m.links[i].redial = core.Never
			h.Dial(m.cfg.Switches[i])
		}
	}
	for i := range batch {
		m.take(now, &batch[i], h)
	}
	for m.planned <= now {
		if p, ok := m.planner.Next(); ok {
			m.in = append(m.in, p)
		}
		m.planned = m.planAfter(m.planned)
	}
	if seq := m.disk.settle(now); seq > 0 {
		m.in = append(m.in, manager.Stored{Seq: seq})
	}
	m.out.Reset()
	m.core.Step(now, m.in, &m.out)
	clear(m.in)
	m.in = m.in[:0]
	m.carryOut(now, h)
}

func (m *Manager) take(now core.Time, d *sim.Delivery, h sim.Handle) {
	if i, ok := m.indexOf[d.From.Node]; ok && d.Kind != sim.Command {
		m.fromSwitch(now, i, d, h)
		return
	}
	switch d.Kind {
	case sim.Command, sim.Control:
		switch v := d.Value.(type) {
		case manager.Watch:
			m.watches[d.From.Node] = v
			m.in = append(m.in, v)
		case manager.Input:
			m.in = append(m.in, v)
		}
	case sim.Dead, sim.Closed:
		if w, ok := m.watches[d.From.Node]; ok {
			delete(m.watches, d.From.Node)
			m.in = append(m.in, manager.Unwatch{Group: w.Group, Rank: w.Rank, Stream: w.Stream})
		}
	default: // members say all that they say as control values
	}
}

func (m *Manager) fromSwitch(now core.Time, i int, d *sim.Delivery, h sim.Handle) {
	l := &m.links[i]
	switch d.Kind {
	case sim.Up:
		m.down(i, "its connection was broken")
		m.serial++
		l.serial, l.redial = m.serial, core.Never
		h.Notify(d.From.Node, meet{l.serial})
	case sim.Dead, sim.Refused, sim.Closed:
		m.down(i, d.Kind.String())
		l.serial, l.redial = 0, now.Add(m.cfg.Redial)
	case sim.Control:
		switch v := d.Value.(type) {
		case met:
			if v.serial == l.serial {
				l.up = true
				m.in = append(m.in, v.up)
			}
		case manager.Input:
			if l.up {
				m.in = append(m.in, v)
			}
		}
	default: // agents say all that they say as control values
	}
}

func (m *Manager) down(i int, why string) {
	if m.links[i].up {
		m.links[i].up = false
		m.in = append(m.in, manager.SwitchDown{Switch: m.cfg.Graph.Name(m.cfg.Graph.Switch(i)), Why: why})
	}
}

// planAfter returns when the planner, which is free at a time, has its next plan.
func (m *Manager) planAfter(free core.Time) core.Time {
	if !m.planner.Waits() {
		return core.Never
	}
	return free.Add(m.cfg.Plan)
}

// carryOut does what the core wants.
func (m *Manager) carryOut(now core.Time, h sim.Handle) {
	o := &m.out
	for _, r := range o.Persist {
		m.disk.pending = append(m.disk.pending, write{now.Add(m.cfg.Store), r})
	}
	m.planner.Put(o)
	if m.planned == core.Never {
		m.planned = m.planAfter(now)
	}
	for _, p := range o.Prepares {
		m.notify(h, p.Switch, p.Prepare)
	}
	for _, p := range o.Commits {
		m.notify(h, p.Switch, p.Commit)
	}
	for _, p := range o.Removes {
		m.notify(h, p.Switch, p.Remove)
	}
	for _, p := range o.Offers {
		h.Notify(ofStream(p.Stream), p)
	}
	for _, p := range o.Withdrawals {
		h.Notify(ofStream(p.Stream), p)
	}
	for _, p := range o.Links {
		h.Notify(ofStream(p.Stream), p)
	}
	for _, p := range o.Notices {
		h.Notify(ofStream(p.Stream), p)
	}
	for _, p := range o.Replies {
		h.Notify(sim.NodeID(p.Req), p)
	}
}

// notify sends a request to an agent; it is lost while the agent is away.
func (m *Manager) notify(h sim.Handle, name string, value any) {
	n, _ := m.cfg.Graph.Lookup(name)
	if i := m.cfg.Graph.SwitchIndex(n); m.links[i].up {
		h.Notify(m.cfg.Switches[i], value)
	}
}

// stream names the n-th stream of a member by its node.
func stream(id sim.NodeID, n uint32) uint64 { return uint64(id)<<32 | uint64(n) }

func ofStream(s uint64) sim.NodeID { return sim.NodeID(s >> 32) }
