package scaling

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/sim"
)

// state is what a process does.
type state uint8

const (
	asleep  state = iota
	waiting       // for a processor, to work or to look
	looking       // holds a processor and finds nothing
	working
)

// batch is packets that were received as one.
type batch struct {
	from  sim.NodeID
	bytes []byte
	size  int // of each packet but the last
}

func (t *batch) packets() int { return (len(t.bytes) + t.size - 1) / t.size }

// process is a program on a machine. Its node of the simulation is what it runs.
type process struct {
	machine *machine
	id      sim.NodeID
	state   state
	inbox   []batch
	isDue   bool          // its core's deadline has come, or it is to begin
	before  time.Duration // what it spends before it takes what has come: a wake-up, or a look
	bulk    bool          // see transport.UDP.SetBulk

	since core.Time     // when it began to look for packets
	look  time.Duration // how long it looks
	got   core.Time     // when it got its processor
	turn  uint64        // counts what it does on a processor
	on    *processor    // of its present or last turn
}

// machine is processors that processes share. Who has work keeps a processor until it has none,
// or until a slice is over and others wait. Who has none looks for packets as
// package transport does: it yields to who waits, looks again when its turn has come,
// and sleeps when it has looked for long enough. So each turn that was waited for begins with a look,
// whether it finds something or not.
type machine struct {
	model *Model
	world *sim.World
	free  []*processor // the one that was free last comes last
	queue []*process
	held  []*process // looking, in the order in which they began
	busy  time.Duration
}

// processor is one of a machine's.
type processor struct{ last *process } // that worked

// turn is the command by which a process gets its processor.
type turn struct{}

func newMachine(w *sim.World, m *Model, processors int) *machine {
	made := &machine{model: m, world: w}
	for range processors {
		made.free = append(made.free, &processor{})
	}
	return made
}

func (m *machine) process(id sim.NodeID) *process {
	return &process{machine: m, id: id, look: m.model.Processors.Poll}
}

// hear has a process notice that something has come for it.
func (p *process) hear() {
	switch p.state {
	case asleep:
		p.before = time.Duration(p.machine.model.Costs.Wake)
		p.machine.await(p)
	case looking:
		p.machine.interrupt(p)
		p.before = p.machine.model.Costs.half()
	}
}

func (p *process) hasWork() bool { return len(p.inbox) > 0 || p.isDue }

func (m *machine) await(p *process) {
	p.state = waiting
	m.queue = append(m.queue, p)
	m.dispatch()
}

// interrupt ends a look, and has who looked wait behind all others.
func (m *machine) interrupt(p *process) {
	m.held = slices.DeleteFunc(m.held, func(q *process) bool { return q == p })
	m.leave(p)
	p.turn++
	p.before = time.Duration(m.model.Costs.Look)
	m.await(p)
}

// dispatch gives processors to who waits. Who looks makes room.
func (m *machine) dispatch() {
	for len(m.queue) > 0 {
		if len(m.free) == 0 {
			if len(m.held) == 0 {
				return
			}
			m.interrupt(m.held[0])
			return
		}
		p := m.queue[0]
		m.queue = m.queue[1:]
		m.take(p)
		p.got = m.world.Now()
		m.run(p)
	}
}

// take gives a process a free processor, that of its last turn if it can.
func (m *machine) take(p *process) {
	i := max(0, slices.Index(m.free, p.on))
	p.on = m.free[i]
	m.free = slices.Delete(m.free, i, i+1)
}

func (m *machine) leave(p *process) { m.free = append(m.free, p.on) }

// run has a process that holds a processor work, or look.
func (m *machine) run(p *process) {
	p.turn++
	if p.hasWork() {
		p.state = working
		m.world.Command(p.id, turn{})
		return
	}
	now := m.world.Now()
	left := p.patience() - now.Sub(p.since)
	switch {
	case left <= 0:
		m.sleep(p)
	case len(m.queue) > 0: // one look
		p.state, p.before = working, 0
		m.spend(p, time.Duration(m.model.Costs.Look))
	default:
		p.state = looking
		m.held = append(m.held, p)
		at := p.turn
		m.world.After(left, "patience", func() {
			if p.turn == at {
				m.held = slices.DeleteFunc(m.held, func(q *process) bool { return q == p })
				m.sleep(p)
			}
		})
	}
}

func (m *machine) sleep(p *process) {
	p.state = asleep
	m.leave(p)
	m.dispatch()
}

// spend lets time pass for a process that works.
func (m *machine) spend(p *process, d time.Duration) {
	m.busy += d
	m.world.After(d, "turn", func() { m.done(p) })
}

// done decides what follows on a turn.
func (m *machine) done(p *process) {
	now := m.world.Now()
	if p.hasWork() && (len(m.queue) == 0 || now.Sub(p.got) < m.model.Processors.Slice) {
		m.run(p)
		return
	}
	if !p.hasWork() {
		p.before = time.Duration(m.model.Costs.Look)
	}
	m.leave(p)
	m.await(p)
}

// patience is for how long a process looks.
func (p *process) patience() time.Duration {
	if p.bulk {
		return p.machine.model.Processors.Poll / shortest
	}
	return p.look
}

// begin takes what has come, and returns it with the time that it has cost so far. The
// batches are valid until the next call.
func (p *process) begin(now core.Time) (in []batch, spent time.Duration) {
	c := &p.machine.model.Costs
	spent = p.before
	if waited := now.Sub(p.since); waited > 0 && len(p.inbox) > 0 {
		if poll := p.machine.model.Processors.Poll; waited < poll {
			p.look = poll
		} else {
			p.look = max(p.look/2, poll/shortest)
		}
	}
	if p.on.last != p && p.on.last != nil {
		spent += time.Duration(c.Cold)
	}
	p.on.last = p
	n := min(len(p.inbox), readBatches)
	in = slices.Clone(p.inbox[:n])
	p.inbox = slices.Delete(p.inbox, 0, n)
	for i := range in {
		spent += c.Receive.of(in[i].packets(), len(in[i].bytes))
	}
	p.before, p.isDue = 0, false
	return in, spent
}

// end ends a turn that took so long. The process then looks for packets.
func (p *process) end(now core.Time, spent time.Duration) {
	p.since = now.Add(spent)
	p.machine.spend(p, spent)
}
