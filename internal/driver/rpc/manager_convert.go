package rpc

import (
	"net/netip"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
)

func createRequest(c manager.Create) *pb.CreateGroupRequest {
	return &pb.CreateGroupRequest{
		Name: c.Name, Members: c.Members, ChunkBytes: uint32(c.ChunkBytes), Window: c.Window,
		Functions: functions(c.Functions), Types: types(c.Types), Purpose: purpose(c.Purpose), Bundle: bundle(c.Bundle), Protection: pb.Protection(c.Protection),
	}
}

func (r *reader) create(m *pb.CreateGroupRequest) manager.Create {
	return manager.Create{
		Name: m.GetName(), Members: m.GetMembers(), ChunkBytes: r.int("chunk_bytes", m.GetChunkBytes()), Window: m.GetWindow(),
		Functions: r.functions("functions", m.GetFunctions()), Types: r.types("types", m.GetTypes()),
		Purpose: r.purpose(m.GetPurpose()), Bundle: r.bundle(m.GetBundle()), Protection: r.protection(m.GetProtection()),
	}
}

func watch(w manager.Watch) *pb.Watch {
	return &pb.Watch{Group: w.Group, Rank: w.Rank, Of: w.Of, DataAddress: addrText(w.DataAddr), Entered: w.Entered, Speed: speed(w.Speed), Rails: each(w.Rails, hostRail), OnlyRails: w.OnlyRails}
}

func (r *reader) watch(m *pb.Watch) manager.Watch {
	return manager.Watch{
		Group: m.GetGroup(), Rank: m.GetRank(), Of: m.GetOf(), DataAddr: r.addr("data_address", m.GetDataAddress()), Entered: m.GetEntered(),
		Speed: r.speed("speed", m.GetSpeed()), Rails: r.rails(m.GetRails()), OnlyRails: m.GetOnlyRails(),
	}
}

func hostRail(x manager.Rail) *pb.HostRail {
	return &pb.HostRail{Name: x.Name, Address: x.Address.String(), Fault: x.Fault}
}

func (r *reader) rails(all []*pb.HostRail) []manager.Rail {
	if len(all) > rail.MaxRails {
		r.fail("rails", "%d of them, the most are %d", len(all), rail.MaxRails)
		return nil
	}
	return each(all, func(m *pb.HostRail) manager.Rail {
		a, err := netip.ParseAddr(m.GetAddress())
		if err != nil {
			r.fail("rails.address", "%q is not an IP address", m.GetAddress())
		}
		return manager.Rail{Name: r.text("rails.name", m.GetName(), rail.MaxText), Address: a.Unmap(), Fault: r.text("rails.fault", m.GetFault(), wire.MaxReason)}
	})
}

var transports = map[manager.Transport]pb.Transport{
	manager.NoTransport: pb.Transport_TRANSPORT_UNSPECIFIED, manager.Offload: pb.Transport_TRANSPORT_OFFLOAD, manager.HostTree: pb.Transport_TRANSPORT_HOST_TREE,
}

func report(p manager.Report) *pb.Report {
	return &pb.Report{
		Group: p.Group, Rank: p.Rank, Entered: p.Entered, Transport: transports[p.Transport], Lost: p.Lost, Silent: p.Silent,
		Reason: p.Reason, Demand: p.Demand,
	}
}

func (r *reader) report(m *pb.Report) manager.Report {
	return manager.Report{
		Group: m.GetGroup(), Rank: m.GetRank(), Entered: m.GetEntered(), Transport: keyOf(r, "transport", transports, m.GetTransport()),
		Lost: m.GetLost(), Silent: m.GetSilent(), Reason: r.text("reason", m.GetReason(), wire.MaxReason),
		Demand: m.GetDemand(),
	}
}

// keyOf is the inverse of a table of enumerators.
func keyOf[K, V comparable](r *reader, field string, table map[K]V, value V) K {
	for k, v := range table {
		if v == value {
			return k
		}
	}
	r.fail(field, "%v is not known to this version", value)
	var none K
	return none
}

