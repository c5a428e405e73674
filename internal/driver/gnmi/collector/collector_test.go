package collector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/gnmi/testing/fake/gnmi"
	fpb "github.com/openconfig/gnmi/testing/fake/proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// events are what a collector reports, in order.
type events struct {
	connected chan string
	reports   chan map[string]string // leaves
	ended     chan error
	counts    Counts
}

// collect runs a collector until the test ends.
func collect(t *testing.T, c Config) *events {
	t.Helper()
	e := &events{make(chan string, 1000), make(chan map[string]string, 1000), make(chan error, 1000), Counts{}}
	c.Connected = func(name string) { e.connected <- name }
	c.Report = func(d *openconfig.Device) {
		all := map[string]string{}
		for p, v := range d.Leaves() {
			all[p] = v.String()
		}
		e.reports <- all
	}
	c.Ended = func(err error) { e.ended <- err }
	c.Counts = &e.counts
	if c.Limits.MaxRetry == 0 {
		c.Limits.MinRetry, c.Limits.MaxRetry = time.Millisecond, time.Millisecond
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		for {
			select {
			case <-e.connected:
			case <-e.reports:
			case <-e.ended:
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	})
	return e
}

// until waits for a report in which leaves are as wanted; "" is for one that is not there.
func (e *events) until(t *testing.T, want map[string]string) map[string]string {
	t.Helper()
	for {
		select {
		case got := <-e.reports:
			is := true
			for p, v := range want {
				is = is && got[p] == v
			}
			if is {
				return got
			}
		case err := <-e.ended:
			t.Fatal(err)
		case <-t.Context().Done():
			t.Fatal("the test has ended")
		}
	}
}

// target is a gNMI server that does what a test wants.
type target struct {
	pb.UnimplementedGNMIServer
	capabilities func(context.Context) (*pb.CapabilityResponse, error)
	subscribe    func(*pb.SubscriptionList, pb.GNMI_SubscribeServer) error
}

func (s *target) Capabilities(ctx context.Context, _ *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	if s.capabilities == nil {
		return capable(pb.Encoding_PROTO), nil
	}
	return s.capabilities(ctx)
}

func capable(encodings ...pb.Encoding) *pb.CapabilityResponse {
	return &pb.CapabilityResponse{GNMIVersion: "0.10.0", SupportedEncodings: encodings, SupportedModels: []*pb.ModelData{
		{Name: "openconfig-interfaces"}, {Name: "openconfig-if-ethernet"}, {Name: "openconfig-if-ip"}, {Name: "openconfig-lldp"}, {Name: "openconfig-system"},
	}}
}

func (s *target) Subscribe(stream pb.GNMI_SubscribeServer) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	return s.subscribe(m.GetSubscribe(), stream)
}

// serve serves at an address that it returns.
func serve(t *testing.T, s *target, options ...grpc.ServerOption) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	if s != nil {
		pb.RegisterGNMIServer(server, s)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener.Addr().String()
}

func path(t testing.TB, text string) *pb.Path {
	t.Helper()
	p, err := openconfig.ParsePath(text)
	if err != nil {
		t.Fatal(err)
	}
	return message.OfPath(p)
}

func leaf(t testing.TB, at, value string) *pb.Update {
	return &pb.Update{Path: path(t, at), Val: &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: value}}}
}

func updates(all ...*pb.Update) *pb.SubscribeResponse {
	return &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: &pb.Notification{Update: all}}}
}

var synced = &pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}}

