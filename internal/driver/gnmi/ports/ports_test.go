package ports

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	pb "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/ygot/ygot"
	"google.golang.org/grpc"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// target is a gNMI server that reports what a test wants.
type target struct {
	pb.UnimplementedGNMIServer
	next chan *pb.SubscribeResponse
}

func (*target) Capabilities(context.Context, *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	return &pb.CapabilityResponse{GNMIVersion: "0.10.0", SupportedEncodings: []pb.Encoding{pb.Encoding_PROTO}}, nil
}

func (s *target) Subscribe(stream pb.GNMI_SubscribeServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	for {
		select {
		case m := <-s.next:
			if err := stream.Send(m); err != nil {
				return err
			}
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func leaves(t *testing.T, all map[string]*pb.TypedValue) *pb.SubscribeResponse {
	t.Helper()
	n := &pb.Notification{}
	for text, value := range all {
		path, err := ygot.StringToStructuredPath(text)
		if err != nil {
			t.Fatal(err)
		}
		n.Update = append(n.Update, &pb.Update{Path: path, Val: value})
	}
	return &pb.SubscribeResponse{Response: &pb.SubscribeResponse_Update{Update: n}}
}

func text(s string) *pb.TypedValue {
	return &pb.TypedValue{Value: &pb.TypedValue_StringVal{StringVal: s}}
}
func number(n uint64) *pb.TypedValue {
	return &pb.TypedValue{Value: &pb.TypedValue_UintVal{UintVal: n}}
}

// TestPorts follows a port of a target that goes down, and the target's end.
func TestPorts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &target{next: make(chan *pb.SubscribeResponse)}
	server := grpc.NewServer()
	pb.RegisterGNMIServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })

	source := New(Config{Address: listener.Addr().String()})
	if _, err := source.Read(); err == nil || !strings.Contains(err.Error(), source.cfg.Address) {
		t.Errorf("before it is watched: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stir := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- source.Watch(ctx, func() {
			select {
			case stir <- struct{}{}:
			default:
			}
		})
	}()
	until := func(is func([]nic.Interface, error) bool) []nic.Interface {
		t.Helper()
		for {
			if all, err := source.Read(); is(all, err) {
				return all
			}
			<-stir
		}
	}
	const port = "/interfaces/interface[name=1/1/0]"
	go func() {
		s.next <- leaves(t, map[string]*pb.TypedValue{
			port + "/state/oper-status": text("UP"), port + "/state/admin-status": text("UP"), port + "/state/id": number(260),
			port + "/ethernet/state/mac-address": text("02:00:00:00:00:01"),
		})
		s.next <- &pb.SubscribeResponse{Response: &pb.SubscribeResponse_SyncResponse{SyncResponse: true}}
		s.next <- leaves(t, map[string]*pb.TypedValue{port + "/state/oper-status": text("DOWN")})
	}()
	got := until(func(all []nic.Interface, err error) bool { return err == nil && len(all) == 1 && !all[0].Up })
	want := []nic.Interface{{Name: "1/1/0", Port: 260, Enabled: true, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}}}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	server.Stop()
	until(func(_ []nic.Interface, err error) bool { return err != nil })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
