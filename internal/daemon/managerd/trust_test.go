package managerd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// trust is the directory of an authority.
type trust struct {
	*testing.T
	dir string
}

// newTrust makes an authority, and certificates for a fabric of newFabric.
func newTrust(t *testing.T) trust {
	t.Helper()
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	ids := []pki.Identity{{Role: pki.Manager, Name: "m"}, {Role: pki.Operator, Name: "me"}}
	for n := range topology.NodeID(g.Nodes()) {
		role := pki.Host
		if g.IsSwitch(n) {
			role = pki.Agent
		}
		ids = append(ids, pki.Identity{Role: role, Name: g.Name(n)})
	}
	dir := t.TempDir()
	if _, err := pki.Init(dir, ids...); err != nil {
		t.Fatal(err)
	}
	return trust{t, dir}
}

// tls names the files of an identity.
func (d trust) tls(role pki.Role, name string) *hostlib.TLS {
	cert, key, ca := d.files(role, name)
	return &hostlib.TLS{Cert: cert, Key: key, CA: ca}
}

// files returns the paths of a certificate, its key, and the authority's.
func (d trust) files(role pki.Role, name string) (cert, key, ca string) {
	i := pki.Identity{Role: role, Name: name}
	return filepath.Join(d.dir, pki.CertFile(i)), filepath.Join(d.dir, pki.KeyFile(i)), filepath.Join(d.dir, pki.AuthorityFile)
}

func (d trust) source(role pki.Role, name string) *pki.Source {
	d.Helper()
	cert, key, ca := d.files(role, name)
	s, err := pki.Load(pki.Files{Cert: cert, Key: key, CA: ca}, nil)
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// dial returns a client of a fabric's manager, as somebody.
func (d trust) dial(f *fabric, role pki.Role, name string) *rpc.ManagerClient {
	d.Helper()
	c, err := rpc.DialManager(f.manager.Addr(), rpc.ClientConfig{TLS: d.source(role, name).Client(pki.Want{Role: pki.Manager})})
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = c.Close() })
	return c
}

// awaitLog waits until a text is in a log.
func awaitLog(ctx context.Context, t *testing.T, log *logtest.Log, text string) {
	t.Helper()
	if !log.Await(ctx, text) {
		t.Fatalf("no %q in the log:\n%s", text, log)
	}
}

// newTrustedFabric is startFabric where everybody has a certificate of d's, as
// far as adjust does not give another.
func newTrustedFabric(t *testing.T, d trust, adjust func(*managerd.Config, map[string]*agentd.Config)) (*fabric, *logtest.Log) {
	t.Helper()
	log := new(logtest.Log)
	f := startFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Trust, c.Log = d.source(pki.Manager, "m"), slog.New(slog.NewTextHandler(log, nil))
		for name, a := range agents {
			a.Trust = d.source(pki.Agent, name)
		}
		if adjust != nil {
			adjust(c, agents)
		}
	})
	f.client = d.dial(f, pki.Operator, "me")
	return f, log
}