func send(stream pb.GNMI_SubscribeServer, all ...*pb.SubscribeResponse) error {
	for _, m := range all {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// held sends and keeps the subscription open.
func held(stream pb.GNMI_SubscribeServer, all ...*pb.SubscribeResponse) error {
	if err := send(stream, all...); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

const (
	oper     = "/interfaces/interface[name=e1]/state/oper-status"
	hostname = "/system/state/hostname"
)

// TestOpenConfigFake reads from the target that openconfig/gnmi tests its collectors with.
func TestOpenConfigFake(t *testing.T) {
	down := leaf(t, oper, "DOWN")
	fake, err := gnmi.New(&fpb.Config{
		Target: "leaf", Port: 0, DisableEof: true,
		Generator: &fpb.Config_Fixed{Fixed: &fpb.FixedGenerator{Responses: []*pb.SubscribeResponse{
			updates(leaf(t, hostname, "leaf"), leaf(t, oper, "UP")),
			updates(leaf(t, "/lldp/interfaces/interface[name=e1]/neighbors/neighbor[id=1]/state/system-name", "spine")),
			{Response: &pb.SubscribeResponse_Update{Update: &pb.Notification{Prefix: path(t, "/interfaces/interface[name=e2]"), Update: []*pb.Update{
				{Path: path(t, "/state/ifindex"), Val: &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: 7}}},
			}}}},
			updates(down),
			{Response: &pb.SubscribeResponse_Update{Update: &pb.Notification{Delete: []*pb.Path{path(t, "/lldp/interfaces/interface[name=e1]/neighbors/neighbor[id=1]")}}}},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	_, port, err := net.SplitHostPort(fake.Address())
	if err != nil {
		t.Fatal(err)
	}
	e := collect(t, Config{Address: "127.0.0.1:" + port})
	e.until(t, map[string]string{
		hostname: "leaf", oper: "DOWN", "/interfaces/interface[name=e2]/state/ifindex": "7",
		"/lldp/interfaces/interface[name=e1]/neighbors/neighbor[id=1]/state/system-name": "",
	})
}

// TestChanges: what changes after the first report is reported; a restart is a new begin.
func TestChanges(t *testing.T) {
	next := make(chan *pb.SubscribeResponse)
	address := serve(t, &target{subscribe: func(list *pb.SubscriptionList, stream pb.GNMI_SubscribeServer) error {
		if list.GetMode() != pb.SubscriptionList_STREAM || list.GetEncoding() != pb.Encoding_PROTO {
			t.Errorf("subscribed with %v, %v", list.GetMode(), list.GetEncoding())
		}
		for _, s := range list.GetSubscription() {
			if text := s.GetPath().String(); s.GetMode() != pb.SubscriptionMode_ON_CHANGE || strings.Contains(text, "counters") || strings.Contains(text, "tributary") {
				t.Errorf("subscribed to %v", s)
			}
		}
		if err := send(stream, updates(leaf(t, oper, "UP")), synced); err != nil {
			return err
		}
		for m := range next {
			if m == nil {
				return nil // ends the subscription
			}
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		return nil
	}})
	e := collect(t, Config{Address: address})
	e.until(t, map[string]string{oper: "UP"})
	next <- updates(leaf(t, oper, "DOWN"))
	e.until(t, map[string]string{oper: "DOWN"})
	next <- updates(leaf(t, hostname, "x"))
	e.until(t, map[string]string{oper: "DOWN", hostname: "x"})
	next <- nil
	if err := <-e.ended; err == nil {
		t.Error("ended without an error")
	}
	e.until(t, map[string]string{oper: "UP", hostname: ""})
	close(next)
}

// TestRetryAtOnce ends the pause before the next attempt.
func TestRetryAtOnce(t *testing.T) {
	retry := make(chan struct{})
	e := collect(t, Config{
		Retry: retry, Limits: Limits{MinRetry: time.Hour, MaxRetry: time.Hour},
		Address: serve(t, &target{subscribe: func(*pb.SubscriptionList, pb.GNMI_SubscribeServer) error {
			return status.Error(codes.Unavailable, "test")
		}}),
	})
	for range 3 {
		<-e.ended
		retry <- struct{}{}
	}
	<-e.ended
}

// TestFallsSilent: a target that does not answer any more, while its connection stays, is
// left.
func TestFallsSilent(t *testing.T) {
	var asked atomic.Int64
	e := collect(t, Config{
		Limits: Limits{Alive: time.Millisecond, Answer: 500 * time.Millisecond, MinRetry: time.Hour, MaxRetry: time.Hour},
		Address: serve(t, &target{
			capabilities: func(ctx context.Context) (*pb.CapabilityResponse, error) {
				if asked.Add(1) < 5 {
					return capable(pb.Encoding_PROTO), nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
			subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error { return held(s, synced) },
		}),
	})
	if err := <-e.ended; !errors.Is(err, ErrSilent) {
		t.Errorf("it has ended with %v", err)
	}
}

// TestJSON: a subtree in JSON is as good as its leaves, with modules' names or without.
func TestJSON(t *testing.T) {
	const text = `{"openconfig-interfaces:interface": [
		{"name": "e1", "state": {"oper-status": "UP", "ifindex": 5, "counters": {"in-octets": "77"}, "other": {"x": [1, {"y": 2}]}},
		 "openconfig-if-ethernet:ethernet": {"state": {"mac-address": "00:00:5e:00:53:01", "port-speed": "openconfig-if-ethernet:SPEED_100GB"}},
		 "subinterfaces": {"subinterface": [{"index": 0, "openconfig-if-ip:ipv4": {"addresses": {"address": [{"ip": "10.0.0.1", "state": {"ip": "10.0.0.1", "prefix-length": 31}}]}}}]}},
		{"name": "e2", "state": {"oper-status": "DOWN"}}]}`
	for _, encoding := range []pb.Encoding{pb.Encoding_JSON_IETF, pb.Encoding_JSON} {
		t.Run(encoding.String(), func(t *testing.T) {
			value := &pb.TypedValue{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(text)}}
			if encoding == pb.Encoding_JSON {
				value = &pb.TypedValue{Value: &pb.TypedValue_JsonVal{JsonVal: []byte(text)}}
			}
			address := serve(t, &target{
				capabilities: func(context.Context) (*pb.CapabilityResponse, error) { return capable(encoding), nil },
				subscribe: func(list *pb.SubscriptionList, stream pb.GNMI_SubscribeServer) error {
					if list.GetEncoding() != encoding {
						t.Errorf("asks for %v", list.GetEncoding())
					}
					return held(stream, updates(&pb.Update{Path: path(t, "/interfaces"), Val: value}), synced)
				},
			})
			e := collect(t, Config{Address: address})
			e.until(t, map[string]string{
				oper: "UP", "/interfaces/interface[name=e1]/state/ifindex": "5",
				"/interfaces/interface[name=e1]/ethernet/state/mac-address":                                                                  "00:00:5e:00:53:01",
				"/interfaces/interface[name=e1]/subinterfaces/subinterface[index=0]/ipv4/addresses/address[ip=10.0.0.1]/state/prefix-length": "31",
				"/interfaces/interface[name=e2]/state/oper-status":                                                                           "DOWN",
			})
			if n := e.counts.Malformed.Load(); n != 0 {
				t.Errorf("%d malformed", n)
			}
		})
	}
}

// TestRefused: what is no target, or one that cannot be read, is named.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		target *target
		want   error
	}{
		{"no gNMI", nil, ErrNoTarget},
		{"old", &target{capabilities: func(context.Context) (*pb.CapabilityResponse, error) {
			c := capable(pb.Encoding_PROTO)
			c.GNMIVersion = "0.3.1"
			return c, nil
		}}, ErrVersion},
		{"encoding", &target{capabilities: func(context.Context) (*pb.CapabilityResponse, error) { return capable(pb.Encoding_BYTES), nil }}, ErrEncoding},
		{"hangs", &target{capabilities: func(ctx context.Context) (*pb.CapabilityResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, ErrSilent},
		{"no sync", &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
			return held(s, updates(leaf(t, oper, "UP")))
		}}, ErrSilent},
		{"malformed", &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
			for {
				if err := send(s, updates(leaf(t, "/interfaces/interface[name=e1]/state/ifindex", "\x1b[31mred"))); err != nil {
					return err
				}
			}
		}}, ErrMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := collect(t, Config{Address: serve(t, c.target), Limits: Limits{Answer: 500 * time.Millisecond, MinRetry: time.Millisecond, MaxRetry: time.Millisecond}})
			for err := range e.ended {
				if errors.Is(err, c.want) {
					if strings.Contains(err.Error(), "\x1b") {
						t.Errorf("the error %q is not fit for a terminal", err)
					}
					return
				}
				if c.want != ErrMalformed { // a slow machine may be silent once
					t.Log(err)
				}
			}
		})
	}
	t.Run("nothing speaks gRPC", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
				_ = conn.Close()
			}
		}()
		e := collect(t, Config{Address: listener.Addr().String()})
		if err := <-e.ended; err == nil {
			t.Error("no error")
		}
	})
}

