package attack_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "github.com/openconfig/gnmi/proto/gnmi" // its services are found by their names
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// mayCall reads who may call what from docs/trust.md.
func mayCall(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+\\.[A-Za-z]+)` \\| ([a-z, ]+) \\|").FindAllStringSubmatch(string(text), -1) {
		roles[row[1]] = row[2]
	}
	if len(roles) < 20 {
		t.Fatalf("docs/trust.md has %d methods", len(roles))
	}
	return roles
}

// connect returns a connection with a server of gRPC, as somebody, or in plaintext or without a
// certificate.
func connect(t *testing.T, to string, with credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(to, grpc.WithTransportCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// forgeries returns valid requests of a type about the victims, and each with each field forged.
func (f *fabric) forgeries(d protoreflect.MessageDescriptor) (all []proto.Message) {
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		f.Fatal(err)
	}
	base := kind.New()
	f.fill(base, 0)
	all = append(all, kind.New().Interface(), base.Interface())
	f.vary(base, 0, func() { all = append(all, proto.Clone(base.Interface())) })
	return all
}

// victims are values that mean the victims, by the names of fields.
func (f *fabric) victims(name string) any {
	switch g := f.groups[0]; name {
	case "group":
		return g.number
	case "rank":
		return uint32(1)
	case "epoch", "entered", "lost":
		return g.comms[0].Stats().Epoch
	case "name":
		return f.name(g)
	case "members":
		return []string{"h0", "h1", "h3", "h4"}
	case "switch":
		return "leaf-0"
	case "data_address":
		return "127.0.0.1:9"
	case "chunk_bytes":
		return uint32(1432)
	case "window":
		return uint32(64)
	}
	return nil
}

// fill sets the fields of a request; of alternatives the last.
func (f *fabric) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		if d.IsMap() || depth > 2 || d.ContainingOneof() != nil && m.WhichOneof(d.ContainingOneof()) != nil {
			continue
		}
		switch v := f.victims(string(d.Name())).(type) {
		case []string:
			for _, s := range v {
				if d.IsList() && d.Kind() == protoreflect.StringKind {
					m.Mutable(d).List().Append(protoreflect.ValueOfString(s))
				}
			}
		case string:
			if d.Kind() == protoreflect.StringKind && !d.IsList() {
				m.Set(d, protoreflect.ValueOfString(v))
			}
		case uint32:
			if d.Kind() == protoreflect.Uint32Kind && !d.IsList() {
				m.Set(d, protoreflect.ValueOfUint32(v))
			}
		default:
			if d.Kind() == protoreflect.MessageKind && !d.IsList() {
				f.fill(m.Mutable(d).Message(), depth+1)
			}
		}
	}
}

// vary sets each field of m to each forged value in turn, and calls then.
func (f *fabric) vary(m protoreflect.Message, depth int, then func()) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		d := fields.Get(i)
		had, before := m.Has(d), proto.Clone(m.Interface())
		switch {
		case d.IsMap():
		case d.Kind() == protoreflect.MessageKind && !d.IsList():
			if depth < 3 {
				if !had {
					f.fill(m.Mutable(d).Message(), depth+1)
					then()
				}
				f.vary(m.Mutable(d).Message(), depth+1, then)
			}
		default:
			for _, v := range f.values(d) {
				if d.IsList() {
					m.Clear(d)
					l := m.Mutable(d).List()
					for range 3 {
						l.Append(v)
					}
				} else {
					m.Set(d, v)
				}
				then()
			}
		}
		proto.Reset(m.Interface())
		proto.Merge(m.Interface(), before)
	}
}

// values are forged ones of a field, or of an element of a list.
func (f *fabric) values(d protoreflect.FieldDescriptor) (all []protoreflect.Value) {
	switch d.Kind() {
	case protoreflect.BoolKind:
		return []protoreflect.Value{protoreflect.ValueOfBool(true)}
	case protoreflect.EnumKind:
		return []protoreflect.Value{protoreflect.ValueOfEnum(1), protoreflect.ValueOfEnum(math.MaxInt32)}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		for _, g := range f.groups {
			all = append(all, protoreflect.ValueOfUint32(g.number))
		}
		return append(all, protoreflect.ValueOfUint32(0), protoreflect.ValueOfUint32(math.MaxUint32))
	case protoreflect.Int32Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt32(-1)}
	case protoreflect.Int64Kind:
		return []protoreflect.Value{protoreflect.ValueOfInt64(-1), protoreflect.ValueOfInt64(math.MaxInt64)}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return []protoreflect.Value{protoreflect.ValueOfUint64(1), protoreflect.ValueOfUint64(math.MaxUint64)}
	case protoreflect.DoubleKind:
		return []protoreflect.Value{protoreflect.ValueOfFloat64(math.NaN()), protoreflect.ValueOfFloat64(-1)}
	case protoreflect.StringKind:
		for _, g := range f.groups {
			all = append(all, protoreflect.ValueOfString(f.name(g)))
		}
		for _, s := range []string{"", "h0", "leaf-0", "127.0.0.1:1", "\x00", strings.Repeat("x", 1<<16)} {
			all = append(all, protoreflect.ValueOfString(s))
		}
	case protoreflect.BytesKind:
		return []protoreflect.Value{protoreflect.ValueOfBytes([]byte{1}), protoreflect.ValueOfBytes(make([]byte, 1<<16))}
	case protoreflect.MessageKind: // of a list
		kind, err := protoregistry.GlobalTypes.FindMessageByName(d.Message().FullName())
		if err != nil {
			f.Fatal(err)
		}
		m := kind.New()
		f.fill(m, 2)
		return []protoreflect.Value{protoreflect.ValueOfMessage(m)}
	default:
	}
	return all
}

// name returns the name by which the manager knows a group.
func (f *fabric) name(g *group) string {
	for _, s := range f.list {
		if s.Group == g.number {
			return s.Name
		}
	}
	return g.name
}

// call calls a method with one request, and returns what is answered before the error.
func (f *fabric) call(c *grpc.ClientConn, d protoreflect.MethodDescriptor, request proto.Message) (answers []proto.Message, err error) {
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	method := "/" + string(d.Parent().FullName()) + "/" + string(d.Name())
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if err != nil {
		return nil, err
	}
	s, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(request); err != nil && !errors.Is(err, io.EOF) { // at its end RecvMsg says why
		return nil, err
	}
	_ = s.CloseSend() // likewise
	for {
		answer := kind.New().Interface()
		if err := s.RecvMsg(answer); err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
}

// services are those of the manager, and of the agents.
var services = map[bool][]protoreflect.FullName{
	true:  {"tributary.offload.v1.Manager", "gnmi.gNMI"},
	false: {"tributary.offload.v1.SwitchAgent", "gnmi.gNMI"},
}

// testRoles: everybody calls every method with every field forged: who may not call it is refused,
// whatever the request says.
func (f *fabric) testRoles(t *testing.T) {
	allowed := mayCall(t)
	callers := []struct {
		name, role string
		with       credentials.TransportCredentials
	}{
		{"nothing", "", insecure.NewCredentials()},
		{"nothing", "", credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})}, //nolint:gosec // the attacker does not care
	}
	for name, id := range map[string]pki.Identity{
		"a host's certificate": {Role: pki.Host, Name: mallory}, "an agent's certificate": {Role: pki.Agent, Name: "leaf-1"},
		"an operator's certificate": {Role: pki.Operator, Name: "me"}, "a manager's certificate": {Role: pki.Manager, Name: "m"},
	} {
		callers = append(callers, struct {
			name, role string
			with       credentials.TransportCredentials
		}{name, string(id.Role), credentials.NewTLS(f.source(id).Client(pki.Want{}))})
	}
	f.under(t, func() {
		for isManager, names := range services {
			to := f.agents["leaf-0"].Addr()
			if isManager {
				to = f.manager.Addr()
			}
			for _, caller := range callers {
				c := connect(t, to, caller.with)
				for _, service := range names {
					d, err := protoregistry.GlobalFiles.FindDescriptorByName(service)
					if err != nil {
						t.Fatal(err)
					}
					methods := d.(protoreflect.ServiceDescriptor).Methods()
					for i := range methods.Len() {
						m := methods.Get(i)
						roles, isKnown := allowed[string(service.Name())+"."+string(m.Name())]
						if service == "tributary.offload.v1.Manager" != isManager && service != "gnmi.gNMI" || !isKnown {
							t.Errorf("docs/trust.md lacks %s", m.FullName())
						}
						if caller.role != "" && slices.Contains(strings.Split(roles, ", "), caller.role) {
							continue
						}
						f.denied(t, caller.name, caller.role != "" && caller.role != string(pki.Agent), c, m)
					}
				}
			}
		}
	})
}

// denied calls a method that the caller must not call. An agent's server and a manager's are one
// protocol; a manager has no gNMI. An agent's certificate is for servers alone.
func (f *fabric) denied(t *testing.T, who string, canConnect bool, c *grpc.ClientConn, m protoreflect.MethodDescriptor) {
	t.Helper()
	r := f.matrix.of(who, "gRPC, methods of other roles")
	for _, request := range fewer(f.forgeries(m.Input())) {
		answers, err := f.call(c, m, request)
		r.tried, r.refused, r.in = r.tried+1, r.refused+1, r.in+proto.Size(request)
		code := status.Code(err)
		isRefused := code == codes.PermissionDenied || code == codes.Unimplemented || code == codes.Internal && isInvalid(err)
		if !canConnect {
			isRefused = code == codes.Unavailable
		}
		if len(answers) > 0 || !isRefused {
			t.Errorf("%s: %s with %.200v: %v, %v", who, m.FullName(), request, answers, err)
		}
	}
}

// isInvalid reports whether a request could not even be written.
func isInvalid(err error) bool { return strings.Contains(err.Error(), "marshal") }

// testHosts: what hosts may call, mallory calls about the victims, with every field forged; and h1, a
// member, speaks for other ranks.
func (f *fabric) testHosts(t *testing.T) {
	services := pb.File_api_offload_v1_manager_proto.Services().ByName("Manager").Methods()
	mallorys := connect(t, f.manager.Addr(), credentials.NewTLS(f.source(pki.Identity{Role: pki.Host, Name: mallory}).Client(pki.Want{})))
	f.under(t, func() {
		r := f.matrix.of("a host's certificate", "gRPC, methods of hosts")
		for _, name := range []protoreflect.Name{"CreateGroup", "ReleaseGroup", "ExplainGroup", "PlanGroup", "HostSession"} {
			m := services.ByName(name)
			for _, request := range fewer(f.forgeries(m.Input())) {
				answers, err := f.call(mallorys, m, request)
				f.noNews(t, r, request, answers, err)
			}
		}
		for _, g := range f.groups { // a group of mallory's own, under the victims' name
			request := &pb.CreateGroupRequest{Name: f.name(g), Members: []string{mallory, "h0"}, ChunkBytes: 1432, Window: 64}
			answers, err := f.call(mallorys, services.ByName("CreateGroup"), request)
			if f.noNews(t, r, request, answers, err); status.Code(err) != codes.AlreadyExists {
				t.Errorf("a group that has the name of another: %v", err)
			}
		}
	})
	own := connect(t, f.manager.Addr(), credentials.NewTLS(f.source(pki.Identity{Role: pki.Host, Name: "h1"}).Client(pki.Want{})))
	f.under(t, func() {
		r := f.matrix.of("a member, as another rank", "gRPC, methods of hosts")
		g := f.groups[0]
		for _, rank := range []uint32{0, 2, 3, 99, math.MaxUint32} {
			watch := &pb.Watch{Group: g.number, Rank: rank, DataAddress: "127.0.0.1:9"}
			report := &pb.Report{Group: g.number, Rank: rank, Entered: 1 << 30, Lost: g.comms[0].Stats().Epoch, Silent: true, Transport: pb.Transport_TRANSPORT_HOST_TREE}
			for _, request := range []*pb.HostSessionRequest{
				{Request: &pb.HostSessionRequest_Watch{Watch: watch}},
				{Request: &pb.HostSessionRequest_Unwatch{Unwatch: &pb.Unwatch{Group: g.number, Rank: rank, Over: true}}},
				{Request: &pb.HostSessionRequest_Report{Report: report}},
			} {
				answers, err := f.call(own, services.ByName("HostSession"), request)
				f.noNews(t, r, request, answers, err)
			}
		}
	})
}

// noNews checks that nothing that was answered is of the victims, or is a success.
func (f *fabric) noNews(t *testing.T, r *tally, request proto.Message, answers []proto.Message, err error) {
	t.Helper()
	r.tried, r.in = r.tried+1, r.in+proto.Size(request)
	isRefused := len(answers) == 0 && err != nil
	for _, a := range answers {
		r.out += proto.Size(a)
		switch e := a.(type) {
		case *pb.HostSessionResponse:
			if e.GetOffer() != nil || e.GetWithdrawal() != nil || e.GetLinks() != nil || e.GetReply() != nil && e.GetReply().GetProblem() == nil {
				t.Errorf("%.200v is answered by %v", request, e)
			}
			isRefused = isRefused || e.GetReply() != nil || e.GetNotice() != nil
		default:
			t.Errorf("%.200v is answered by %.200v", request, a)
		}
	}
	if isRefused || len(answers) == 0 {
		r.refused++
		return
	}
	r.answered++
}
