package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// TestMessagesAreAsLargeAsTheirMethodNeeds: a group may have many members; other calls need
// little, and more is refused.
func TestMessagesAreAsLargeAsTheirMethodNeeds(t *testing.T) {
	m := dialManager(t, serve(t, Services{Manager: &fakeManager{}}))
	long := strings.Repeat("x", 1<<20)
	if _, _, err := m.CreateGroup(testContext(t), manager.Create{Name: "g", Members: []string{"a", long}}); err != nil {
		t.Errorf("a group of 1 MiB: %v", err)
	}
	for name, call := range map[string]func() error{
		"drain":   func() error { return m.DrainSwitch(testContext(t), long, true) },
		"explain": func() error { _, err := m.Explain(testContext(t), GroupRef{Name: long}); return err },
		"topology": func() error {
			_, err := m.SetTopology(testContext(t), TopologyFile{Name: strings.Repeat(long, 5)})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.DrainSwitch(testContext(t), long[:32<<10], true); err != nil {
		t.Errorf("a long name: %v", err)
	}
}

// TestHeadersAreBounded: what a call has in its header is no way to fill memory either.
func TestHeadersAreBounded(t *testing.T) {
	m := dialManager(t, serve(t, Services{Manager: &fakeManager{}}))
	ctx := metadata.AppendToOutgoingContext(testContext(t), "x", strings.Repeat("x", 2*maxHeader))
	if _, err := m.client.ReleaseGroup(ctx, &pb.ReleaseGroupRequest{}); err == nil {
		t.Error("a header of 32 KiB was taken")
	}
	if err := m.ReleaseGroup(testContext(t), 7); err != nil {
		t.Error(err)
	}
}

// TestNothingIsReadOfARefusedCall: who may not call a method cannot send its message either.
func TestNothingIsReadOfARefusedCall(t *testing.T) {
	a := newAuthority(t)
	s, _ := serveTrusted(t, a, Services{Manager: &fakeManager{}})
	host, _ := dialBoth(t, s, a.source(pki.Host, "h1").Client(pki.Want{}))
	stream, err := host.conn.NewStream(testContext(t), &grpc.StreamDesc{ClientStreams: true}, pb.Manager_SetTopology_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&pb.TopologyDifference{}); !errors.Is(err, ErrDenied) && status.Code(err) != codes.PermissionDenied {
		t.Errorf("%v", err)
	}
	stream, err = host.conn.NewStream(testContext(t), &grpc.StreamDesc{ClientStreams: true}, pb.Manager_DrainSwitch_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	// A simple call's message is awaited before its interceptors run.
	if err := stream.RecvMsg(&pb.DrainSwitchResponse{}); !errors.Is(err, ErrDenied) && status.Code(err) != codes.PermissionDenied {
		t.Errorf("%v", err)
	}
}

// TestSilentConnectionsAreClosed: who connects and does not say what he is to say in time,
// with certificates or without, and who has said all and calls nothing.
func TestSilentConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, Services{Manager: &fakeManager{}}, Limits{})
		defer b.server.Kill()
		for _, says := range []string{"", "\x16\x03\x01\x01\x00", "PRI * HTTP/2.0\r\n"} {
			raw, err := b.listener.Dial()
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(raw, says); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, raw) // until the server closes it
			if after := time.Since(began); after > 5*time.Second {
				t.Errorf("%q: closed after %v", says, after)
			}
		}
	})
}

// TestTooManyConnections: newcomers are closed, and counted; who is there goes on.
func TestTooManyConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(listener, Services{Manager: &fakeManager{}}, ServerConfig{Limits: Limits{Connections: 1}})
	t.Cleanup(s.Kill)
	m := dialManager(t, s)
	if err := m.ReleaseGroup(testContext(t), 7); err != nil {
		t.Fatal(err)
	}
	raw, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(patience))
	if n, err := raw.Read(make([]byte, 1)); n > 0 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d, %v", n, err)
	}
	if n := s.Refused(); n != 1 {
		t.Errorf("%d are counted", n)
	}
	if err := m.ReleaseGroup(testContext(t), 7); err != nil {
		t.Error(err)
	}
}