// TestGarbage: after whatever a target streams, within the bounds, what it says last counts.
func TestGarbage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var garbage []*pb.SubscribeResponse
	names := []string{"interfaces", "interface", "state", "oper-status", "", "...", "*", "lldp", "neighbors", "neighbor", "x:y", strings.Repeat("z", 300)}
	word := func() string { return names[random.IntN(len(names))] }
	for range 400 {
		p := &pb.Path{}
		for range random.IntN(6) {
			e := &pb.PathElem{Name: word()}
			if random.IntN(2) == 0 {
				e.Key = map[string]string{word(): word(), "name": word()}
			}
			p.Elem = append(p.Elem, e)
		}
		values := []*pb.TypedValue{
			nil, {}, {Value: &pb.TypedValue_StringVal{StringVal: word()}}, {Value: &pb.TypedValue_IntVal{IntVal: -1}},
			{Value: &pb.TypedValue_JsonIetfVal{JsonIetfVal: []byte(`{"state":{"oper-status":[{}]}}`)}}, {Value: &pb.TypedValue_JsonVal{JsonVal: []byte("{")}},
			{Value: &pb.TypedValue_LeaflistVal{}}, {Value: &pb.TypedValue_BytesVal{BytesVal: []byte{0xff}}},
		}
		n := &pb.Notification{Prefix: p, Update: []*pb.Update{{Path: p, Val: values[random.IntN(len(values))]}, nil}}
		if random.IntN(2) == 0 {
			n.Delete = append(n.Delete, p, nil)
		}
		garbage = append(garbage, &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}}, &pb.SubscribeResponse{})
	}
	e := collect(t, Config{Limits: Limits{Mistakes: 1 << 20, MinRetry: time.Millisecond, MaxRetry: time.Millisecond}, Address: serve(t, &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
		if err := send(s, garbage...); err != nil {
			return err
		}
		return held(s, updates(leaf(t, hostname, "leaf"), leaf(t, oper, "UP")), synced)
	}})})
	e.until(t, map[string]string{hostname: "leaf", oper: "UP"})
	if e.counts.Malformed.Load() == 0 {
		t.Error("nothing was malformed")
	}
}