func event(e manager.Event) *pb.HostSessionResponse {
	switch {
	case e.Reply != nil:
		return &pb.HostSessionResponse{Group: e.Reply.Group, Event: &pb.HostSessionResponse_Reply{Reply: &pb.Reply{
			Id: e.Reply.Req, Found: e.Reply.Found, Problem: problem(e.Reply.Err),
		}}}
	case e.Offer != nil:
		o := e.Offer
		return &pb.HostSessionResponse{Group: o.Group, Rank: o.Rank, Event: &pb.HostSessionResponse_Offer{Offer: &pb.Offer{
			Epoch: o.Epoch, Cookie: uint64(o.Cookie), Window: o.Window, Parent: addrText(o.Parent),
			Index: uint32(o.Index), Probes: uint32(o.Probes), Idle: duration(o.Idle), Reducers: each(o.Reducers, treeReducer), Source: ipText(o.Source),
			Protection: pb.Protection(o.Protection), Key: key(o.Key),
		}}}
	case e.Withdrawal != nil:
		w := e.Withdrawal
		return &pb.HostSessionResponse{Group: w.Group, Rank: w.Rank, Event: &pb.HostSessionResponse_Withdrawal{
			Withdrawal: &pb.Withdrawal{Epoch: w.Epoch, Why: w.Why},
		}}
	case e.Costs != nil:
		return &pb.HostSessionResponse{Event: &pb.HostSessionResponse_Costs{Costs: costs(e.Costs)}}
	case e.Links != nil:
		l := e.Links
		return &pb.HostSessionResponse{Group: l.Group, Rank: l.Rank, Event: &pb.HostSessionResponse_Links{Links: links(l.Links)}}
	default:
		n := e.Notice
		return &pb.HostSessionResponse{Group: n.Group, Rank: n.Rank, Event: &pb.HostSessionResponse_Notice{
			Notice: &pb.Notice{Problem: problem(n.Err), End: n.End},
		}}
	}
}

func costs(c *pathsel.Costs) *pb.Costs {
	all := map[string]uint64{}
	for name, d := range c.All() {
		if *d > 0 {
			all[name] = uint64(*d)
		}
	}
	return &pb.Costs{Nanoseconds: all, Processors: uint32(c.Processors), Links: links(c.Links)}
}

func uncosts(m *pb.Costs) *pathsel.Costs {
	c := &pathsel.Costs{Processors: int(m.GetProcessors()), Links: unlinks(m.GetLinks())}
	for name, d := range c.All() {
		*d = time.Duration(m.GetNanoseconds()[name])
	}
	return c
}

func links(l pathsel.Links) *pb.Links {
	return &pb.Links{Rate: uint64(l.Rate), Uplink: uint64(l.Uplink), Leaf: uint32(l.Leaf)}
}

func unlinks(m *pb.Links) pathsel.Links {
	return pathsel.Links{Rate: int64(m.GetRate()), Uplink: int64(m.GetUplink()), Leaf: int(m.GetLeaf())}
}

// event reads what was sent to a host; false for what this version does not know.
func (r *reader) event(m *pb.HostSessionResponse) (e manager.Event, known bool) {
	group, rank := m.GetGroup(), m.GetRank()
	switch v := m.GetEvent().(type) {
	case *pb.HostSessionResponse_Reply:
		e.Reply = &manager.Reply{
			Req: v.Reply.GetId(), Group: group, Found: v.Reply.GetFound(), Err: unproblem(v.Reply.GetProblem()),
		}
	case *pb.HostSessionResponse_Offer:
		o := v.Offer
		p := r.protection(o.GetProtection())
		e.Offer = &manager.Offer{
			Group: group, Rank: rank, Epoch: o.GetEpoch(), Cookie: wire.Cookie(o.GetCookie()),
			Window: o.GetWindow(), Parent: r.addr("offer.parent", o.GetParent()), Index: r.uint16("offer.index", o.GetIndex()),
			Probes: r.int("offer.probes", o.GetProbes()), Idle: r.duration("offer.idle", o.GetIdle()),
			Reducers: each(o.GetReducers(), r.treeReducer), Source: r.optionalIP("offer.source", o.GetSource()),
			Protection: p, Key: r.key("offer.key", o.GetKey(), p),
		}
	case *pb.HostSessionResponse_Withdrawal:
		e.Withdrawal = &manager.Withdrawal{
			Group: group, Rank: rank, Epoch: v.Withdrawal.GetEpoch(), Why: v.Withdrawal.GetWhy(),
		}
	case *pb.HostSessionResponse_Notice:
		e.Notice = &manager.Notice{
			Group: group, Rank: rank, Err: unproblem(v.Notice.GetProblem()), End: v.Notice.GetEnd(),
		}
	case *pb.HostSessionResponse_Costs:
		e.Costs = uncosts(v.Costs)
		return e, e.Costs.Validate() == nil
	case *pb.HostSessionResponse_Links:
		e.Links = &manager.Links{Group: group, Rank: rank, Links: unlinks(v.Links)}
		return e, e.Links.Validate() == nil
	default:
		return e, false
	}
	return e, true
}

