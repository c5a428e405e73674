package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gnmi "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// authority issues certificates that Load takes.
type authority struct {
	*testing.T
	*pki.Authority
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return authority{t, a}
}

// issue returns the certificate of an identity, from and until so long from
// now, and its key, as PEM.
func (a authority) issue(i pki.Identity, from, until time.Duration) (cert, key []byte) {
	a.Helper()
	cert, key, err := a.Issue(i, time.Now().Add(from), time.Now().Add(until))
	if err != nil {
		a.Fatal(err)
	}
	return cert, key
}

// source returns a valid certificate of an identity.
func (a authority) source(role pki.Role, name string) *pki.Source {
	a.Helper()
	dir := a.TempDir()
	cert, key := a.issue(pki.Identity{Role: role, Name: name}, -time.Hour, time.Hour)
	var paths []string
	for i, text := range [][]byte{cert, key, a.PEM()} {
		paths = append(paths, filepath.Join(dir, string(rune('a'+i))+".pem"))
		if err := os.WriteFile(paths[i], text, 0o600); err != nil {
			a.Fatal(err)
		}
	}
	s, err := pki.Load(pki.Files{Cert: paths[0], Key: paths[1], CA: paths[2]}, nil)
	if err != nil {
		a.Fatal(err)
	}
	return s
}