// TestFlood: a target that sends more than is read waits, and what it says last counts; what
// is beyond the limits is dropped, and counted.
func TestFlood(t *testing.T) {
	e := collect(t, Config{
		Limits: Limits{Rate: 4000, Ports: 10, Neighbors: 4, Answer: time.Hour, MinRetry: time.Millisecond, MaxRetry: time.Millisecond},
		Address: serve(t, &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
			for i := range 1500 {
				if err := send(s, updates(
					leaf(t, fmt.Sprintf("/interfaces/interface[name=f%d]/state/oper-status", i), "UP"),
					leaf(t, fmt.Sprintf("/lldp/interfaces/interface[name=f1]/neighbors/neighbor[id=%d]/state/system-name", i), "x"),
					leaf(t, "/interfaces/interface[name=f2]/state/oper-status", []string{"UP", "DOWN"}[i%2]),
				)); err != nil {
					return err
				}
			}
			return held(s, updates(leaf(t, "/interfaces/interface[name=f2]/state/oper-status", "TESTING")), synced)
		}}),
	})
	got := e.until(t, map[string]string{"/interfaces/interface[name=f2]/state/oper-status": "TESTING"})
	if len(got) > 2*(10+4) { // with the names
		t.Errorf("%d leaves are kept", len(got))
	}
	if e.counts.Beyond.Load() == 0 || e.counts.Throttled.Load() == 0 {
		t.Errorf("%d beyond the limits, throttled %d times", e.counts.Beyond.Load(), e.counts.Throttled.Load())
	}
}

