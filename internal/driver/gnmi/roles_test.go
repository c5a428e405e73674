package gnmi

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// TestRoles: managers and operators read and set, hosts do neither.
func TestRoles(t *testing.T) {
	g := newTarget(t)
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	issue := func(role pki.Role, name string) *pki.Source {
		t.Helper()
		cert, key, err := authority.Issue(pki.Identity{Role: role, Name: name}, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		var files [3]string
		for i, pem := range [][]byte{cert, key, authority.PEM()} {
			files[i] = filepath.Join(t.TempDir(), "pem")
			if err := os.WriteFile(files[i], pem, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s, err := pki.Load(pki.Files{Cert: files[0], Key: files[1], CA: files[2]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	c := rpc.ServerConfig{TLS: issue(pki.Agent, "leaf-0").Server()}
	listener, err := rpc.Listen("127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.Serve(listener, rpc.Services{Telemetry: g.server}, c)
	defer server.Kill()
	for role, code := range map[pki.Role]codes.Code{pki.Manager: codes.OK, pki.Operator: codes.OK, pki.Host: codes.PermissionDenied} {
		config := issue(role, "x").Client(pki.Want{Role: pki.Agent, Name: "leaf-0"})
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		client := pb.NewGNMIClient(conn)
		_, err = client.Set(g.ctx, &pb.SetRequest{Delete: g.paths("/tributary/config/drain")})
		if status.Code(err) != code {
			t.Errorf("%s sets: %v", role, err)
		}
		if _, err = client.Get(g.ctx, &pb.GetRequest{Path: g.paths("/system")}); status.Code(err) != code {
			t.Errorf("%s gets: %v", role, err)
		}
		if _, err = client.Capabilities(g.ctx, &pb.CapabilityRequest{}); status.Code(err) != code {
			t.Errorf("%s asks for capabilities: %v", role, err)
		}
		stream, err := client.Subscribe(g.ctx)
		if err == nil {
			send(t, stream, &pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: g.list(pb.SubscriptionList_ONCE, nil, "/system")}})
			_, err = stream.Recv()
		}
		if status.Code(err) != code {
			t.Errorf("%s subscribes: %v", role, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if g.drains != 2 {
		t.Errorf("%d changes", g.drains)
	}
}
