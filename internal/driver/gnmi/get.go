package gnmi

import (
	"context"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// version is that of gNMI which is served.
const version = "0.10.0"

// models are the YANG modules that the paths are of.
var models = []*pb.ModelData{
	{Name: "openconfig-interfaces", Organization: "OpenConfig working group", Version: "3.8.1"},
	{Name: "openconfig-if-ethernet", Organization: "OpenConfig working group", Version: "2.18.0"},
	{Name: "openconfig-if-ip", Organization: "OpenConfig working group", Version: "3.9.0"},
	{Name: "openconfig-p4rt", Organization: "OpenConfig working group", Version: "1.0.0"},
	{Name: "openconfig-lldp", Organization: "OpenConfig working group", Version: "1.1.0"},
	{Name: "openconfig-system", Organization: "OpenConfig working group", Version: "3.1.0"},
	{Name: "tributary", Organization: "Tributary", Version: "2026-11-23"},
}

func served(m *pb.ModelData) bool {
	for _, x := range models {
		if x.GetName() == m.GetName() && (m.GetVersion() == "" || m.GetVersion() == x.GetVersion()) &&
			(m.GetOrganization() == "" || m.GetOrganization() == x.GetOrganization()) {
			return true
		}
	}
	return false
}

// Capabilities implements gNMI.
func (s *Server) Capabilities(context.Context, *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	return &pb.CapabilityResponse{SupportedModels: models, SupportedEncodings: encodings, GNMIVersion: version}, nil
}

// Get implements gNMI.
func (s *Server) Get(ctx context.Context, m *pb.GetRequest) (*pb.GetResponse, error) {
	w := &writer{reader: reader{prefix: m.GetPrefix()}, shared: &s.written, encoding: m.GetEncoding()}
	if err := w.check(m.GetUseModels()); err != nil {
		return nil, err
	}
	paths := m.GetPath()
	if len(paths) == 0 {
		paths = []*pb.Path{{}} // the prefix itself
	}
	if len(paths) > maxPaths {
		return nil, status.Errorf(codes.ResourceExhausted, "%d paths, and %d are allowed: use wildcards", len(paths), maxPaths)
	}
	if _, known := pb.GetRequest_DataType_name[int32(m.GetType())]; !known {
		return nil, status.Errorf(codes.InvalidArgument, "there is no such type of data: %v", m.GetType())
	}
	open := telemetry.Open{Mode: telemetry.Once}
	var wanted []requested
	for _, p := range paths {
		q, err := w.read(p)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, q)
		for _, p := range q.paths {
			open.Subscriptions = append(open.Subscriptions, telemetry.Subscription{Path: p})
		}
	}
	entries, err := s.once(ctx, open)
	if err != nil {
		return nil, err
	}
	selected, err := w.selected(wanted, entries, m.GetType())
	if err != nil {
		return nil, err
	}
	var answer pb.GetResponse
	for i := range wanted {
		answer.Notification = append(answer.Notification, w.notification(&wanted[i], selected[i]))
	}
	return &answer, nil
}

// once returns what is there now.
func (s *Server) once(ctx context.Context, o telemetry.Open) (all []telemetry.Entry, err error) {
	x, err := s.subscribe(ctx, o)
	defer x.leave()
	for err == nil {
		var b []telemetry.Entry
		if b, err = x.next(ctx, nil, nil); b == nil {
			break
		}
		all = append(all, b...)
	}
	return all, err
}

// maxLeaves bounds an answer, in which a leaf is once for each path that selects it.
const maxLeaves = 1 << 17

// selected returns what each path selects of the wanted type.
func (w *writer) selected(wanted []requested, entries []telemetry.Entry, of pb.GetRequest_DataType) ([][]*telemetry.Entry, error) {
	all := make([][]*telemetry.Entry, len(wanted))
	n := 0
	for i := range wanted {
		there := false
		for j := range entries {
			e := &entries[j]
			if e.Kind != telemetry.Update || !wanted[i].selects(e.Path) {
				continue
			}
			there = true
			if !w.allows(e.Leaf) || of == pb.GetRequest_CONFIG && !e.Leaf.Config ||
				(of == pb.GetRequest_STATE || of == pb.GetRequest_OPERATIONAL) && e.Leaf.Config {
				continue
			}
			if n++; n > maxLeaves {
				return nil, status.Errorf(codes.ResourceExhausted, "the answer has more than %d leaves: ask for less, or subscribe with mode ONCE", maxLeaves)
			}
			all[i] = append(all[i], e)
		}
		if !there {
			return nil, status.Errorf(codes.NotFound, "nothing is at %s at present", wanted[i].path)
		}
	}
	return all, nil
}

// notification answers one path.
func (w *writer) notification(q *requested, selected []*telemetry.Entry) *pb.Notification {
	n := &pb.Notification{Timestamp: time.Now().UnixNano(), Prefix: w.answer()}
	if w.encoding == pb.Encoding_PROTO {
		for _, e := range selected {
			n.Update = append(n.Update, &pb.Update{Path: w.leaf(e), Val: typed(e.Leaf, e.Value, w.encoding)})
		}
		return n
	}
	var nodes []openconfig.Path // that are asked for, in order
	below := map[string][]*telemetry.Entry{}
	for _, e := range selected {
		node := e.Path
		if !q.deep() {
			node = e.Path[:min(len(q.path), len(e.Path))]
		}
		name := node.String()
		if below[name] == nil {
			nodes = append(nodes, node)
		}
		below[name] = append(below[name], e)
	}
	for _, node := range nodes {
		val := jsonValue(subtree(len(node), below[node.String()], w.encoding == pb.Encoding_JSON_IETF), w.encoding)
		n.Update = append(n.Update, &pb.Update{Path: w.path(node), Val: val})
	}
	return n
}

func (q *requested) selects(p openconfig.Path) bool {
	for _, x := range q.paths {
		if x.Covers(p) {
			return true
		}
	}
	return false
}

// deep reports whether the path has a wildcard for any number of elements: then it
// selects no nodes of one depth.
func (q *requested) deep() bool {
	for i := range q.path {
		if q.path[i].Name == openconfig.AnyDepth {
			return true
		}
	}
	return false
}
