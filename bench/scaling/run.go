package scaling

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// ErrResult is wrapped by the error of a run with a wrong result.
var ErrResult = errors.New("scaling: a wrong result")

// Run is what to simulate.
type Run struct {
	Model Model
	Shape Shape
	Bytes int  // of each member's vector of int32, a multiple of 4
	Times int  // operations that are timed, each after a barrier; at least 1
	Fold  bool // see the package's documentation
}

// Result is what came of a run.
type Result struct {
	Times  []time.Duration // of each operation, that of its slowest member without the barrier before it
	Events uint64          // of the simulation
	Hash   uint64          // of all of them
	Busy   time.Duration   // processor time of all programs, barriers included
	Took   time.Duration   // virtual time of all
	Resent uint64          // contributions that members sent again, and probes
}

// Median returns the middle of the times.
func (r *Result) Median() time.Duration {
	all := slices.Sorted(slices.Values(r.Times))
	return all[len(all)/2]
}

// calls are the operations that all members call, one after the other: a barrier and a sum, in turns.
type calls struct {
	in, out []byte // of all members, who compute the same
	hosts   int
	rounds  int // of one barrier and one sum
}

const warmup = 2 // rounds before those that count

// call begins the next operation. It reports false where there is none.
func (m *member) call(now core.Time) bool {
	round, isSum := m.at/2, m.at%2 == 1
	if round == m.calls.rounds {
		return false
	}
	m.at++
	m.serial++
	o := session.Operation{ID: m.serial, Collective: wire.Barrier}
	if isSum {
		o.Collective, o.Function, o.Element = wire.Allreduce, reduce.Sum, reduce.Int32
		o.Elements, o.In, o.Out = len(m.calls.in)/4, m.calls.in, m.calls.out
		m.begun = now
	}
	if err := m.session.Start(o); err != nil {
		m.wrong = err
		return false
	}
	return true
}

// complete notes the end of the operation that was called last.
func (m *member) complete(now core.Time) {
	if m.at%2 == 0 && m.at/2 > warmup {
		m.times = append(m.times, now.Sub(m.begun))
	}
}

// begin is the command by which members begin.
type begin struct{}

// simulation is a world with its nodes.
type simulation struct {
	run     *Run
	world   *sim.World
	carrier *carrier
	shared  *machine
	members []*member
	busy    []*machine
}

// Simulate runs it.
func (r Run) Simulate() (*Result, error) {
	if err := errors.Join(r.Model.Validate(), r.Shape.Validate()); err != nil {
		return nil, err
	}
	if r.Bytes < 4 || r.Bytes%4 != 0 || r.Times < 1 {
		return nil, fmt.Errorf("%w: %d operations of %d bytes", ErrModel, r.Times, r.Bytes)
	}
	if r.Fold && r.Model.Pipeline == nil {
		return nil, fmt.Errorf("%w: children of a program are not served alike, which a fold needs", ErrModel)
	}
	w, err := sim.New(sim.Config{Seed: 1, Budget: 1 << 40})
	if err != nil {
		return nil, err
	}
	s := &simulation{run: &r, world: w}
	hosts := r.Shape.Hosts()
	if r.Fold {
		hosts = 1
	}
	s.carrier = &carrier{model: &r.Model, world: w, ports: map[[2]sim.NodeID]*port{}, hosts: sim.NodeID(hosts)}
	w.Intercept(s.carrier.fate)
	c := &calls{in: make([]byte, r.Bytes), out: make([]byte, r.Bytes), rounds: warmup + r.Times, hosts: hosts}
	for i := 0; i < r.Bytes; i += 4 {
		binary.LittleEndian.PutUint32(c.in[i:], uint32(i+1))
	}
	if err := s.build(c); err != nil {
		return nil, err
	}
	for _, m := range s.members {
		w.Command(m.process.id, begin{})
	}
	if err := w.Await(time.Hour, s.done); err != nil {
		return nil, err
	}
	return s.result(c)
}

// done reports whether all members have called everything.
func (s *simulation) done() bool {
	for _, m := range s.members {
		if m.wrong == nil && len(m.times) < s.run.Times {
			return false
		}
	}
	return true
}