// TestLogin: user name and password are sent, and not without encryption.
func TestLogin(t *testing.T) {
	got := make(chan []string, 10)
	address := serve(t, &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
		m, _ := metadata.FromIncomingContext(s.Context())
		got <- append(m.Get("username"), m.Get("password")...)
		return held(s, synced)
	}})
	c := Config{Address: address, Username: "admin", Password: "secret", Connected: func(string) {}, Report: func(*openconfig.Device) {}, Ended: func(error) {}}
	if err := Run(t.Context(), c); !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), "secret") {
		t.Errorf("without encryption: %v", err)
	}
	c.Plaintext = true
	collect(t, c)
	if m := strings.Join(<-got, " "); m != "admin secret" {
		t.Errorf("it has got %q", m)
	}
}

// TestEncryption: where the two ends differ in TLS, the error says how.
func TestEncryption(t *testing.T) {
	x, err := pki.Shared(pki.Identity{Role: pki.Agent, Name: "leaf-0"}, [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	sealed := serve(t, &target{}, grpc.Creds(credentials.NewTLS(x.Server())))
	if err := <-collect(t, Config{Address: sealed}).ended; !errors.Is(err, ErrEncrypted) || !strings.Contains(err.Error(), "certificates") {
		t.Errorf("in plaintext: %v", err)
	}
	own := x.Client(pki.Want{Role: pki.Agent})
	if err := <-collect(t, Config{Address: serve(t, &target{}), TLS: own}).ended; !errors.Is(err, ErrPlaintext) {
		t.Errorf("by TLS: %v", err)
	}
	for _, tls := range []*tls.Config{nil, own} {
		if err := <-collect(t, Config{Address: "127.0.0.1:1", TLS: tls}).ended; errors.Is(err, ErrEncrypted) || errors.Is(err, ErrPlaintext) {
			t.Errorf("nobody listens: %v", err)
		}
	}
}

// TestCertificates: an agent has the name of its certificate; who has none, or one of another
// role, is refused.
func TestCertificates(t *testing.T) {
	secret := [32]byte{1}
	source := func(role pki.Role, name string, s [32]byte) *pki.Source {
		x, err := pki.Shared(pki.Identity{Role: role, Name: name}, s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	own := source(pki.Manager, "m", secret).Client(pki.Want{Role: pki.Agent})
	serveAs := func(c *tls.Config) string {
		return serve(t, &target{subscribe: func(_ *pb.SubscriptionList, s pb.GNMI_SubscribeServer) error {
			return held(s, updates(leaf(t, hostname, "liar")), synced)
		}}, grpc.Creds(credentials.NewTLS(c)))
	}
	e := collect(t, Config{Address: serveAs(source(pki.Agent, "leaf-0", secret).Server()), TLS: own, Certified: true})
	if name := <-e.connected; name != "leaf-0" {
		t.Errorf("it is %q", name)
	}
	for _, other := range []*pki.Source{source(pki.Host, "leaf-0", secret), source(pki.Agent, "leaf-0", [32]byte{2})} {
		e := collect(t, Config{Address: serveAs(other.Server()), TLS: own, Certified: true})
		select {
		case <-e.connected:
			t.Error("connected")
		case <-e.ended:
		}
	}
}