// forced returns a client's configuration with a certificate that a Source
// would not use, towards any server.
func (a authority) forced(role pki.Role, name string, from, until time.Duration) *tls.Config {
	a.Helper()
	pair, err := tls.X509KeyPair(a.issue(pki.Identity{Role: role, Name: name}, from, until))
	if err != nil {
		a.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
}

// serveTrusted serves with a manager's certificate.
func serveTrusted(t *testing.T, a authority, s Services) (*Server, *logtest.Log) {
	t.Helper()
	j := new(logtest.Log)
	c := ServerConfig{TLS: a.source(pki.Manager, "m").Server(), Log: slog.New(slog.NewTextHandler(j, nil))}
	listener, err := Listen("127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	server := Serve(listener, s, c)
	t.Cleanup(server.Kill)
	return server, j
}

func dialBoth(t *testing.T, s *Server, c *tls.Config) (*ManagerClient, *AgentClient) {
	t.Helper()
	m, err := DialManager(s.Addr().String(), ClientConfig{TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	a, err := DialAgent(s.Addr().String(), ClientConfig{TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return m, a
}

func TestWithoutTrustNothingIsToBeHad(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	f := &fakeManager{}
	s, log := serveTrusted(t, a, Services{Manager: f})
	for name, c := range map[string]struct {
		client      *tls.Config
		here, there string // what the client's error, and the server's log, name
	}{
		"no encryption":      {nil, "", ""},
		"no certificate":     {&tls.Config{InsecureSkipVerify: true}, "", "didn't provide a certificate"},
		"expired":            {a.forced(pki.Operator, "late", -2*time.Hour, -time.Hour), "", "has expired: tributary://operator/late"},
		"not yet valid":      {a.forced(pki.Operator, "early", time.Hour, 2*time.Hour), "", "not valid yet: tributary://operator/early"},
		"other CA":           {other.forced(pki.Operator, "stranger", -time.Hour, time.Hour), "", "not of a trusted authority: tributary://operator/stranger"},
		"an agent":           {a.forced(pki.Agent, "leaf-0", -time.Hour, time.Hour), "", "not for this use: tributary://agent/leaf-0"},
		"server of other CA": {other.source(pki.Operator, "o").Client(pki.Want{Role: pki.Manager}), "not of a trusted authority: tributary://manager/m", ""},
		"server is another":  {a.source(pki.Operator, "o").Client(pki.Want{Role: pki.Agent, Name: "leaf-0"}), "it is tributary://manager/m, wanted is tributary://agent/leaf-0", ""},
	} {
		client, _ := dialBoth(t, s, c.client)
		err := client.ReleaseGroup(testContext(t), 7)
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), c.here) {
			t.Errorf("%s: %v, want one with %q", name, err, c.here)
		}
		if !log.Await(testContext(t), c.there) {
			t.Errorf("%s: the server's log has no %q: %s", name, c.there, log)
		}
	}
	if f.asked != nil {
		t.Errorf("the manager was asked for %v", f.asked)
	}
}

type fakeTelemetry struct{ gnmi.UnimplementedGNMIServer }

func (fakeTelemetry) Register(r grpc.ServiceRegistrar) { gnmi.RegisterGNMIServer(r, fakeTelemetry{}) }
func (fakeTelemetry) Service() string                  { return gnmi.GNMI_ServiceDesc.ServiceName }

func TestPolicyIsOfEveryMethod(t *testing.T) {
	s := serve(t, Services{Manager: &fakeManager{}, Agent: &fakeAgent{}, Telemetry: fakeTelemetry{}})
	left := map[string]bool{}
	for method := range policy {
		left[method] = true
	}
	for name, service := range s.grpc.GetServiceInfo() {
		for _, m := range service.Methods {
			method := "/" + name + "/" + m.Name
			if !left[method] {
				t.Errorf("no role is named for %s", method)
			}
			delete(left, method)
		}
	}
	if len(left) != 0 {
		t.Errorf("the policy is also of %v, which is not served", left)
	}
	if err := permit(pki.Identity{Role: pki.Operator, Name: "o"}, "/x.Y/Z"); !errors.Is(err, ErrDenied) {
		t.Errorf("an unknown method: %v", err)
	}
	for method := range policy {
		err := permit(pki.Identity{Role: pki.Agent, Name: "leaf-0"}, method)
		if ours := strings.HasPrefix(method, "/tributary.") || strings.HasPrefix(method, "/gnmi."); ours != errors.Is(err, ErrDenied) {
			t.Errorf("an agent calls %s: %v", method, err)
		}
	}
}

// calls are all methods, each called once; group 7 has members h0 and h1.
var calls = map[string]func(context.Context, *ManagerClient, *AgentClient) error{
	"CreateGroup": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, _, err := m.CreateGroup(ctx, manager.Create{Name: "g", Members: []string{"h0", "h1"}})
		return err
	},
	"ReleaseGroup": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error { return m.ReleaseGroup(ctx, 7) },
	"HostSession": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		return ask(ctx, m, manager.Watch{Group: 7, Rank: 1, DataAddr: someState.Holds[0].Addr}, nil)
	},
	"ExplainGroup": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.Explain(ctx, GroupRef{Group: 7})
		return err
	},
	"ListGroups": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error { _, err := m.Groups(ctx); return err },
	"GetTopology": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.Topology(ctx)
		return err
	},
	"DrainSwitch": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		return m.DrainSwitch(ctx, "s", true)
	},
	"SetTopology": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.SetTopology(ctx, TopologyFile{})
		return err
	},
	"EditTopology": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.EditTopology(ctx, TopologyFile{})
		return err
	},
	"DiffTopology": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.DiffTopology(ctx, TopologyFile{})
		return err
	},
	"GetTopologyFile": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.TopologyFile(ctx, true)
		return err
	},
	"GetTopologyHistory": func(ctx context.Context, m *ManagerClient, _ *AgentClient) error {
		_, err := m.TopologyHistory(ctx)
		return err
	},

	"GetCapability": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error { _, err := a.State(ctx); return err },
	"GetCounters": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error {
		_, err := a.Counters(ctx)
		return err
	},
	"SetRoutes": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error {
		return a.SetRoutes(ctx, portmap.Assignment{})
	},
	"Drain": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error { return a.Drain(ctx, true) },
	"Watch": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error {
		return a.Watch(ctx, time.Second, func(AgentEvent) error { return errSeen })
	},
	"Prepare": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error {
		_, err := a.Prepare(ctx, agent.Prepare{})
		return err
	},
	"Commit": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error {
		_, err := a.Commit(ctx, agent.Commit{})
		return err
	},
	"Remove": func(ctx context.Context, _ *ManagerClient, a *AgentClient) error {
		return a.Remove(ctx, agent.Remove{})
	},
}

var errSeen = errors.New("seen")

