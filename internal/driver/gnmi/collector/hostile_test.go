package collector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// opened is a connection to a target that has all of OpenConfig's models, without one.
func opened(l Limits) *stream {
	c := &Config{Limits: l.filled(), Counts: new(Counts), Log: slog.New(slog.DiscardHandler)}
	s := newStream(c, &pace{rate: c.Limits.Rate, counts: c.Counts})
	s.request(pb.Encoding_PROTO, attempts[0], nil)
	return s
}

func inJSON(at *pb.Path, text string) *pb.Update {
	return &pb.Update{Path: at, Val: &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(text)}}}
}

// TestDeletesThatMatchNothing: a message that is full of them is read no faster than the
// rate, and its end does not wait for all of them.
func TestDeletesThatMatchNothing(t *testing.T) {
	s := opened(Limits{Rate: 1000})
	s.device.Interfaces = map[string]*openconfig.Interface{}
	for i := range 200 {
		name := fmt.Sprint("e", i)
		s.device.Interfaces[name] = &openconfig.Interface{Name: name, Oper: openconfig.Up}
	}
	n := &pb.Notification{}
	for range 100_000 {
		n.Delete = append(n.Delete, path(t, "/lldp"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.take(ctx, n); !errors.Is(err, context.Canceled) {
		t.Errorf("all were compared: %v", err)
	}
}

// TestMistakesOfOneUpdate are named by the first of them: all of their texts would take
// gigabytes.
func TestMistakesOfOneUpdate(t *testing.T) {
	s := opened(Limits{})
	list := path(t, "/interfaces/interface[name="+strings.Repeat("x", 4000)+"]/subinterfaces/subinterface")
	err := s.update(nil, inJSON(list, "["+strings.Repeat("7,", 10_000)+"7]"))
	if err == nil || len(err.Error()) > 2*openconfig.MaxPath {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

// TestJSONCounts: a target cannot have more read by sending it as JSON.
func TestJSONCounts(t *testing.T) {
	s := opened(Limits{})
	const ports = 1000
	text := `{"interface": [`
	for i := range ports {
		text += fmt.Sprintf(`{"name": "e%d", "state": {"name": "e%[1]d", "oper-status": "UP"}},`, i)
	}
	work, err := s.apply(t.Context(), &pb.Notification{Update: []*pb.Update{inJSON(path(t, "/interfaces"), strings.TrimSuffix(text, ",")+"]}")}})
	if err != nil || work < ports || len(s.device.Interfaces) != ports {
		t.Errorf("%d interfaces count as %d updates: %v", len(s.device.Interfaces), work, err)
	}
}

// TestAtomic: the updates of an atomic notification are all that there is at its prefix (gNMI
// specification, section 2.1.1).
func TestAtomic(t *testing.T) {
	s := opened(Limits{})
	const e1, e2 = "/interfaces/interface[name=e1]", "/interfaces/interface[name=e2]"
	for _, n := range []*pb.Notification{
		{Update: []*pb.Update{leaf(t, oper, "UP"), leaf(t, e1+"/state/admin-status", "UP"), leaf(t, e2+"/state/oper-status", "UP")}},
		{Atomic: true, Prefix: path(t, e1), Update: []*pb.Update{leaf(t, "/state/oper-status", "DOWN")}},
		{Atomic: true, Prefix: path(t, e2), Delete: []*pb.Path{path(t, "/state/admin-status")}}, // changes nothing
	} {
		if err := s.take(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for p, v := range s.device.Leaves() {
		got[p] = v.String()
	}
	want := map[string]string{oper: "DOWN", e1 + "/state/name": "e1", e2 + "/state/oper-status": "UP", e2 + "/state/name": "e2"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
}

// TestFullLists: what is there already is changed, also where a list has no more room.
func TestFullLists(t *testing.T) {
	s := opened(Limits{Entries: 2})
	const neighbor = "/lldp/interfaces/interface[name=e1]/neighbors/neighbor[id=1]"
	truth := func(name string, is bool) *pb.Update {
		return &pb.Update{Path: path(t, neighbor+"/capabilities/capability[name="+name+"]/state/enabled"), Val: &pb.TypedValue{Value: &pb.TypedValue_BoolVal{BoolVal: is}}}
	}
	address := func(a string) *pb.Update {
		return leaf(t, neighbor+"/mgmt-addresses/mgmt-address[address="+a+"]/state/address", a)
	}
	if err := s.take(t.Context(), &pb.Notification{Update: []*pb.Update{
		truth("ROUTER", false), truth("MAC_BRIDGE", false), truth("OTHER", true), truth("ROUTER", true),
		address("10.0.0.1"), address("10.0.0.2"), address("10.0.0.3"), address("10.0.0.2"),
	}}); err != nil {
		t.Fatal(err)
	}
	n := s.device.Interfaces["e1"].Neighbors[0]
	if !n.Can("ROUTER") || n.Can("OTHER") || len(n.Capabilities) != 2 || len(n.Management) != 2 || s.cfg.Counts.Beyond.Load() != 2 {
		t.Errorf("%+v, %d beyond", n, s.cfg.Counts.Beyond.Load())
	}
}

// TestNeverSynced: a target that never comes to an end with its first report is left, however
// much it sends.
func TestNeverSynced(t *testing.T) {
	e := collect(t, Config{
		Limits: Limits{Sync: 200 * time.Millisecond, MinRetry: time.Hour, MaxRetry: time.Hour},
		Address: serve(t, &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
			for i := 0; ; i++ {
				if err := send(s, updates(leaf(t, oper, []string{"UP", "DOWN"}[i%2]))); err != nil {
					return err
				}
			}
		}}),
	})
	if err := <-e.ended; !errors.Is(err, ErrSilent) {
		t.Errorf("it has ended with %v", err)
	}
	if len(e.reports) != 0 {
		t.Error("it was reported")
	}
}

// TestLongReason: what a target gives as a reason is shown in part, and on one line.
func TestLongReason(t *testing.T) {
	e := collect(t, Config{Address: serve(t, &target{capabilities: func(context.Context) (*pb.CapabilityResponse, error) {
		return nil, status.Error(codes.Internal, strings.Repeat("\x1b[31m", 10_000))
	}})})
	err := <-e.ended
	if text := err.Error(); status.Code(err) != codes.Internal || len(text) > 2000 || strings.Contains(text, "\x1b") {
		t.Errorf("%d bytes: %.100q", len(text), text)
	}
}

// TestRetry: a target whose connections end soon is dialled less and less often, also where
// it reports everything before.
func TestRetry(t *testing.T) {
	l := Limits{MinRetry: time.Second, MaxRetry: 5 * time.Second}
	ended := errors.New("ended")
	var last time.Duration
	for n, test := range []struct {
		isSynced bool
		lasted   time.Duration
		err      error
		want     time.Duration
	}{
		{false, 0, ended, time.Second},
		{false, time.Hour, ended, 2 * time.Second},
		{true, time.Millisecond, ended, 4 * time.Second},
		{true, time.Millisecond, ended, 5 * time.Second},
		{true, time.Minute, ended, time.Second},
		{true, time.Minute, ErrMalformed, 5 * time.Second},
		{true, time.Minute, ended, time.Second},
		{true, time.Millisecond, ended, 2 * time.Second},
	} {
		if last = l.retry(last, test.isSynced, test.lasted, test.err); last != test.want {
			t.Errorf("%d: %v, and not %v", n, last, test.want)
		}
	}
}

// TestNoProtobuf: a server that answers with what is no message of gNMI.
func TestNoProtobuf(t *testing.T) {
	e := collect(t, Config{Address: serve(t, nil, grpc.ForceServerCodec(garbage{}), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		return s.SendMsg("")
	}))})
	if err := <-e.ended; status.Code(err) != codes.Internal {
		t.Errorf("it has ended with %v", err)
	}
}

// garbage is a codec that writes what no message is.
type garbage struct{}

func (garbage) Marshal(any) ([]byte, error) { return []byte("\xff\xff\xff\xff"), nil }
func (garbage) Unmarshal([]byte, any) error { return nil }
func (garbage) Name() string                { return "garbage" }

// FuzzNotification: whatever a target sends, what is kept of it is within the limits.
func FuzzNotification(f *testing.F) {
	for _, n := range []*pb.Notification{
		{Update: []*pb.Update{leaf(f, oper, "UP"), leaf(f, hostname, "x")}, Delete: []*pb.Path{path(f, "/interfaces"), path(f, oper)}},
		{Atomic: true, Prefix: path(f, "/interfaces/interface[name=e1]"), Update: []*pb.Update{leaf(f, "/state/oper-status", "UP")}},
		{Update: []*pb.Update{inJSON(path(f, "/lldp"), `{"interfaces": {"interface": [{"name": "e1", "neighbors": {"neighbor": [{"id": "1", "state": {"ttl": 5, "id": "1"}}, 5]}}]}}`)}},
	} {
		b, err := proto.Marshal(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var n pb.Notification
		if proto.Unmarshal(b, &n) != nil {
			return
		}
		s := opened(Limits{Ports: 3, Neighbors: 2, Rate: 1 << 30})
		for range 2 {
			if err := s.take(t.Context(), &n); err != nil && !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
		}
		if len(s.device.Interfaces) > 3 {
			t.Fatalf("%d interfaces", len(s.device.Interfaces))
		}
		for name, i := range s.device.Interfaces {
			if len(i.Neighbors) > 2 || len(i.Addresses) > 2 || len(name) > openconfig.MaxPath {
				t.Fatalf("%+v", i)
			}
			for _, x := range i.Neighbors {
				if len(x.Capabilities) > 2 || len(x.Management) > 2 {
					t.Fatalf("%+v", x)
				}
			}
		}
	})
}

// TestPatience: who makes progress has more time to report everything, but not for ever.
func TestPatience(t *testing.T) {
	l := Limits{Answer: 5 * time.Second, Sync: time.Minute}
	for had, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 54 * time.Second: 5 * time.Second, 58 * time.Second: 2 * time.Second, time.Hour: 0,
	} {
		if is := l.patience(had); is != want {
			t.Errorf("after %v: %v, want %v", had, is, want)
		}
	}
}
