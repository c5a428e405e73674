package rpc

import (
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/wire"
)

func prepareRequest(p agent.Prepare) *pb.PrepareRequest {
	return &pb.PrepareRequest{
		Incarnation: p.Incarnation, Group: p.Group, Epoch: p.Epoch,
		Children: uint32(p.Children), Window: p.Window, ChunkBytes: uint32(p.ChunkBytes),
		Functions: functions(p.Functions), Types: types(p.Types), Lease: duration(p.Lease), Protection: pb.Protection(p.Protection),
	}
}

func (r *reader) prepare(m *pb.PrepareRequest) agent.Prepare {
	return agent.Prepare{
		Incarnation: m.GetIncarnation(), Group: m.GetGroup(), Epoch: m.GetEpoch(),
		Children: r.int("children", m.GetChildren()), Window: m.GetWindow(), ChunkBytes: r.int("chunk_bytes", m.GetChunkBytes()),
		Functions: r.functions("functions", m.GetFunctions()), Types: r.types("types", m.GetTypes()),
		Lease: r.duration("lease", m.GetLease()), Protection: r.protection(m.GetProtection()),
	}
}

func commitRequest(c agent.Commit) *pb.CommitRequest {
	g := &c.Config
	return &pb.CommitRequest{
		Incarnation: c.Incarnation, Group: g.Group, Epoch: g.Epoch, Cookie: uint64(g.Cookie),
		Window: g.Window, ChunkBytes: uint32(g.ChunkBytes), Parent: addrText(g.Parent), Index: uint32(g.Index),
		Probes: uint32(g.Probes), Lease: duration(g.Lease), Protection: pb.Protection(g.Protection), Key: key(g.Key),
		Children: each(g.Children, func(c switchreduce.Child) *pb.TreeChild {
			return &pb.TreeChild{Address: addrText(c.Addr), Lowest: c.Lowest, Cookie: uint64(c.Cookie), Key: key(c.Key)}
		}),
	}
}

func (r *reader) commit(m *pb.CommitRequest) agent.Commit {
	p := r.protection(m.GetProtection())
	c := agent.Commit{Incarnation: m.GetIncarnation(), Config: switchreduce.Config{
		Group: m.GetGroup(), Epoch: m.GetEpoch(), Cookie: wire.Cookie(m.GetCookie()),
		Window: m.GetWindow(), ChunkBytes: r.int("chunk_bytes", m.GetChunkBytes()),
		Parent: r.optionalAddr("parent", m.GetParent()), Index: r.uint16("index", m.GetIndex()),
		Probes: r.int("probes", m.GetProbes()), Lease: r.duration("lease", m.GetLease()), Protection: p,
		Children: each(m.GetChildren(), func(c *pb.TreeChild) switchreduce.Child {
			return switchreduce.Child{Addr: r.addr("children.address", c.GetAddress()), Lowest: c.GetLowest(), Cookie: r.childCookie(c.GetCookie()), Key: r.key("children.key", c.GetKey(), p)}
		}),
	}}
	if !c.Config.Parent.IsValid() {
		p = wire.Plain
	}
	c.Config.Key = r.key("key", m.GetKey(), p)
	return c
}

// childCookie refuses a manager that knows only one secret for a tree.
func (r *reader) childCookie(v uint64) wire.Cookie {
	if v == 0 {
		r.fail("children.cookie", "0: the manager is of an earlier version; upgrade it")
	}
	return wire.Cookie(v)
}

func removeRequest(m agent.Remove) *pb.RemoveRequest {
	return &pb.RemoveRequest{Incarnation: m.Incarnation, Group: m.Group, Epoch: m.Epoch}
}

func (r *reader) remove(m *pb.RemoveRequest) agent.Remove {
	return agent.Remove{
		Incarnation: m.GetIncarnation(), Group: m.GetGroup(), Epoch: m.GetEpoch(),
	}
}

func agentState(s AgentState) *pb.AgentState {
	return &pb.AgentState{
		Switch: s.Switch, Incarnation: s.Incarnation, Capability: capability(s.Capability), Draining: s.Draining,
		Version: s.Version, Interfaces: interfaces(s.Interfaces), Unusable: s.Unusable, Outlives: s.Outlives, TakesRoutes: s.TakesRoutes,
		Holds: each(s.Holds, func(h agent.Hold) *pb.Hold {
			return &pb.Hold{
				Group: h.Group, Epoch: h.Epoch, Window: h.Window, Committed: h.Committed,
				DataAddress: addrText(h.Addr), Reducer: reducer(h.Reducer),
			}
		}),
	}
}

