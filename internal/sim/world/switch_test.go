package world

import (
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/sim"
)

// Install is a command to a Switch: let an epoch begin at one of its ports.
type Install struct {
	Port   uint16
	Config switchreduce.Config
}

// Retire is a command to a Switch: end an epoch at one of its ports.
type Retire struct {
	Port  uint16
	Epoch uint32
}

// Switch is a node with one aggregate core behind each data port that a tree
// was installed at, and with an agent that managers speak to, if NewSwitch has
// made it. The zero Switch has neither.
type Switch struct {
	ports []*port
	out   switchreduce.Output

	agent    *agent.Core // nil: commands alone install trees
	name     string
	managers []sim.NodeID // that are connected
	agentIn  []agent.Input
	agentOut agent.Output

	// Installed, if not nil, is notified of every epoch that is installed, and of
	// the address that it is installed at.
	Installed func(at netip.AddrPort, cfg *switchreduce.Config)
	// Expired counts the epochs whose lease ran out.
	Expired int
}

// NewSwitch returns the node of a switch with an agent.
func NewSwitch(cfg agent.Config) (*Switch, error) {
	a, err := agent.New(cfg)
	if err != nil {
		return nil, err
	}
	return &Switch{agent: a, name: cfg.Name}, nil
}

// port is a data port with its core.
type port struct {
	number uint16
	core   *switchreduce.Core
	in     []switchreduce.Input
}

// firstPort is the port of an agent's first socket, less one.
const firstPort = 1000

// meet is a manager's question for what a switch holds; the answer is a met.
type meet struct{ serial uint64 }

type met struct {
	serial uint64
	up     manager.SwitchUp
}

// Agent returns the switch's agent; nil where it has none.
func (s *Switch) Agent() *agent.Core { return s.agent }

// Counters returns what the core at a port has counted; all zero where there is
// none.
func (s *Switch) Counters(number uint16) switchreduce.Counters {
	if p := s.find(number); p != nil {
		return p.core.Counters()
	}
	return switchreduce.Counters{}
}

// Deadline implements sim.Node.
func (s *Switch) Deadline() core.Time {
	at := core.Never
	if s.agent != nil {
		at = s.agent.Deadline()
	}
	for _, p := range s.ports {
		at = at.Earlier(p.core.Deadline())
	}
	return at
}

// Step implements sim.Node. Datagrams to a port without a core are lost, as on
// any machine.
func (s *Switch) Step(now core.Time, batch []sim.Delivery, h sim.Handle) {
	for i := range batch {
		s.take(now, &batch[i], h)
	}
	for _, p := range s.ports {
		if len(p.in) == 0 && p.core.Deadline() > now {
			continue
		}
		s.out.Reset()
		p.core.Step(now, p.in, &s.out)
		clear(p.in)
		p.in = p.in[:0]
		for j := range s.out.Sends {
			send := &s.out.Sends[j]
			if to, ok := AddrOf(send.To); ok {
				h.Send(p.number, to, send.Head[:], send.Body)
			}
		}
		s.Expired += len(s.out.Expired)
		for _, epoch := range s.out.Expired {
			s.agentIn = append(s.agentIn, agent.Expired{Socket: uint64(p.number - firstPort), Epoch: epoch})
		}
	}
	s.govern(now, h)
}

func (s *Switch) take(now core.Time, d *sim.Delivery, h sim.Handle) {
	switch d.Kind {
	case sim.Datagram:
		if p := s.find(d.Port); p != nil {
			p.in = append(p.in, switchreduce.Input{Kind: switchreduce.Packet, From: AddrPort(d.From), Packet: d.Bytes})
		}
	case sim.Command, sim.Control:
		s.announced(now, d, h)
	case sim.Up:
		s.gone(d.From.Node)
		s.managers = append(s.managers, d.From.Node)
	case sim.Dead, sim.Closed:
		s.gone(d.From.Node)
	default: // a switch dials nobody and takes no messages
	}
}

func (s *Switch) gone(n sim.NodeID) {
	s.managers = slices.DeleteFunc(s.managers, func(m sim.NodeID) bool { return m == n })
}

func (s *Switch) announced(now core.Time, d *sim.Delivery, h sim.Handle) {
	switch v := d.Value.(type) {
	case Install:
		s.install(v.Port, &v.Config, h)
	case Retire:
		s.retire(v.Port, v.Epoch)
	case meet:
		if s.agent == nil {
			return
		}
		s.govern(now, h) // so that what it says comes after its earlier answers
		h.Notify(d.From.Node, met{v.serial, manager.SwitchUp{
			Switch: s.name, Incarnation: s.agent.Incarnation(), Capability: s.agent.Capability(),
			Draining: s.agent.Draining(), Holds: s.agent.Holds(),
		}})
	case agent.Input:
		if s.agent != nil {
			s.agentIn = append(s.agentIn, v)
			s.govern(now, h)
		}
	}
}

// govern steps the agent, carries out what it wants, and passes on what it
// says, until it wants nothing more.
func (s *Switch) govern(now core.Time, h sim.Handle) {
	for s.agent != nil && (len(s.agentIn) > 0 || s.agent.Deadline() <= now) {
		s.agentOut.Reset()
		s.agent.Step(now, s.agentIn, &s.agentOut)
		clear(s.agentIn)
		s.agentIn = s.agentIn[:0]
		for i := range s.agentOut.Actions {
			s.act(&s.agentOut.Actions[i], h)
		}
		for _, m := range s.managers {
			for _, r := range s.agentOut.Replies {
				h.Notify(m, manager.Answer{Switch: s.name, Reply: r})
			}
			for _, e := range s.agentOut.Ended {
				h.Notify(m, manager.Ended{Switch: s.name, End: e})
			}
		}
	}
}

func (s *Switch) act(a *agent.Action, h sim.Handle) {
	number := uint16(firstPort + a.Socket)
	switch a.Kind {
	case agent.Open:
		s.open(number)
		s.agentIn = append(s.agentIn, agent.Bound{Socket: a.Socket, Addr: AddrPort(sim.Addr{Node: h.ID(), Port: number})})
	case agent.Install:
		s.install(number, a.Config, h)
	case agent.Retire:
		s.retire(number, a.Epoch)
	case agent.Close:
		s.ports = slices.DeleteFunc(s.ports, func(p *port) bool { return p.number == number })
	}
}

func (s *Switch) install(number uint16, cfg *switchreduce.Config, h sim.Handle) {
	p := s.open(number)
	p.in = append(p.in, switchreduce.Input{Kind: switchreduce.Install, Config: cfg})
	if s.Installed != nil {
		s.Installed(AddrPort(sim.Addr{Node: h.ID(), Port: number}), cfg)
	}
}

func (s *Switch) retire(number uint16, epoch uint32) {
	if p := s.find(number); p != nil {
		p.in = append(p.in, switchreduce.Input{Kind: switchreduce.Retire, Epoch: epoch})
	}
}

// open returns the port of that number, a new one if need be.
func (s *Switch) open(number uint16) *port {
	p := s.find(number)
	if p == nil {
		p = &port{number: number, core: switchreduce.New()}
		s.ports = append(s.ports, p)
	}
	return p
}

func (s *Switch) find(number uint16) *port {
	for _, p := range s.ports {
		if p.number == number {
			return p
		}
	}
	return nil
}
