package gnmi

import (
	"fmt"
	"strings"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/proto/gnmi_ext"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// TestNotUTF8: a name that no message can have ends no stream.
func TestNotUTF8(t *testing.T) {
	g := newTarget(t)
	g.change(func(d *openconfig.Device) {
		d.Name = "leaf\xff"
		d.Interfaces["\xfe"] = &openconfig.Interface{Name: "\xfe", Oper: openconfig.Up}
	})
	s := g.subscribe(g.list(pb.SubscriptionList_STREAM, onChange, "/interfaces/interface/state/oper-status", "/system/state/hostname"))
	s.await("/interfaces/interface[name=\ufffd]/state/oper-status", "UP")
	s.await("/system/state/hostname", "leaf\ufffd")
}

// TestHugeAnswer: a request cannot have everything sent for each of its many paths.
func TestHugeAnswer(t *testing.T) {
	g := newTarget(t)
	g.change(func(d *openconfig.Device) {
		for i := range 50 {
			name := fmt.Sprint("eth", i)
			d.Interfaces[name] = &openconfig.Interface{Name: name, Oper: openconfig.Up, Admin: openconfig.Up, MTU: 9000, Index: 1}
		}
	})
	g.subscribe(g.list(pb.SubscriptionList_STREAM, onChange, "/interfaces/interface[name=eth49]")).await("/interfaces/interface[name=eth49]/state/mtu", "9000")
	m := &pb.GetRequest{}
	for range maxPaths {
		m.Path = append(m.Path, &pb.Path{})
	}
	for _, as := range []pb.Encoding{pb.Encoding_PROTO, pb.Encoding_JSON_IETF} {
		m.Encoding = as
		if _, err := g.Get(g.ctx, m); status.Code(err) != codes.ResourceExhausted || !strings.HasPrefix(status.Convert(err).Message(), "the answer") {
			t.Errorf("as %v: %v", as, err)
		}
	}
}

// TestExtensions: what a request means only with an extension is not done without it.
func TestExtensions(t *testing.T) {
	g := newTarget(t)
	commit := &gnmi_ext.Extension{Ext: &gnmi_ext.Extension_Commit{Commit: &gnmi_ext.Commit{Id: "x"}}}
	history := &gnmi_ext.Extension{Ext: &gnmi_ext.Extension_History{History: &gnmi_ext.History{}}}
	arbitration := &gnmi_ext.Extension{Ext: &gnmi_ext.Extension_MasterArbitration{MasterArbitration: &gnmi_ext.MasterArbitration{}}}
	other := &gnmi_ext.Extension{Ext: &gnmi_ext.Extension_RegisteredExt{RegisteredExt: &gnmi_ext.RegisteredExtension{Id: 999}}}
	for _, e := range []*gnmi_ext.Extension{commit, arbitration} {
		_, err := g.Set(g.ctx, &pb.SetRequest{Delete: g.paths("/tributary/config/drain"), Extension: []*gnmi_ext.Extension{other, e}})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%v: %v", e, err)
		}
	}
	if _, err := g.Set(g.ctx, &pb.SetRequest{Extension: []*gnmi_ext.Extension{other}}); err != nil {
		t.Error(err)
	}
	stream, err := g.Subscribe(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	send(t, stream, &pb.SubscribeRequest{
		Request:   &pb.SubscribeRequest_Subscribe{Subscribe: g.list(pb.SubscriptionList_ONCE, nil, "/system")},
		Extension: []*gnmi_ext.Extension{history},
	})
	if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
		t.Errorf("%v: %v", history, err)
	}
	if g.drains != 0 {
		t.Errorf("%d changes", g.drains)
	}
}