// join makes the fabric's hosts members of one communicator; change alters how a
// trusted host joins.
func join(ctx context.Context, t *testing.T, f *fabric, d trust, change func(*hostlib.Config)) []*hostlib.Communicator {
	t.Helper()
	var hosts []*hostlib.Host
	var members []hostlib.Member
	for _, name := range f.hosts() {
		c := hostlib.Config{Name: name, Manager: f.manager.Addr(), TLS: d.tls(pki.Host, name), OfferWait: patience}
		change(&c)
		h, err := hostlib.Join(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close(context.Background()) })
		hosts, members = append(hosts, h), append(members, h.Member())
	}
	comms := make([]*hostlib.Communicator, len(hosts))
	errs := make([]error, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() { comms[i], errs[i] = h.Communicator(ctx, "job", members) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return comms
}

func asIs(*hostlib.Config) {}

// sum runs an allreduce and returns how it ran.
func sum(ctx context.Context, t *testing.T, comms []*hostlib.Communicator) hostlib.Outcome {
	t.Helper()
	outcomes := make([]hostlib.Outcome, len(comms))
	errs := make([]error, len(comms))
	var all sync.WaitGroup
	for i, c := range comms {
		all.Go(func() {
			vector := []int64{int64(i), 7}
			outcomes[i], errs[i] = hostlib.Allreduce(ctx, c, reduce.Sum, vector, vector)
			if n := int64(len(comms)); errs[i] == nil && (vector[0] != n*(n-1)/2 || vector[1] != 7*n) {
				errs[i] = errors.New("the sum is wrong")
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return outcomes[0]
}

func TestTrustedFabricReduces(t *testing.T) {
	d := newTrust(t)
	f, _ := newTrustedFabric(t, d, nil)
	f.connected()
	ctx := testContext(t)
	if o := sum(ctx, t, join(ctx, t, f, d, asIs)); o.Transport != hostlib.Offload {
		t.Errorf("it ran by %v: %s", o.Transport, o.Reason)
	}
}

func TestHostsThatAreNotTrustedRunOverHosts(t *testing.T) {
	d, other := newTrust(t), newTrust(t)
	f, _ := newTrustedFabric(t, d, nil)
	ctx := testContext(t)
	comms := join(ctx, t, f, d, func(c *hostlib.Config) {
		c.TLS, c.OfferWait = other.tls(pki.Host, c.Name), -1
	})
	if o := sum(ctx, t, comms); o.Transport != hostlib.HostTree {
		t.Errorf("it ran by %v: %s", o.Transport, o.Reason)
	}
	f.eventually("members know why", func(ctx context.Context) (bool, error) {
		_, why := comms[0].Transport()
		return strings.Contains(why, "not of a trusted authority: tributary://manager/m"), ctx.Err()
	})
}

func TestJoinChecksTheCertificate(t *testing.T) {
	d, other := newTrust(t), newTrust(t)
	mixed := *d.tls(pki.Host, "h0")
	mixed.CA = other.tls(pki.Host, "h0").CA
	for name, c := range map[string]struct {
		tls  *hostlib.TLS
		want error
		says string
	}{
		"another host's": {d.tls(pki.Host, "h1"), pki.ErrWrongRole, "tributary://host/h1"},
		"an operator's":  {d.tls(pki.Operator, "me"), pki.ErrWrongRole, "tributary://operator/me"},
		"other CA":       {&mixed, pki.ErrAuthority, "tributary://host/h0"},
		"no files":       {&hostlib.TLS{Cert: "a.pem", Key: "b.pem", CA: "c.pem"}, pki.ErrFile, "a.pem"},
	} {
		h, err := hostlib.Join(testContext(t), hostlib.Config{Name: "h0", Manager: "127.0.0.1:1", TLS: c.tls})
		if err == nil {
			_ = h.Close(t.Context())
		}
		if !errors.Is(err, c.want) || !errors.Is(err, hostlib.ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v that names %s", name, err, c.want, c.says)
		}
	}
}

func TestAnAgentWithAnothersNameIsNotMet(t *testing.T) {
	d, other := newTrust(t), newTrust(t)
	const liar, stranger, honest = "leaf-0", "leaf-1", "spine-0"
	f, log := newTrustedFabric(t, d, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Connect = 50 * time.Millisecond // after which it is reported
		// It has the certificate of another switch, and says it is that one.
		agents[liar].Trust, agents[liar].Switch = d.source(pki.Agent, "spine-1"), "spine-1"
		agents[stranger].Trust = other.source(pki.Agent, stranger)
	})
	ctx := testContext(t)
	awaitLog(ctx, t, log, "it is tributary://agent/spine-1, wanted is tributary://agent/leaf-0")
	awaitLog(ctx, t, log, "not of a trusted authority: tributary://agent/leaf-1")
	f.eventually("the honest one is met", func(ctx context.Context) (bool, error) {
		s, err := f.switchState(ctx, honest)
		return err == nil && s.Connected, err
	})
	for _, name := range []string{liar, stranger} {
		if s, err := f.switchState(ctx, name); err != nil || s.Connected {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestHostsAreHeldToTheirGroups(t *testing.T) {
	d := newTrust(t)
	f, log := newTrustedFabric(t, d, nil)
	ctx := testContext(t)
	member, outsider := d.dial(f, pki.Host, "h1"), d.dial(f, pki.Host, "h3")
	spec := f.spec("job")
	spec.Members = []string{"h0", "h1"}
	if _, _, err := outsider.CreateGroup(ctx, spec); !errors.Is(err, rpc.ErrDenied) {
		t.Errorf("an outsider creates: %v", err)
	}
	id, _, err := member.CreateGroup(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	ref := rpc.GroupRef{Group: id}
	data := netip.MustParseAddrPort("127.0.0.1:9")
	watch := func(c *rpc.ManagerClient, group, rank uint32) error {
		var why error
		s, err := openWatch(ctx, c, manager.Watch{Group: group, Rank: rank, DataAddr: data})
		if err == nil {
			err = follow(s, func(e manager.Event) {
				if e.Notice != nil {
					why = e.Notice.Err
				}
			})
		}
		return errors.Join(err, why)
	}
	report := func(rank uint32) error { // and then creates what it may not, which is answered
		s, err := openWatch(ctx, member, manager.Watch{Group: id, Rank: rank, DataAddr: data})
		if err != nil {
			return err
		}
		_ = s.Send(manager.Report{Group: id, Rank: rank, Entered: 1, Transport: manager.HostTree})
		_ = s.Send(manager.Create{Req: 5, Name: "others", Members: []string{"h0", "h2"}})
		e, err := s.Recv()
		for err == nil && e.Reply == nil { // of the watch
			e, err = s.Recv()
		}
		if err == nil && (e.Reply.Req != 5 || !errors.Is(e.Reply.Err, rpc.ErrDenied)) {
			return fmt.Errorf("answered by %+v", e)
		}
		return err
	}
	explain := func(c *rpc.ManagerClient, which rpc.GroupRef) error { _, err := c.Explain(ctx, which); return err }
	for name, c := range map[string]struct{ err, want error }{
		"watches as another rank":     {watch(member, id, 0), rpc.ErrDenied},
		"watches as no rank":          {watch(member, id, 99), rpc.ErrDenied},
		"watches an unknown group":    {watch(member, id+9, 0), manager.ErrUnknownGroup},
		"reports as another rank":     {report(0), nil}, // it is dropped: the host's session has others
		"reports as itself":           {report(1), nil},
		"explains its own":            {explain(member, ref), nil},
		"explains by name":            {explain(member, rpc.GroupRef{Name: "job"}), nil},
		"an outsider watches":         {watch(outsider, id, 1), rpc.ErrDenied},
		"an outsider explains":        {explain(outsider, ref), rpc.ErrDenied},
		"an outsider names":           {explain(outsider, rpc.GroupRef{Name: "job"}), rpc.ErrDenied},
		"an outsider guesses":         {explain(outsider, rpc.GroupRef{Name: "bob"}), manager.ErrUnknownGroup},
		"an outsider releases":        {outsider.ReleaseGroup(ctx, id), rpc.ErrDenied},
		"a member drains":             {member.DrainSwitch(ctx, "leaf-0", true), rpc.ErrDenied},
		"an operator sees everything": {explain(f.client, ref), nil},
	} {
		if c.want == nil && c.err != nil || c.want != nil && !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if e, err := f.client.Explain(ctx, ref); err != nil || e.Hosts != 1 {
		t.Errorf("%d members have reported, %v, want the one that spoke for itself", e.Hosts, err)
	}
	if err := member.ReleaseGroup(ctx, id); err != nil {
		t.Errorf("a member releases: %v", err)
	}
	awaitLog(ctx, t, log, "tributary://host/h1 calls DrainSwitch")
}

func TestCertificatesAreOfTheRightHolder(t *testing.T) {
	d := newTrust(t)
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := managerd.Config{Topology: g, Listen: "127.0.0.1:0", Trust: d.source(pki.Operator, "me")}
	if _, err := managerd.Start(c); !errors.Is(err, managerd.ErrConfig) || !errors.Is(err, pki.ErrWrongRole) {
		t.Errorf("a manager with an operator's: %v", err)
	}
	a := agentConfig("leaf-0")
	a.Trust = d.source(pki.Agent, "leaf-1")
	if _, err := agentd.Start(a); !errors.Is(err, agentd.ErrConfig) || !errors.Is(err, pki.ErrWrongRole) {
		t.Errorf("an agent with another's: %v", err)
	}
}

func TestPlaintextStaysOnLoopback(t *testing.T) {
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	everywhere := managerd.Config{Topology: g, Listen: ":0"}
	if _, err := managerd.Start(everywhere); !errors.Is(err, rpc.ErrPlaintext) {
		t.Errorf("a manager: %v", err)
	}
	everywhere.AllowPlaintext = true
	allowed, err := managerd.Start(everywhere)
	if err != nil {
		t.Fatal(err)
	}
	allowed.Close()
	a := agentConfig("leaf-0")
	a.Listen = ":0"
	if _, err := agentd.Start(a); !errors.Is(err, rpc.ErrPlaintext) {
		t.Errorf("an agent: %v", err)
	}
	b := agentConfig("leaf-0")
	b.Data = netip.IPv4Unspecified()
	if _, err := agentd.Start(b); !errors.Is(err, rpc.ErrPlaintext) {
		t.Errorf("an agent's data: %v", err)
	}
}

// Manager and agent export when their certificates expire.
func TestCertificateExpiryIsExported(t *testing.T) {
	d := newTrust(t)
	own, of := d.source(pki.Manager, "m"), d.source(pki.Agent, "leaf-0")
	g, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	m, err := managerd.Start(managerd.Config{Topology: g, Listen: "127.0.0.1:0", Trust: own})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Kill()
	a, err := agentd.Start(agentd.Config{
		Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1"), Trust: of,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Kill()
	for name, x := range map[string]struct {
		from  prometheus.Collector
		until time.Time
	}{"tributary_manager_": {m.Collector(), own.Until()}, "tributary_agent_": {a.Collector(), of.Until()}} {
		r := prometheus.NewRegistry()
		r.MustRegister(x.from)
		all, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := 0.0
		for _, f := range all {
			if f.GetName() == name+"certificate_expiry_timestamp_seconds" {
				got = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		if got != float64(x.until.Unix()) || x.until.Before(time.Now()) {
			t.Errorf("%s: it expires at %v, and exported is %v", name, x.until, got)
		}
	}
}
