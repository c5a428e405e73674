package managerd_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "github.com/tributary-fabric/tributary/api/offload/v1"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// TestQuotasByCertificate: a host has its quota, and its label's, whatever connections it
// makes; an operator is not a host.
func TestQuotasByCertificate(t *testing.T) {
	d := newTrust(t)
	f, _ := newTrustedFabric(t, d, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Core.Quotas = quota.Config{
			Host:   quota.Limits{Groups: 2},
			Labels: []quota.Label{{Name: "team", Hosts: []string{"h[23]"}, Limits: quota.Limits{Groups: 3}}},
		}
	})
	create := func(c *rpc.ManagerClient, name string) error {
		_, _, err := c.CreateGroup(testContext(t), f.spec(name))
		return err
	}
	h0, again := d.dial(f, pki.Host, "h0"), d.dial(f, pki.Host, "h0")
	h2, h3 := d.dial(f, pki.Host, "h2"), d.dial(f, pki.Host, "h3")
	for _, step := range []struct {
		by   *rpc.ManagerClient
		name string
		says string // empty: it is made
	}{
		{h0, "a", ""}, {again, "b", ""}, {again, "c", "host h0 is 2 groups, of which 2 are in use"}, {h0, "b", ""}, // which stands
		{h2, "d", ""}, {h2, "e", ""}, {h3, "f", ""}, {h3, "g", "label team is 3 groups"}, {f.client, "h", ""},
	} {
		err := create(step.by, step.name)
		if (err == nil) != (step.says == "") || err != nil && (!errors.Is(err, quota.ErrQuota) || !strings.Contains(err.Error(), step.says)) {
			t.Errorf("group %s: %v, want %q", step.name, err, step.says)
		}
	}
	if e := request(t, h0, withRequest(f.spec("session"), 4)); e.Reply == nil || e.Reply.Err == nil || !strings.Contains(e.Reply.Err.Error(), "host h0") {
		t.Errorf("in a session: %+v", e.Reply)
	}
}

func withRequest(c manager.Create, req uint64) manager.Create {
	c.Req = req
	return c
}

// from returns a connection to the manager from an address of this machine.
func from(t *testing.T, f *fabric, source string) pb.ManagerClient {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
	conn, err := grpc.NewClient(f.manager.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", to) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewManagerClient(conn)
}

// TestQuotasByAddress: without certificates quotas go by the other side's address. A refusal
// has the code ResourceExhausted, also of a plan, and a released group can be had again.
func TestQuotasByAddress(t *testing.T) {
	f := newFabric(t, func(c *managerd.Config, _ map[string]*agentd.Config) {
		c.Core.Quotas = quota.Config{Host: quota.Limits{Groups: 1, Plans: 1}}
	})
	ctx := testContext(t)
	a, b := from(t, f, "127.0.0.2"), from(t, f, "127.0.0.3")
	ask := func(name string) *pb.CreateGroupRequest {
		return &pb.CreateGroupRequest{Name: name, Members: f.hosts(), ChunkBytes: 1432, Window: 8}
	}
	if _, err := a.CreateGroup(ctx, ask("a")); err != nil {
		t.Fatal(err)
	}
	refused := func(err error, says string) {
		t.Helper()
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %v and %s", err, codes.ResourceExhausted, says)
		}
	}
	_, err := a.CreateGroup(ctx, ask("more"))
	refused(err, "host 127.0.0.2 is 1 groups, of which 1 are in use, and 1 more are asked for: release groups, or have the operator raise quotas.host.groups")
	if _, err := b.CreateGroup(ctx, ask("b")); err != nil {
		t.Error(err)
	}
	parts := ask("")
	parts.Bundle = &pb.Bundle{Kind: pb.BundleKind_BUNDLE_KIND_PARTS, Count: 2}
	for {
		if _, err = a.PlanGroup(ctx, &pb.PlanGroupRequest{Group: parts}); status.Code(err) == codes.ResourceExhausted {
			break // beyond those of a second, or of ten
		}
		if err != nil && status.Code(err) != codes.FailedPrecondition {
			t.Fatal(err)
		}
	}
	refused(err, "host 127.0.0.2 is 1 plans a second")
}

// TestForeignDataAddress: a certified host names another address than its own for its
// packets: its group gets no tree, and no switch hears of that address. The others hear why.
func TestForeignDataAddress(t *testing.T) {
	d := newTrust(t)
	f, _ := newTrustedFabric(t, d, nil)
	f.connected()
	for _, address := range []string{"192.0.2.7:9", "10.255.0.1:53"} {
		spec := f.spec(address)
		spec.Members = []string{"h0", "h3"}
		h0, h3 := d.dial(f, pki.Host, "h0"), d.dial(f, pki.Host, "h3")
		id, _, err := h0.CreateGroup(testContext(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		liar, err := openWatch(testContext(t), h3, manager.Watch{Group: id, Rank: 1, DataAddr: netip.MustParseAddrPort(address)})
		if err != nil {
			t.Fatal(err)
		}
		e := request(t, h0, manager.Watch{Group: id, Rank: 0, DataAddr: netip.MustParseAddrPort("127.0.0.1:9")})
		if e.Notice == nil || !strings.Contains(e.Notice.Err.Error(), "rank 1, h3, has the data address "+address) || !strings.Contains(e.Notice.Err.Error(), "its session comes from 127.0.0.1") {
			t.Errorf("the other member hears %+v", e)
		}
		if e, err := liar.Recv(); err != nil || e.Notice == nil || !errors.Is(e.Notice.Err, manager.ErrNoTree) {
			t.Errorf("it hears %+v, %v", e, err)
		}
		for name, a := range f.agents {
			if s, err := a.State(testContext(t)); err != nil || len(s.Holds) > 0 {
				t.Errorf("switch %s holds %+v, %v", name, s.Holds, err)
			}
		}
	}
}
