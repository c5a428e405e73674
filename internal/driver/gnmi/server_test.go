package gnmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/ygot/ygot"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi/message"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// switchboard is a Source that a test changes.
type switchboard struct {
	server *Server

	mu     sync.Mutex
	device openconfig.Device
	reads  uint64 // of counters
	drains int
	fail   error
}

// Read implements Source.
func (b *switchboard) Read(_ context.Context, p telemetry.Part) (*openconfig.Device, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.device
	a := *d.Agent
	d.Agent = &a
	d.Interfaces = map[string]*openconfig.Interface{}
	if p == telemetry.Interfaces {
		b.reads++
	}
	for name, i := range b.device.Interfaces {
		x := *i
		x.Counters.InBytes = openconfig.Counted(b.reads)
		d.Interfaces[name] = &x
	}
	return &d, b.fail
}

// Drain implements Source.
func (b *switchboard) Drain(_ context.Context, on bool) error {
	b.change(func(d *openconfig.Device) { d.Agent.Draining = on })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drains++
	return b.fail
}

func (b *switchboard) change(f func(d *openconfig.Device)) {
	b.mu.Lock()
	f(&b.device)
	b.mu.Unlock()
	b.server.Changed()
}

// target is a target under test, and a client of it.
type target struct {
	*testing.T
	*switchboard
	pb.GNMIClient
	addr string
	ctx  context.Context
}

func newTarget(t *testing.T) *target {
	t.Helper()
	b := &switchboard{device: openconfig.Device{
		Name: "leaf-0", BootTime: 1 << 60, CPU: openconfig.Counted(7), MemoryPhysical: 1 << 40,
		Interfaces: map[string]*openconfig.Interface{},
		Agent:      &openconfig.Agent{Switch: "leaf-0", Functions: []string{"sum", "max"}, Slots: 5},
	}}
	for i := range 2 {
		name := fmt.Sprint("eth", i)
		b.device.Interfaces[name] = &openconfig.Interface{
			Name: name, Type: "ethernetCsmacd", Index: uint32(i + 1), Admin: openconfig.Up, Oper: openconfig.Up, Speed: 100e9,
			Addresses: []openconfig.Address{{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), 1}), 24)}},
		}
	}
	s, err := Start(Config{Source: b, Clock: runner.NewClock(), Limits: telemetry.Config{MinInterval: time.Millisecond, Interval: time.Millisecond, Streams: 20}})
	if err != nil {
		t.Fatal(err)
	}
	b.server = s
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.Serve(listener, rpc.Services{Telemetry: s}, rpc.ServerConfig{})
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		s.Shut()
		server.Kill()
		s.Close()
	})
	s.Changed()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &target{t, b, pb.NewGNMIClient(conn), listener.Addr().String(), ctx}
}

func (t *target) path(s string) *pb.Path {
	t.Helper()
	p, err := ygot.StringToStructuredPath(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (t *target) paths(all ...string) (paths []*pb.Path) {
	t.Helper()
	for _, s := range all {
		paths = append(paths, t.path(s))
	}
	return paths
}

// list is a list of subscriptions, of the paths and with what edit does to each.
func (t *target) list(mode pb.SubscriptionList_Mode, edit func(*pb.Subscription), paths ...string) *pb.SubscriptionList {
	t.Helper()
	l := &pb.SubscriptionList{Mode: mode, Encoding: pb.Encoding_PROTO}
	for _, p := range t.paths(paths...) {
		s := &pb.Subscription{Path: p}
		if edit != nil {
			edit(s)
		}
		l.Subscription = append(l.Subscription, s)
	}
	return l
}

func onChange(s *pb.Subscription) { s.Mode = pb.SubscriptionMode_ON_CHANGE }

// subscription is a stream that is read.
type subscription struct {
	*target
	grpc.BidiStreamingClient[pb.SubscribeRequest, pb.SubscribeResponse]
	leaves map[string]string
}

func (t *target) subscribe(l *pb.SubscriptionList) *subscription {
	t.Helper()
	stream, err := t.Subscribe(t.ctx)
	if err != nil {
		t.Fatal(err)
	}
	send(t.T, stream, &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: l}})
	return &subscription{t, stream, map[string]string{}}
}