func treeReducer(x manager.TreeReducer) *pb.TreeReducer {
	return &pb.TreeReducer{Reducer: reducer(x.Reducer), Switches: uint32(x.Switches), Names: x.Names}
}

func (r *reader) treeReducer(m *pb.TreeReducer) manager.TreeReducer {
	return manager.TreeReducer{
		Reducer: r.reducer(m.GetReducer()), Switches: r.int("offer.reducers.switches", m.GetSwitches()), Names: m.GetNames(),
	}
}

var states = map[manager.State]pb.GroupState{
	manager.Waiting: pb.GroupState_GROUP_STATE_WAITING, manager.Planning: pb.GroupState_GROUP_STATE_PLANNING,
	manager.Preparing: pb.GroupState_GROUP_STATE_PREPARING, manager.Active: pb.GroupState_GROUP_STATE_ACTIVE,
	manager.Refusing: pb.GroupState_GROUP_STATE_REFUSED, manager.Releasing: pb.GroupState_GROUP_STATE_RELEASING,
	manager.OnHosts: pb.GroupState_GROUP_STATE_HOSTS,
}

func summary(s manager.Summary) *pb.GroupSummary {
	return &pb.GroupSummary{
		Group: s.Group, Name: s.Name, Members: uint32(s.Members), Watching: uint32(s.Watching), State: states[s.State], Epoch: s.Epoch,
		Bundle: bundle(s.Bundle), Window: s.Window, Demand: s.Demand,
	}
}

func (r *reader) summary(m *pb.GroupSummary) manager.Summary {
	return manager.Summary{
		Group: m.GetGroup(), Name: m.GetName(), Members: r.int("members", m.GetMembers()),
		Watching: r.int("watching", m.GetWatching()), State: keyOf(r, "state", states, m.GetState()), Epoch: m.GetEpoch(),
		Bundle: r.bundle(m.GetBundle()), Window: m.GetWindow(), Demand: m.GetDemand(),
	}
}

var stages = map[manager.Stage]pb.TreeStage{
	manager.TreePlanned: pb.TreeStage_TREE_STAGE_PLANNED, manager.TreePrepared: pb.TreeStage_TREE_STAGE_PREPARED,
	manager.TreeActive: pb.TreeStage_TREE_STAGE_ACTIVE, manager.TreeDraining: pb.TreeStage_TREE_STAGE_DRAINING,
}

func explanation(e Explanation) *pb.ExplainGroupResponse {
	return &pb.ExplainGroupResponse{
		Summary: summary(e.Summary), Missing: e.Missing, Refusal: problem(e.Refusal),
		Offload: uint32(e.Offload), HostTree: uint32(e.Hosts), Mismatches: each(e.Mismatches, linkMismatch),
		Purpose: purpose(e.Purpose), Sisters: each(e.Sisters, summary), Trees: each(e.Trees, treeState),
		History: each(e.History, func(c Change) *pb.Change { return &pb.Change{At: timestamp(c.At), What: c.What} }),
	}
}

func (r *reader) explanation(m *pb.ExplainGroupResponse) Explanation {
	return Explanation{
		Summary: r.summary(m.GetSummary()), Missing: m.GetMissing(), Refusal: unproblem(m.GetRefusal()),
		Offload: r.int("offload", m.GetOffload()), Hosts: r.int("host_tree", m.GetHostTree()),
		Mismatches: each(m.GetMismatches(), mismatchOf), Purpose: r.purpose(m.GetPurpose()),
		Sisters: each(m.GetSisters(), r.summary), Trees: each(m.GetTrees(), r.treeState),
		History: each(m.GetHistory(), func(c *pb.Change) Change { return Change{timeOf(c.GetAt()), c.GetWhat()} }),
	}
}

// timestamp leaves the zero time out.
func timestamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// timeOf is the inverse of timestamp.
func timeOf(m *timestamppb.Timestamp) time.Time {
	if m == nil {
		return time.Time{}
	}
	return m.AsTime()
}
