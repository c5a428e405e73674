package agentd_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/ygot/ygot"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
)

// dialTelemetry returns a gNMI client of an agent.
func dialTelemetry(t *testing.T, d *agentd.Daemon) pb.GNMIClient {
	t.Helper()
	conn, err := grpc.NewClient(d.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewGNMIClient(conn)
}

func gnmiPath(t *testing.T, s string) *pb.Path {
	t.Helper()
	p, err := ygot.StringToStructuredPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// changes is a stream on change.
type changes struct {
	*testing.T
	stream grpc.BidiStreamingClient[pb.SubscribeRequest, pb.SubscribeResponse]
	leaves map[string]string
}

func subscribe(ctx context.Context, t *testing.T, client pb.GNMIClient, paths ...string) *changes {
	t.Helper()
	stream, err := client.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list := &pb.SubscriptionList{Encoding: pb.Encoding_PROTO}
	for _, p := range paths {
		list.Subscription = append(list.Subscription, &pb.Subscription{Path: gnmiPath(t, p), Mode: pb.SubscriptionMode_ON_CHANGE})
	}
	if err := stream.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: list}}); err != nil {
		t.Fatal(err)
	}
	return &changes{t, stream, map[string]string{}}
}

// await reads until a leaf has a value; "": it is not there.
func (c *changes) await(path, value string) {
	c.Helper()
	for c.leaves[path] != value {
		c.read()
	}
}

// read reads a message.
func (c *changes) read() {
	c.Helper()
	m, err := c.stream.Recv()
	if err != nil {
		c.Fatalf("%v, with %v", err, c.leaves)
	}
	for _, u := range m.GetUpdate().GetUpdate() {
		c.leaves[c.name(u.GetPath())] = text(u.GetVal())
	}
	for _, d := range m.GetUpdate().GetDelete() {
		delete(c.leaves, c.name(d))
	}
}

func (c *changes) name(p *pb.Path) string {
	c.Helper()
	s, err := ygot.PathToString(p)
	if err != nil {
		c.Fatal(err)
	}
	return s
}

// text is a value of the PROTO encoding.
func text(v *pb.TypedValue) string {
	switch x := v.GetValue().(type) {
	case *pb.TypedValue_StringVal:
		return x.StringVal
	case *pb.TypedValue_BoolVal:
		if x.BoolVal {
			return "true"
		}
		return "false"
	}
	return v.String()
}

// TestTelemetryFollows what happens to an agent's interfaces, and that it is drained,
// whoever has done it.
func TestTelemetryFollows(t *testing.T) {
	var source nic.Fake
	port := nic.Interface{
		Name: "port1", Index: 3, Enabled: true, Up: true, Ethernet: true, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, MTU: 9000,
		Speed: 100_000_000_000, Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Bits: []int{24},
	}
	source.Set([]nic.Interface{port, {Name: "port2"}}, nil)
	c := config()
	c.Interfaces = &source
	c.Processor = func() (processor.Time, error) { return processor.Time{Busy: 1e9, Total: 4e9}, nil }
	d, agent := start(t, c)
	client := dialTelemetry(t, d)
	ctx := testContext(t)
	s := subscribe(ctx, t, client, "/interfaces/interface/state/oper-status", "/interfaces/interface/state/last-change", "/interfaces/interface/subinterfaces", "/tributary/state/drain")
	s.await("/interfaces/interface[name=port1]/state/oper-status", "UP")
	s.await("/interfaces/interface[name=port1]/subinterfaces/subinterface[index=0]/ipv4/addresses/address[ip=10.0.0.1]/state/ip", "10.0.0.1")
	port.Up = false
	source.Set([]nic.Interface{port}, nil)
	s.await("/interfaces/interface[name=port1]/state/oper-status", "DOWN")
	s.await("/interfaces/interface[name=port2]/state/oper-status", "")
	if err := agent.Drain(ctx, true); err != nil {
		t.Fatal(err)
	}
	s.await("/tributary/state/drain", "true")
	set := &pb.SetRequest{Update: []*pb.Update{{
		Path: gnmiPath(t, "/tributary/config/drain"), Val: &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: false}},
	}}}
	if _, err := client.Set(ctx, set); err != nil {
		t.Fatal(err)
	}
	s.await("/tributary/state/drain", "false")
	if state, err := agent.State(ctx); err != nil || state.Draining {
		t.Errorf("draining: %v, %v", state.Draining, err)
	}
}

// leaves returns all that an agent reports.
func leaves(t *testing.T, d *agentd.Daemon) map[string]string {
	t.Helper()
	answer, err := dialTelemetry(t, d).Get(testContext(t), &pb.GetRequest{Path: []*pb.Path{{}}, Encoding: pb.Encoding_PROTO})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, u := range answer.GetNotification()[0].GetUpdate() {
		name, err := ygot.PathToString(u.GetPath())
		if err != nil {
			t.Fatal(err)
		}
		got[name] = u.GetVal().String()
	}
	return got
}

// TestTelemetryCounts what the trees, the machine and its interfaces count.
func TestTelemetryCounts(t *testing.T) {
	var source nic.Fake
	source.Set([]nic.Interface{{Name: "port1", Traffic: nic.Traffic{BytesIn: 7}, Losses: nic.Losses{DropsOut: 8}}}, nil)
	c := config()
	c.Interfaces = &source
	c.Processor = func() (processor.Time, error) { return processor.Time{Busy: 1e9, Total: 4e9}, nil }
	d, agent := start(t, c)
	newGroup(t, agent, 7, 2).install(t, agent)
	got := leaves(t, d)
	for path, want := range map[string]string{
		"/interfaces/interface[name=port1]/state/counters/in-octets":             `uint_val:7`,
		"/interfaces/interface[name=port1]/state/counters/out-discards":          `uint_val:8`,
		"/system/cpus/cpu[index=ALL]/state/index":                                `string_val:"ALL"`,
		"/system/cpus/cpu[index=ALL]/state/total/instant":                        `uint_val:25`,
		fmt.Sprintf("/system/processes/process[pid=%d]/state/name", os.Getpid()): `string_val:"switch-agent"`,
		"/tributary/trees/tree[group=7]/state/group":                             `uint_val:7`,
		"/tributary/trees/tree[group=7]/state/in-packets":                        `uint_val:0`,
		"/tributary/events/event[name=taken]/state/name":                         `string_val:"taken"`,
		"/tributary/state/switch":                                                `string_val:"leaf-0"`,
		"/tributary/state/address":                                               `string_val:"` + d.Addr() + `"`,
		"/tributary/state/data-plane":                                            `string_val:"software"`,
		"/tributary/state/drain":                                                 `bool_val:false`,
		"/tributary/capability/state/slots":                                      `uint_val:32768`,
	} {
		if got[path] != want {
			t.Errorf("%s is %s, want %s", path, got[path], want)
		}
	}
}