func TestRoles(t *testing.T) {
	const ofHosts = "CreateGroup ReleaseGroup HostSession ExplainGroup "
	const asking = "GetCapability GetCounters Watch Drain "
	a := newAuthority(t)
	explanation := Explanation{Summary: manager.Summary{State: manager.Active}}
	for name, c := range map[string]struct {
		role pki.Role
		host string
		may  string
	}{
		"operator":             {pki.Operator, "o", ofHosts + "ListGroups GetTopology DrainSwitch SetTopology EditTopology DiffTopology GetTopologyFile GetTopologyHistory " + asking},
		"manager":              {pki.Manager, "m", asking + "Prepare Commit Remove SetRoutes"},
		"member of that rank":  {pki.Host, "h1", ofHosts},
		"member of other rank": {pki.Host, "h0", "CreateGroup ReleaseGroup ExplainGroup"},
		"other host":           {pki.Host, "h2", ""},
	} {
		s, _ := serveTrusted(t, a, Services{
			Manager: &fakeManager{events: closed[manager.Event](), explanation: explanation},
			Members: membership{7: {"h0", "h1"}},
			Agent:   &readyAgent{fakeAgent{addr: someState.Holds[0].Addr}},
		})
		m, g := dialBoth(t, s, a.source(c.role, c.host).Client(pki.Want{Role: pki.Manager}))
		g.manager = 1
		if c.role == pki.Manager {
			leads(t, g)
		} else {
			if err := g.Watch(testContext(t), time.Second, func(AgentEvent) error { return errSeen }); !errors.Is(err, ErrDenied) {
				t.Errorf("%s leads a switch: %v", name, err)
			}
			g.manager = 0
		}
		for method, call := range calls {
			may := false
			for _, allowed := range strings.Fields(c.may) {
				may = may || allowed == method
			}
			err := call(testContext(t), m, g)
			switch {
			case may && err != nil && !errors.Is(err, errSeen):
				t.Errorf("%s calls %s: %v", name, method, err)
			case !may && (!errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), c.host)):
				t.Errorf("%s calls %s: %v, want %v that names %s", name, method, err, ErrDenied, c.host)
			}
		}
	}
}

// membership is a Membership.
type membership map[uint32][]string

func (m membership) MemberOf(_ context.Context, which GroupRef, host string) error {
	for _, name := range m[which.Group] {
		if name == host {
			return nil
		}
	}
	return ErrNotMember
}

func (m membership) RankIs(_ context.Context, group, rank uint32, host string) error {
	if m[group][rank] != host {
		return ErrNotMember
	}
	return nil
}

func closed[E any]() chan E {
	c := make(chan E)
	close(c)
	return c
}

func TestHostsNeedAMembership(t *testing.T) {
	a := newAuthority(t)
	s, log := serveTrusted(t, a, Services{Manager: &fakeManager{}})
	m, _ := dialBoth(t, s, a.source(pki.Host, "h1").Client(pki.Want{}))
	for _, method := range []string{"ReleaseGroup", "HostSession", "ExplainGroup"} {
		if err := calls[method](testContext(t), m, nil); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := calls["DrainSwitch"](testContext(t), m, nil); !errors.Is(err, ErrDenied) || !strings.Contains(log.String(), "tributary://host/h1 calls DrainSwitch") {
		t.Errorf("%v; the log says %q", err, log)
	}
}

func TestCertificatesWithoutARole(t *testing.T) {
	a := newAuthority(t)
	c := ServerConfig{TLS: &tls.Config{GetCertificate: a.source(pki.Manager, "m").Server().GetCertificate}}
	listener, err := Listen("127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(listener, Services{Manager: &fakeManager{}}, c)
	defer s.Kill()
	m, _ := dialBoth(t, s, &tls.Config{InsecureSkipVerify: true})
	if err := m.ReleaseGroup(testContext(t), 7); !errors.Is(err, ErrDenied) {
		t.Errorf("a server that asks for no certificate: %v", err)
	}
}

func TestPlaintextIsForLoopback(t *testing.T) {
	secure := ServerConfig{TLS: &tls.Config{}}
	for _, c := range []struct {
		address string
		config  ServerConfig
		ok      bool
	}{
		{"127.0.0.1:0", ServerConfig{}, true},
		{"localhost:0", ServerConfig{}, true},
		{"0.0.0.0:0", ServerConfig{}, false},
		{":0", ServerConfig{}, false},
		{"192.0.2.1:0", ServerConfig{}, false}, // not this machine's either
		{":0", ServerConfig{AllowPlaintext: true}, true},
		{":0", secure, true},
	} {
		listener, err := Listen(c.address, c.config)
		if c.ok && err != nil || !c.ok && (!errors.Is(err, ErrPlaintext) || !strings.Contains(err.Error(), c.address)) {
			t.Errorf("%s with %+v: %v", c.address, c.config, err)
		}
		if err == nil {
			if err := listener.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Listen(taken.Addr().String(), ServerConfig{}); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("a port in use: %v", err)
	}
}