func (r *reader) agentState(m *pb.AgentState) AgentState {
	return AgentState{
		Switch: m.GetSwitch(), Incarnation: m.GetIncarnation(), Capability: r.capability(m.GetCapability()), Draining: m.GetDraining(),
		Version: m.GetVersion(), Interfaces: r.interfaces(m.GetInterfaces()), Unusable: m.GetUnusable(), Outlives: m.GetOutlives(),
		TakesRoutes: m.GetTakesRoutes(),
		Holds: each(m.GetHolds(), func(h *pb.Hold) agent.Hold {
			return agent.Hold{
				Group: h.GetGroup(), Epoch: h.GetEpoch(), Window: h.GetWindow(), Committed: h.GetCommitted(),
				Addr: r.optionalAddr("holds.data_address", h.GetDataAddress()), Reducer: r.reducer(h.GetReducer()),
			}
		}),
	}
}

func agentCounters(c AgentCounters) *pb.GetCountersResponse {
	m := &pb.GetCountersResponse{Slots: uint32(c.Slots), SlotsUsed: uint32(c.SlotsUsed), Interfaces: interfaces(c.Interfaces)}
	if c.CPU.Total > 0 {
		m.Cpu = &pb.CPUTime{Busy: durationpb.New(c.CPU.Busy), Total: durationpb.New(c.CPU.Total)}
	}
	m.Trees = each(c.Trees, func(t TreeCounters) *pb.TreeCounters {
		return &pb.TreeCounters{
			Group:     t.Group,
			PacketsIn: t.PacketsIn, BytesIn: t.BytesIn, PacketsOut: t.PacketsOut, BytesOut: t.BytesOut,
			Refused: t.Refused, Overflowed: t.Overflowed, Events: t.Events, Drops: t.Drops,
		}
	})
	m.Epochs = each(c.Epochs, epochTrafficMessage)
	return m
}

func (r *reader) agentCounters(m *pb.GetCountersResponse) AgentCounters {
	return AgentCounters{
		Slots: r.int("slots", m.GetSlots()), SlotsUsed: r.int("slots_used", m.GetSlotsUsed()), Interfaces: r.interfaces(m.GetInterfaces()),
		CPU: r.cpuTime(m.GetCpu()),
		Trees: each(m.GetTrees(), func(t *pb.TreeCounters) TreeCounters {
			return TreeCounters{
				Group:     t.GetGroup(),
				PacketsIn: t.GetPacketsIn(), BytesIn: t.GetBytesIn(), PacketsOut: t.GetPacketsOut(), BytesOut: t.GetBytesOut(),
				Refused: t.GetRefused(), Overflowed: t.GetOverflowed(), Events: t.GetEvents(), Drops: t.GetDrops(),
			}
		}),
		Epochs: each(m.GetEpochs(), epochTraffic),
	}
}

// cpuTime reads one that can be: busy for no longer than there was time.
func (r *reader) cpuTime(m *pb.CPUTime) processor.Time {
	t := processor.Time{Busy: r.duration("cpu.busy", m.GetBusy()), Total: r.duration("cpu.total", m.GetTotal())}
	if t.Busy > t.Total {
		r.fail("cpu", "busy for %v of %v", t.Busy, t.Total)
	}
	return t
}

func agentEvent(e AgentEvent) *pb.WatchResponse {
	switch {
	case e.State != nil:
		return &pb.WatchResponse{Event: &pb.WatchResponse_State{State: agentState(*e.State)}}
	case e.Interfaces != nil:
		return &pb.WatchResponse{Event: &pb.WatchResponse_Interfaces{Interfaces: interfaces(e.Interfaces)}}
	}
	return &pb.WatchResponse{Event: &pb.WatchResponse_Ended{Ended: &pb.Ended{
		Incarnation: e.Ended.Incarnation, Group: e.Ended.Group, Epoch: e.Ended.Epoch,
		Why: endReasons[e.Ended.Why],
	}}}
}

var endReasons = map[agent.EndReason]pb.EndReason{
	agent.PrepareRanOut: pb.EndReason_END_REASON_NOT_COMMITTED,
	agent.LeaseRanOut:   pb.EndReason_END_REASON_NOT_RENEWED,
	agent.PlaneFailed:   pb.EndReason_END_REASON_DATA_PLANE,
}

// agentEvent returns false for a heartbeat, and for what this version does not
// know.
func (r *reader) agentEvent(m *pb.WatchResponse) (AgentEvent, bool) {
	switch e := m.GetEvent().(type) {
	case *pb.WatchResponse_State:
		s := r.agentState(e.State)
		return AgentEvent{State: &s}, true
	case *pb.WatchResponse_Ended:
		var unknown reader // a reason that this version does not know is none
		return AgentEvent{Ended: &agent.Ended{
			Incarnation: e.Ended.GetIncarnation(), Group: e.Ended.GetGroup(), Epoch: e.Ended.GetEpoch(),
			Why: keyOf(&unknown, "why", endReasons, e.Ended.GetWhy()),
		}}, true
	case *pb.WatchResponse_Interfaces:
		return AgentEvent{Interfaces: r.interfaces(e.Interfaces)}, true
	}
	return AgentEvent{}, false
}
