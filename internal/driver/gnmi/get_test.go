package gnmi

import (
	"maps"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

func TestGet(t *testing.T) {
	g := newTarget(t)
	for _, test := range []struct {
		path string
		as   pb.Encoding
		of   pb.GetRequest_DataType
		want string // path=value ...
	}{
		{"/system/state/hostname", pb.Encoding_JSON_IETF, pb.GetRequest_ALL, `/system/state/hostname="leaf-0"`},
		{"/system/state/boot-time", pb.Encoding_JSON_IETF, pb.GetRequest_ALL, `/system/state/boot-time="1152921504606846976"`},
		{"/system/state/boot-time", pb.Encoding_JSON, pb.GetRequest_ALL, `/system/state/boot-time=1152921504606846976`},
		{"/system/state/boot-time", pb.Encoding_PROTO, pb.GetRequest_ALL, `/system/state/boot-time=1152921504606846976`},
		{"/interfaces/interface[name=eth0]/ethernet", pb.Encoding_JSON_IETF, pb.GetRequest_ALL,
			`/interfaces/interface[name=eth0]/ethernet={"openconfig-if-ethernet:state":{"port-speed":"openconfig-if-ethernet:SPEED_100GB"}}`},
		{"/interfaces/interface[name=eth0]/subinterfaces", pb.Encoding_JSON_IETF, pb.GetRequest_ALL,
			`/interfaces/interface[name=eth0]/subinterfaces={"openconfig-interfaces:subinterface":[{"index":0,"openconfig-if-ip:ipv4":{"addresses":{"address":[{"ip":"10.0.0.1","state":{"ip":"10.0.0.1","prefix-length":24}}]}}}]}`},
		{"/interfaces/interface[name=eth1]/subinterfaces/subinterface", pb.Encoding_JSON_IETF, pb.GetRequest_ALL,
			`/interfaces/interface[name=eth1]/subinterfaces/subinterface[index=0]={"openconfig-if-ip:ipv4":{"addresses":{"address":[{"ip":"10.0.1.1","state":{"ip":"10.0.1.1","prefix-length":24}}]}},"openconfig-interfaces:index":0}`},
		{"/interfaces/interface[name=eth1]/ethernet", pb.Encoding_JSON, pb.GetRequest_ALL,
			`/interfaces/interface[name=eth1]/ethernet={"state":{"port-speed":"SPEED_100GB"}}`},
		{"/interfaces/interface/state/ifindex", pb.Encoding_JSON_IETF, pb.GetRequest_STATE,
			`/interfaces/interface[name=eth0]/state/ifindex=1 /interfaces/interface[name=eth1]/state/ifindex=2`},
		{"/interfaces/.../ip", pb.Encoding_PROTO, pb.GetRequest_ALL,
			`/interfaces/interface[name=eth0]/subinterfaces/subinterface[index=0]/ipv4/addresses/address[ip=10.0.0.1]/state/ip=10.0.0.1 ` +
				`/interfaces/interface[name=eth1]/subinterfaces/subinterface[index=0]/ipv4/addresses/address[ip=10.0.1.1]/state/ip=10.0.1.1`},
		{"/tributary/capability/state/functions", pb.Encoding_PROTO, pb.GetRequest_ALL, `/tributary/capability/state/functions=sum max`},
		{"/tributary/capability/state/functions", pb.Encoding_JSON_IETF, pb.GetRequest_ALL, `/tributary/capability/state/functions=["sum","max"]`},
		{"/tributary", pb.Encoding_JSON_IETF, pb.GetRequest_CONFIG, `/tributary={"tributary:config":{"drain":false}}`},
		{"/system/state", pb.Encoding_PROTO, pb.GetRequest_CONFIG, ``},
	} {
		answer, err := g.Get(g.ctx, &pb.GetRequest{Path: g.paths(test.path), Encoding: test.as, Type: test.of})
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		got := ""
		for _, u := range answer.GetNotification()[0].GetUpdate() {
			got += " " + g.name(u.GetPath()) + "=" + show(u.GetVal())
		}
		if len(got) > 0 {
			got = got[1:]
		}
		if got != test.want {
			t.Errorf("%s as %v of %v:\n%s\nwant\n%s", test.path, test.as, test.of, got, test.want)
		}
	}
	for path, code := range map[string]codes.Code{
		"/interfaces/interface[name=eth9]": codes.NotFound, "/bgp": codes.Unimplemented,
	} {
		if _, err := g.Get(g.ctx, &pb.GetRequest{Path: g.paths("/system", path)}); status.Code(err) != code {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestUseModels(t *testing.T) {
	g := newTarget(t)
	caps, err := g.Capabilities(g.ctx, &pb.CapabilityRequest{})
	if err != nil || caps.GetGNMIVersion() != version {
		t.Fatalf("%v, %v", caps, err)
	}
	used := map[string]bool{}
	for l := range openconfig.Schema() {
		for _, m := range l.Modules {
			used[m] = true
		}
	}
	delete(used, "")
	for _, m := range caps.GetSupportedModels() {
		if !used[m.GetName()] {
			t.Errorf("%v is listed, and has no leaf", m)
		}
		delete(used, m.GetName())
	}
	if len(used) > 0 {
		t.Errorf("%v are not listed", used)
	}
	answer, err := g.Get(g.ctx, &pb.GetRequest{
		Path: g.paths("/interfaces/interface[name=eth0]"), Encoding: pb.Encoding_PROTO, UseModels: []*pb.ModelData{{Name: "openconfig-interfaces"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range answer.GetNotification()[0].GetUpdate() {
		if e := u.GetPath().GetElem(); e[2].GetName() != "state" {
			t.Errorf("%s is of another model", g.name(u.GetPath()))
		}
	}
}

// TestEncodingsAgree: what is read from the JSON of a tree is what its leaves have.
func TestEncodingsAgree(t *testing.T) {
	g := newTarget(t)
	var first map[string]string
	for _, as := range []pb.Encoding{pb.Encoding_PROTO, pb.Encoding_JSON, pb.Encoding_JSON_IETF} {
		answer, err := g.Get(g.ctx, &pb.GetRequest{Path: g.paths("/"), Encoding: as, UseModels: []*pb.ModelData{
			{Name: "openconfig-interfaces"}, {Name: "openconfig-if-ethernet"}, {Name: "openconfig-if-ip"}, {Name: "openconfig-system"}, {Name: "tributary"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		var d openconfig.Device
		for _, u := range answer.GetNotification()[0].GetUpdate() {
			p, err := message.Path(nil, u.GetPath())
			if err != nil {
				t.Fatal(err)
			}
			for l, err := range message.Leaves(p, u.GetVal()) {
				if err == nil {
					_, err = d.Set(l.Path, l.Value)
				}
				if err != nil {
					t.Errorf("%v at %s: %v", as, l.Path, err)
				}
			}
		}
		for _, i := range d.Interfaces {
			i.Counters = openconfig.Counters{} // which count
		}
		leaves := map[string]string{}
		for path, v := range d.Leaves() {
			leaves[path] = v.String()
		}
		if first == nil {
			first = leaves
		}
		if !maps.Equal(leaves, first) || len(leaves) < 20 {
			t.Errorf("as %v:\n%v\nand as PROTO:\n%v", as, leaves, first)
		}
	}
}
