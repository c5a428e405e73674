package rpc

import (
	"math"
	"slices"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/topology"
)

// piece is the nodes or links of one message of a topology, and the groups of
// one message of a list: far below gRPC's limit of a message.
const piece = 1024

// pieces calls send with the fabric in messages of bounded size.
func pieces(f Fabric, send func(*pb.GetTopologyResponse) error) error {
	head := &pb.GetTopologyResponse{Fabric: &pb.Fabric{
		Name: f.Name, Version: f.Version, Hosts: uint32(f.Hosts), Switches: uint32(f.Switches), Links: uint32(f.Links),
	}}
	if err := send(head); err != nil {
		return err
	}
	for part := range slices.Chunk(f.Nodes, piece) {
		if err := send(&pb.GetTopologyResponse{Nodes: each(part, fabricNode)}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(f.Cables, piece) {
		if err := send(&pb.GetTopologyResponse{Links: each(part, fabricLink)}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(f.Alarms, piece) {
		if err := send(&pb.GetTopologyResponse{Alarms: each(part, alarm)}); err != nil {
			return err
		}
	}
	return nil
}

// piece adds a message to f.
func (r *reader) piece(f *Fabric, m *pb.GetTopologyResponse) {
	if head := m.GetFabric(); head != nil {
		f.Name, f.Version = head.GetName(), head.GetVersion()
		f.Hosts, f.Switches, f.Links = r.int("hosts", head.GetHosts()), r.int("switches", head.GetSwitches()), r.int("links", head.GetLinks())
	}
	f.Nodes = append(f.Nodes, each(m.GetNodes(), r.fabricNode)...)
	f.Cables = append(f.Cables, each(m.GetLinks(), r.fabricLink)...)
	f.Alarms = append(f.Alarms, each(m.GetAlarms(), alarmOf)...)
}

func fabricNode(n FabricNode) *pb.Node {
	m := &pb.Node{Name: n.Name, Up: n.Up, Why: n.Why, Speed: speed(n.Speed)}
	if s := n.Switch; s != nil {
		m.Switch = &pb.SwitchState{
			Capability: capability(s.Capability), Connected: s.Connected, Draining: s.Draining,
			Trees: uint32(s.Trees), SlotsUsed: uint32(s.SlotsUsed), SlotsMost: uint32(s.SlotsMost), SlotsWanted: uint32(s.Wanted), AgentVersion: s.AgentVersion, Unusable: s.Unusable,
			Cpu: s.CPU, Agent: s.Agent,
		}
	}
	return m
}

func (r *reader) fabricNode(m *pb.Node) FabricNode {
	n := FabricNode{Name: m.GetName(), Up: m.GetUp(), Why: m.GetWhy(), Speed: r.speed("speed", m.GetSpeed())}
	if s := m.GetSwitch(); s != nil {
		n.Switch = &SwitchState{
			Capability: r.capability(s.GetCapability()), Connected: s.GetConnected(), Draining: s.GetDraining(),
			Trees: r.int("switch.trees", s.GetTrees()), SlotsUsed: r.int("switch.slots_used", s.GetSlotsUsed()),
			SlotsMost: r.int("switch.slots_most", s.GetSlotsMost()), Wanted: r.int("switch.slots_wanted", s.GetSlotsWanted()), AgentVersion: s.GetAgentVersion(), Unusable: s.GetUnusable(),
			CPU: r.amount("switch.cpu", s.GetCpu()), Agent: s.GetAgent(),
		}
	}
	return n
}

func fabricLink(l FabricLink) *pb.Link {
	return &pb.Link{
		A: fabricEnd(l.A), B: fabricEnd(l.B), Up: l.Up, Why: l.Why, Bandwidth: uint64(l.Carries.Bandwidth),
		Latency: duration(l.Carries.Latency), Trees: uint32(l.Trees), Mismatches: each(l.Mismatches, linkMismatch), Foreign: l.Foreign,
	}
}

func (r *reader) fabricLink(m *pb.Link) FabricLink {
	if m.GetBandwidth() > math.MaxInt64 {
		r.fail("links.bandwidth", "%d bit/s", m.GetBandwidth())
	}
	return FabricLink{
		A: r.fabricEnd(m.GetA()), B: r.fabricEnd(m.GetB()), Up: m.GetUp(), Why: m.GetWhy(),
		Carries: topology.LinkSpec{Bandwidth: int64(m.GetBandwidth()), Latency: r.duration("links.latency", m.GetLatency())},
		Trees:   r.int("links.trees", m.GetTrees()), Mismatches: each(m.GetMismatches(), mismatchOf),
		Foreign: r.amount("links.foreign", m.GetForeign()),
	}
}

func fabricEnd(e FabricEnd) *pb.LinkEnd { return &pb.LinkEnd{Node: e.Node, Port: uint32(e.Port)} }

func (r *reader) fabricEnd(m *pb.LinkEnd) FabricEnd {
	return FabricEnd{m.GetNode(), topology.Port(r.uint16("links.port", m.GetPort()))}
}
