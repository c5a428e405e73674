package gnmi

import (
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestSet(t *testing.T) {
	g := newTarget(t)
	truth := func(b bool) *pb.TypedValue { return &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: b}} }
	drain := g.path("/tributary/config/drain")
	update := func(v *pb.TypedValue) *pb.SetRequest {
		return &pb.SetRequest{Prefix: &pb.Path{Target: "x"}, Update: []*pb.Update{{Path: drain, Val: v}}}
	}
	for _, test := range []struct {
		name    string
		request *pb.SetRequest
		code    codes.Code
		drains  bool
	}{
		{"update", update(truth(true)), codes.OK, true},
		{"delete", &pb.SetRequest{Delete: []*pb.Path{drain}}, codes.OK, false},
		{"JSON_IETF", update(&pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: []byte("true")}}), codes.OK, true},
		{"delete, replace and update", &pb.SetRequest{
			Delete: []*pb.Path{drain}, Replace: []*pb.Update{{Path: drain, Val: truth(true)}}, Update: []*pb.Update{{Path: drain, Val: truth(false)}},
		}, codes.OK, false},
		{"nothing", &pb.SetRequest{}, codes.OK, false},
		{"one is wrong", &pb.SetRequest{Replace: []*pb.Update{{Path: drain, Val: truth(true)}}, Update: []*pb.Update{{Path: g.path("/system/state/hostname"), Val: truth(true)}}}, codes.InvalidArgument, false},
		{"unknown", &pb.SetRequest{Update: []*pb.Update{{Path: g.path("/bgp"), Val: truth(true)}}}, codes.NotFound, false},
		{"delete of another", &pb.SetRequest{Delete: g.paths("/interfaces")}, codes.InvalidArgument, false},
		{"wildcard", &pb.SetRequest{Update: []*pb.Update{{Path: g.path("/tributary/*/drain"), Val: truth(true)}}}, codes.InvalidArgument, false},
		{"no value", &pb.SetRequest{Update: []*pb.Update{{Path: drain}}}, codes.InvalidArgument, false},
		{"a number", update(&pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: 1}}), codes.InvalidArgument, false},
		{"malformed JSON", update(&pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: []byte("tru")}}), codes.InvalidArgument, false},
		{"ASCII", update(&pb.TypedValue{Value: &pb.TypedValue_AsciiVal{AsciiVal: "true"}}), codes.Unimplemented, false},
		{"union_replace", &pb.SetRequest{UnionReplace: []*pb.Update{{Path: drain, Val: truth(true)}}}, codes.Unimplemented, false},
	} {
		answer, err := g.Set(g.ctx, test.request)
		if status.Code(err) != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
		n := len(test.request.GetDelete()) + len(test.request.GetReplace()) + len(test.request.GetUpdate())
		if err == nil && (len(answer.GetResponse()) != n || answer.GetPrefix().GetTarget() != test.request.GetPrefix().GetTarget()) {
			t.Errorf("%s: %v", test.name, answer)
		}
		g.mu.Lock()
		if g.device.Agent.Draining != test.drains {
			t.Errorf("%s: drains %v", test.name, g.device.Agent.Draining)
		}
		g.mu.Unlock()
	}
	if g.drains != 4 {
		t.Errorf("%d changes", g.drains)
	}
}

// TestSetAround: what the leaf is in can be set as JSON, and deleted (gNMI specification,
// sections 3.4.4 and 3.4.6).
func TestSetAround(t *testing.T) {
	g := newTarget(t)
	text := func(s string) *pb.TypedValue {
		return &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(s)}}
	}
	update := func(path, value string) *pb.SetRequest {
		return &pb.SetRequest{Update: []*pb.Update{{Path: g.path(path), Val: text(value)}}}
	}
	replace := func(path, value string) *pb.SetRequest {
		return &pb.SetRequest{Replace: update(path, value).GetUpdate()}
	}
	remove := func(path string) *pb.SetRequest { return &pb.SetRequest{Delete: g.paths(path)} }
	const on = `{"tributary:drain": true}`
	for _, test := range []struct {
		name    string
		request *pb.SetRequest
		code    codes.Code
		before  bool
		drains  bool
	}{
		{"container", update("/tributary/config", on), codes.OK, false, true},
		{"container's container", update("/tributary", `{"config": {"drain": true}}`), codes.OK, false, true},
		{"root", update("/", `{"tributary:tributary": {"config": {"drain": true}}}`), codes.OK, false, true},
		{"update without it", update("/tributary/config", `{}`), codes.OK, true, true},
		{"replace without it", replace("/tributary/config", `{}`), codes.OK, true, false},
		{"replace", replace("/tributary", `{"config": `+on+`}`), codes.OK, false, true},
		{"delete of the container", remove("/tributary/config"), codes.OK, true, false},
		{"delete of everything", remove("/"), codes.OK, true, false},
		{"delete by wildcards", remove("/.../drain"), codes.OK, true, false},
		{"delete of another origin", &pb.SetRequest{Delete: []*pb.Path{{Origin: "openconfig"}}}, codes.InvalidArgument, true, true},
		{"another origin", &pb.SetRequest{Prefix: &pb.Path{Origin: "openconfig"}, Update: update("/", `{"tributary": {"config": `+on+`}}`).GetUpdate()}, codes.InvalidArgument, false, false},
		{"wildcard", replace("/*/config", `{}`), codes.InvalidArgument, true, true},
		{"many wildcards", update("/.../.../.../.../drain", `true`), codes.InvalidArgument, false, false},
		{"an unknown member", update("/tributary/config", `{"drain": true, "x": 1}`), codes.InvalidArgument, false, false},
		{"a state", update("/tributary", `{"state": {"drain": true}}`), codes.InvalidArgument, false, false},
		{"a list", update("/tributary/config", `[]`), codes.InvalidArgument, false, false},
		{"a scalar", update("/tributary/config", `true`), codes.InvalidArgument, false, false},
		{"two values", update("/tributary/config", on+on), codes.InvalidArgument, false, false},
		{"prefix", &pb.SetRequest{
			Prefix: &pb.Path{Target: "x", Elem: g.path("/tributary").GetElem()}, Update: update("/config", on).GetUpdate(),
		}, codes.OK, false, true},
	} {
		g.mu.Lock()
		g.device.Agent.Draining = test.before
		g.mu.Unlock()
		answer, err := g.Set(g.ctx, test.request)
		if status.Code(err) != test.code {
			t.Errorf("%s: %v", test.name, err)
		}
		if err == nil && (!proto.Equal(answer.GetPrefix(), test.request.GetPrefix()) || len(answer.GetResponse()) != 1) {
			t.Errorf("%s: %v", test.name, answer)
		}
		g.mu.Lock()
		if g.device.Agent.Draining != test.drains {
			t.Errorf("%s: drains %v", test.name, g.device.Agent.Draining)
		}
		g.mu.Unlock()
	}
}