// send sends a message. A stream that the target has ended meanwhile has its status for
// who reads.
func send(t *testing.T, s grpc.BidiStreamingClient[pb.SubscribeRequest, pb.SubscribeResponse], m *pb.SubscribeRequest) {
	t.Helper()
	if err := s.Send(m); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// next reads a message; sync says whether it was that.
func (s *subscription) next() (sync bool) {
	s.Helper()
	m, err := s.Recv()
	if err != nil {
		s.Fatal(err)
	}
	n := m.GetUpdate()
	for _, u := range n.GetUpdate() {
		s.leaves[s.name(u.GetPath())] = show(u.GetVal())
	}
	for _, d := range n.GetDelete() {
		delete(s.leaves, s.name(d))
	}
	return m.GetSyncResponse()
}

func (s *subscription) sync() {
	s.Helper()
	for !s.next() {
	}
}

func (s *subscription) await(path, value string) {
	s.Helper()
	for s.leaves[path] != value {
		s.next()
	}
}

func (t *target) name(p *pb.Path) string {
	t.Helper()
	s, err := ygot.PathToString(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func show(v *pb.TypedValue) string {
	if text, ok := message.JSON(v); ok {
		return string(text)
	}
	x, err := value(v)
	if err != nil {
		return err.Error()
	}
	return x.String()
}

// value reads the value of one leaf.
func value(m *pb.TypedValue) (openconfig.Value, error) {
	for l, err := range message.Leaves(nil, m) {
		return l.Value, err
	}
	return openconfig.Value{}, message.ErrValue
}

const status0 = "/interfaces/interface[name=eth0]/state/oper-status"

func TestStreams(t *testing.T) {
	g := newTarget(t)
	s := g.subscribe(g.list(pb.SubscriptionList_STREAM, onChange, "/interfaces/interface/state/oper-status", "/system/state"))
	s.sync()
	if len(s.leaves) != 4 || s.leaves[status0] != "UP" || s.leaves["/system/state/hostname"] != "leaf-0" {
		t.Errorf("at first: %v", s.leaves)
	}
	g.change(func(d *openconfig.Device) { d.Interfaces["eth0"].Oper = openconfig.Down })
	s.await(status0, "DOWN")
	g.change(func(d *openconfig.Device) { delete(d.Interfaces, "eth0") })
	s.await(status0, "")
}

func TestSamples(t *testing.T) {
	g := newTarget(t)
	const octets = "/interfaces/interface[name=eth1]/state/counters/in-octets"
	l := g.list(pb.SubscriptionList_STREAM, func(s *pb.Subscription) {
		s.Mode, s.SampleInterval = pb.SubscriptionMode_SAMPLE, uint64(2*time.Millisecond)
	}, octets)
	l.UpdatesOnly = true
	s := g.subscribe(l)
	if !s.next() {
		t.Error("the first message is not sync")
	}
	for last, n := "", 0; n < 5; n++ {
		if s.next(); s.leaves[octets] == last {
			t.Errorf("sample %d is %s, as before", n, last)
		}
		last = s.leaves[octets]
	}
}

func TestPoll(t *testing.T) {
	g := newTarget(t)
	s := g.subscribe(g.list(pb.SubscriptionList_POLL, nil, "/interfaces/interface/state/oper-status"))
	for n := range 3 {
		s.sync()
		if len(s.leaves) != 2 {
			t.Errorf("poll %d: %v", n, s.leaves)
		}
		clear(s.leaves)
		send(t, s, &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}})
	}
}

func TestTargetAndOrigin(t *testing.T) {
	g := newTarget(t)
	l := g.list(pb.SubscriptionList_ONCE, nil, "/")
	l.Prefix = &pb.Path{Target: "x", Origin: "tributary"}
	s := g.subscribe(l)
	for {
		m, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetSyncResponse() {
			break
		}
		n := m.GetUpdate()
		if n.GetPrefix().GetTarget() != "x" || n.GetPrefix().GetOrigin() != "tributary" {
			t.Errorf("prefix %v", n.GetPrefix())
		}
		for _, u := range n.GetUpdate() {
			if u.GetPath().GetElem()[0].GetName() != "tributary" {
				t.Errorf("%v is of another origin", u.GetPath())
			}
		}
	}
	answer, err := g.Get(g.ctx, &pb.GetRequest{
		Encoding: pb.Encoding_PROTO, Path: []*pb.Path{{Origin: "openconfig", Elem: []*pb.PathElem{{Name: "..."}, {Name: "hostname"}}}},
	})
	if err != nil || len(answer.GetNotification()) != 1 || answer.GetNotification()[0].GetUpdate()[0].GetPath().GetOrigin() != "openconfig" {
		t.Errorf("%v, %v", answer, err)
	}
}

// TestRefused: each request that cannot be served gets the status that the specification
// has for it, and a text that names what is wrong.
func TestRefused(t *testing.T) {
	g := newTarget(t)
	many := make([]string, 10_000)
	for i := range many {
		many[i] = "/interfaces"
	}
	deep := &pb.Path{}
	for range 1000 {
		deep.Elem = append(deep.Elem, &pb.PathElem{Name: "..."})
	}
	sub := func(l *pb.SubscriptionList) *pb.SubscribeRequest {
		return &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: l}}
	}
	one := func(p *pb.Path) *pb.SubscribeRequest {
		return sub(&pb.SubscriptionList{Subscription: []*pb.Subscription{{Path: p}}})
	}
	sample := func(n uint64) *pb.SubscribeRequest {
		return sub(g.list(pb.SubscriptionList_STREAM, func(s *pb.Subscription) { s.Mode, s.SampleInterval = pb.SubscriptionMode_SAMPLE, n }, "/system"))
	}
	for name, test := range map[string]struct {
		request *pb.SubscribeRequest
		code    codes.Code
	}{
		"poll first":             {&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}}, codes.InvalidArgument},
		"nothing":                {&pb.SubscribeRequest{}, codes.InvalidArgument},
		"no subscription":        {sub(&pb.SubscriptionList{}), codes.InvalidArgument},
		"10,000 subscriptions":   {sub(g.list(pb.SubscriptionList_STREAM, onChange, many...)), codes.ResourceExhausted},
		"1 ns":                   {sample(1), codes.InvalidArgument},
		"the longest interval":   {sample(1<<64 - 1), codes.OK},
		"unknown path":           {one(g.path("/network-instances")), codes.Unimplemented},
		"unknown key":            {one(g.path("/interfaces/interface[index=1]")), codes.Unimplemented},
		"unknown origin":         {one(&pb.Path{Origin: "cli"}), codes.Unimplemented},
		"path of other origin":   {one(&pb.Path{Origin: "tributary", Elem: g.path("/interfaces").Elem}), codes.Unimplemented},
		"a long name":            {one(&pb.Path{Elem: []*pb.PathElem{{Name: strings.Repeat("x", 1<<19)}}}), codes.InvalidArgument},
		"a large message":        {one(&pb.Path{Elem: []*pb.PathElem{{Name: strings.Repeat("x", 15<<20)}}}), codes.Internal},
		"a huge message":         {one(&pb.Path{Elem: []*pb.PathElem{{Name: strings.Repeat("x", 17<<20)}}}), codes.ResourceExhausted},
		"a strange key":          {one(&pb.Path{Elem: []*pb.PathElem{{Name: "interfaces"}, {Name: "interface", Key: map[string]string{"name": strings.Repeat("]/", 1000)}}}}), codes.OK},
		"no name":                {one(&pb.Path{Elem: []*pb.PathElem{{}}}), codes.InvalidArgument},
		"deep path":              {one(deep), codes.InvalidArgument},
		"old form":               {one(&pb.Path{Element: []string{"interfaces"}}), codes.InvalidArgument}, //nolint:staticcheck // it is to be refused
		"target in a path":       {one(&pb.Path{Target: "x"}), codes.InvalidArgument},
		"two origins":            {sub(&pb.SubscriptionList{Prefix: &pb.Path{Origin: "openconfig"}, Subscription: []*pb.Subscription{{Path: &pb.Path{Origin: "tributary"}}}}), codes.InvalidArgument},
		"ASCII":                  {sub(&pb.SubscriptionList{Encoding: pb.Encoding_ASCII, Subscription: []*pb.Subscription{{}}}), codes.Unimplemented},
		"BYTES":                  {sub(&pb.SubscriptionList{Encoding: pb.Encoding_BYTES, Subscription: []*pb.Subscription{{}}}), codes.Unimplemented},
		"unknown model":          {sub(&pb.SubscriptionList{UseModels: []*pb.ModelData{{Name: "bgp"}}, Subscription: []*pb.Subscription{{}}}), codes.Unimplemented},
		"mode 9":                 {sub(&pb.SubscriptionList{Mode: 9, Subscription: []*pb.Subscription{{}}}), codes.InvalidArgument},
		"mode 9 of one":          {sub(&pb.SubscriptionList{Subscription: []*pb.Subscription{{Mode: 9}}}), codes.InvalidArgument},
		"a path that is not yet": {one(g.path("/interfaces/interface[name=eth9]/state/mtu")), codes.OK},
	} {
		stream, err := g.Subscribe(g.ctx)
		if err != nil {
			t.Fatal(err)
		}
		send(t, stream, test.request)
		_, err = stream.Recv()
		if s := status.Convert(err); s.Code() != test.code || err != nil && s.Message() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSecondList: a stream has one list, and polls only of its mode.
func TestSecondList(t *testing.T) {
	g := newTarget(t)
	l := g.list(pb.SubscriptionList_STREAM, onChange, "/system/state")
	for _, m := range []*pb.SubscribeRequest{
		{Request: &pb.SubscribeRequest_Subscribe{Subscribe: l}}, {Request: &pb.SubscribeRequest_Poll{Poll: &pb.Poll{}}},
	} {
		s := g.subscribe(l)
		s.sync()
		send(t, s, m)
		if _, err := s.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// TestStreamsAreBounded: one more is refused, until another has ended.
func TestStreamsAreBounded(t *testing.T) {
	g := newTarget(t)
	l := g.list(pb.SubscriptionList_STREAM, onChange, "/system/state")
	var all []*subscription
	for range 20 {
		s := g.subscribe(l)
		s.sync()
		all = append(all, s)
	}
	if _, err := g.subscribe(l).Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the 21st: %v", err)
	}
	send(t, all[0], &pb.SubscribeRequest{}) // which ends it
	if _, err := all[0].Recv(); err == nil {
		t.Error("it goes on")
	}
	for {
		m, err := g.subscribe(l).Recv()
		if err == nil && m != nil {
			return
		}
		if status.Code(err) != codes.ResourceExhausted {
			t.Fatal(err)
		}
	}
}

// TestReaderThatNeverReads costs a bounded amount of memory, and holds up nobody else.
func TestReaderThatNeverReads(t *testing.T) {
	g := newTarget(t)
	for range 3 {
		g.subscribe(g.list(pb.SubscriptionList_STREAM, func(s *pb.Subscription) {
			s.Mode, s.SampleInterval = pb.SubscriptionMode_SAMPLE, uint64(time.Millisecond)
		}, "/"))
	}
	s := g.subscribe(g.list(pb.SubscriptionList_STREAM, onChange, "/interfaces/interface/state/oper-status"))
	s.sync()
	for n := range 40 {
		is := openconfig.StatusOf(n%2 == 1)
		g.change(func(d *openconfig.Device) { d.Interfaces["eth0"].Oper = is })
		s.await(status0, string(is))
	}
}

// TestReadingFails: what was there is still reported.
func TestReadingFails(t *testing.T) {
	g := newTarget(t)
	const octets = "/interfaces/interface[name=eth0]/state/counters/in-octets"
	read := func() (string, error) {
		answer, err := g.Get(g.ctx, &pb.GetRequest{Path: g.paths(octets), Encoding: pb.Encoding_PROTO})
		if err != nil {
			return "", err
		}
		return show(answer.GetNotification()[0].GetUpdate()[0].GetVal()), nil
	}
	if got, err := read(); err != nil || got != "1" {
		t.Errorf("%s, %v", got, err)
	}
	g.change(func(*openconfig.Device) { g.fail = context.DeadlineExceeded })
	if got, err := read(); err != nil || got != "1" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestShut: who reads is notified that the target goes.
func TestShut(t *testing.T) {
	g := newTarget(t)
	s := g.subscribe(g.list(pb.SubscriptionList_STREAM, onChange, "/system/state"))
	s.sync()
	g.server.Shut()
	if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream: %v", err)
	}
	if _, err := g.Get(g.ctx, &pb.GetRequest{Path: g.paths("/system")}); status.Code(err) != codes.Unavailable {
		t.Errorf("Get: %v", err)
	}
}