// TestTooManyCalls: more calls on one connection than its limit wait.
func TestTooManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, Services{Manager: &fakeManager{}}, Limits{Streams: 2})
		defer b.server.Kill()
		m := b.dial(b.issue(pki.Identity{Role: pki.Operator, Name: "o"}, time.Hour))
		if err := m.ReleaseGroup(testContext(t), 7); err != nil { // the limit has come with the first answer
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(testContext(t))
		for range 2 {
			if _, err := m.HostSession(ctx); err != nil {
				t.Fatal(err)
			}
		}
		third := make(chan error, 1)
		go func() { third <- m.ReleaseGroup(testContext(t), 7) }()
		synctest.Wait()
		select {
		case err := <-third:
			t.Errorf("a third call did not wait: %v", err)
		default:
		}
		cancel()
		if err := <-third; err != nil {
			t.Error(err)
		}
		_ = m.Close()
	})
}

// TestSilentConnectionsTakeNoPlaces: however many connect and say nothing, or begin a handshake
// and stay there, who has a certificate is served, and who is served stays.
func TestSilentConnectionsTakeNoPlaces(t *testing.T) {
	a := newAuthority(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	source := a.source(pki.Manager, "m")
	s := Serve(listener, Services{Manager: &fakeManager{events: make(chan manager.Event)}},
		ServerConfig{TLS: source.Server(), Trust: source, Limits: Limits{Connections: 6, Handshake: time.Hour}})
	t.Cleanup(s.Kill)
	client := func() *ManagerClient {
		m, _ := dialBoth(t, s, a.source(pki.Operator, "o").Client(pki.Want{}))
		if err := m.ReleaseGroup(testContext(t), 7); err != nil {
			t.Fatalf("a certified client: %v", err)
		}
		return m
	}
	one := client()
	first := openSession(t, one)
	for i := range 20 {
		raw, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		if _, err := io.WriteString(raw, []string{"", "\x16\x03\x01\x01\x00"}[i%2]); err != nil {
			t.Fatal(err)
		}
	}
	client()
	if n := s.Refused(); n < 15 {
		t.Errorf("%d of 20 were closed", n)
	}
	if err := one.ReleaseGroup(testContext(t), 7); err != nil {
		t.Errorf("who was served before: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("who was served before: %v", err)
	default:
	}
}

// hangsOn is a manager whose sessions last as long as their hosts want.
type hangsOn struct{ *fakeManager }

func (hangsOn) HostSession(ctx context.Context, host HostStream) error {
	if _, err := host.Recv(); err != nil {
		return err
	}
	if err := host.Send(manager.Event{Notice: &manager.Notice{Group: 1}}); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// TestCallsOfOneHost: over all its connections a host has so many calls at once, and so what of
// messages the server holds for it is bounded. Others do not notice.
func TestCallsOfOneHost(t *testing.T) {
	a := newAuthority(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	source := a.source(pki.Manager, "m")
	s := Serve(listener, Services{Manager: hangsOn{}}, ServerConfig{TLS: source.Server(), Trust: source, Limits: Limits{OfSource: 4}})
	t.Cleanup(s.Kill)
	open := func(m *ManagerClient) (end func(), err error) {
		ctx, cancel := context.WithCancel(testContext(t))
		stream, err := m.HostSession(ctx)
		if err != nil {
			return cancel, err
		}
		_ = stream.Send(manager.Unwatch{Group: 1}) // Recv says why that fails
		_, err = stream.Recv()
		return cancel, err
	}
	ofHost, ofOther, ofOperator := pki.Identity{Role: pki.Host, Name: "h1"}, pki.Identity{Role: pki.Host, Name: "h2"}, pki.Identity{Role: pki.Operator, Name: "h1"}
	var ends []func()
	for i, c := range []struct {
		of pki.Identity
		ok bool
	}{{ofHost, true}, {ofHost, true}, {ofHost, true}, {ofHost, true}, {ofHost, false}, {ofOther, true}, {ofOperator, true}, {ofHost, false}} {
		m, _ := dialBoth(t, s, a.source(c.of.Role, c.of.Name).Client(pki.Want{}))
		end, err := open(m)
		ends = append(ends, end)
		if c.ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "calls of host h1") {
			t.Errorf("%d: %s: %v", i, c.of, err)
		}
	}
	ends[0]()
	m, _ := dialBoth(t, s, a.source(pki.Host, "h1").Client(pki.Want{}))
	for ctx := testContext(t); ; {
		end, err := open(m)
		defer end()
		if err == nil {
			break
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "calls of host h1") {
			t.Fatalf("after one has ended: %v", err)
		}
	}
	for _, end := range ends {
		end()
	}
}