func (s *simulation) result(c *calls) (*Result, error) {
	r := &Result{Events: s.world.Events(), Hash: s.world.Hash(), Took: s.world.Now().Sub(0)}
	for i := 0; i < len(c.in); i += 4 {
		want, got := uint32(c.hosts)*uint32(i+1), binary.LittleEndian.Uint32(c.out[i:])
		if got != want {
			return nil, fmt.Errorf("%w: element %d is %d, not %d", ErrResult, i/4, got, want)
		}
	}
	r.Times = make([]time.Duration, s.run.Times)
	for _, m := range s.members {
		if m.wrong != nil {
			return nil, m.wrong
		}
		for i, t := range m.times {
			r.Times[i] = max(r.Times[i], t)
		}
		n := m.session.Counters()
		r.Resent += n.Resent + n.Probes
	}
	for _, m := range s.busy {
		r.Busy += m.busy
	}
	return r, nil
}

// machineFor returns where a program runs.
func (s *simulation) machineFor() *machine {
	p := s.run.Model.Processors.Shared
	if p > 0 && s.shared != nil {
		return s.shared
	}
	m := newMachine(s.world, &s.run.Model, max(1, p))
	s.busy = append(s.busy, m)
	if p > 0 {
		s.shared = m
	}
	return m
}

func (s *simulation) sender() sender {
	return sender{carrier: s.carrier, model: &s.run.Model, batch: s.run.Model.Batch, cuts: s.run.Model.Network.isWire()}
}

// built is a node whose parent does not exist yet.
type built struct {
	id     sim.NodeID
	lowest uint32
	enter  func(parent sim.NodeID, index uint16) error
}

// build adds hosts and, level by level, switches.
func (s *simulation) build(c *calls) error {
	var level []built
	for rank := range c.hosts {
		b, err := s.addHost(c, uint32(rank))
		if err != nil {
			return err
		}
		level = append(level, b)
	}
	for _, fan := range s.run.Shape {
		children := fan
		if s.run.Fold {
			children = 1
		}
		var above []built
		for at := 0; at < len(level); at += children {
			b, err := s.addSwitch(level[at : at+children])
			if err != nil {
				return err
			}
			above = append(above, b)
		}
		level = above
	}
	return level[0].enter(-1, 0)
}

const (
	group, epoch = 1, 2
)

func (s *simulation) addHost(c *calls, rank uint32) (built, error) {
	m := &s.run.Model
	core, err := session.New(session.Config{Rank: rank, ChunkBytes: m.Chunk, Window: uint32(m.Window)}, 0)
	if err != nil {
		return built{}, err
	}
	h := &member{session: core, calls: c, sender: s.sender()}
	h.process = s.machineFor().process(sim.NodeID(s.world.Nodes()))
	s.members = append(s.members, h)
	id := s.world.Add(fmt.Sprintf("h%d", rank), h)
	return built{id, rank, func(parent sim.NodeID, index uint16) error {
		var out session.Output
		l := session.Link{Group: group, Epoch: epoch, Window: uint32(m.Window), Parent: addrOf(parent), Index: index}
		return core.Enter(0, l, session.Decision{}, &out)
	}}, nil
}

func (s *simulation) addSwitch(children []built) (built, error) {
	m := &s.run.Model
	r := &reducer{core: switchreduce.New(), sender: s.sender()}
	id := s.world.Add("", r)
	if m.Pipeline == nil {
		r.process = s.machineFor().process(id)
	}
	c := &switchreduce.Config{Group: group, Epoch: epoch, Window: uint32(m.Window), ChunkBytes: m.Chunk}
	for i, child := range children {
		c.Children = append(c.Children, switchreduce.Child{Addr: addrOf(child.id), Lowest: child.lowest})
		if err := child.enter(id, uint16(i)); err != nil {
			return built{}, err
		}
	}
	return built{id, children[0].lowest, func(parent sim.NodeID, index uint16) error {
		if parent >= 0 {
			c.Parent, c.Index = addrOf(parent), index
		}
		if err := c.Validate(); err != nil {
			return err
		}
		r.core.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: c}}, &r.out)
		return nil
	}}, nil
}
