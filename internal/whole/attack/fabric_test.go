package attack_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 3 * time.Minute

// mallory is the host of the attacker that has a certificate, and is in no group; of h0 to h4 all are
// in groups.
const mallory = "h5"

// groups are those that reduce under attack, by their members' hosts; the last is never attacked.
var groups = []struct {
	name    string
	hosts   []int
	options []hostlib.GroupOption
}{
	{"plain", []int{0, 1, 3, 4}, nil},
	{"authenticated", []int{0, 1, 3, 4}, []hostlib.GroupOption{hostlib.Authenticated()}},
	{"encrypted", []int{0, 1, 3, 4}, []hostlib.GroupOption{hostlib.Encrypted()}},
	{"bystander", []int{1, 2, 4}, nil},
}

// zoneKey is the key of the hosts' zone.
var zoneKey = membership.Key{Number: 1, Secret: [32]byte{7, 7, 7}}

// group is one of groups, running.
type group struct {
	name   string
	comms  []*hostlib.Communicator
	taps   []*tap // by rank
	number uint32 // the manager's
	done   int    // operations
}

// fabric is two leaves with three hosts each, and a spine: agents, a manager, and hosts h0 to h4 in
// one zone, all with certificates.
type fabric struct {
	testing.TB
	ctx      context.Context
	dir      string
	manager  *managerd.Daemon
	agents   map[string]*agentd.Daemon
	hosts    []*hostlib.Host
	taps     map[string][]*tap // by host, in the order of their groups
	mu       sync.Mutex        // of taps
	groups   []*group
	operator *rpc.ManagerClient
	list     []manager.Summary // the manager's groups before any attack
	zone     string            // the lives in it, likewise
	matrix   matrix
	view     *view  // nil: without root
	calls    uint64 // of mallory, whose numbers rise
	last     uint64 // its last incarnation that others take
}

func (f *fabric) source(i pki.Identity) *pki.Source {
	f.Helper()
	s, err := pki.Load(pki.Files{
		Cert: filepath.Join(f.dir, pki.CertFile(i)), Key: filepath.Join(f.dir, pki.KeyFile(i)), CA: filepath.Join(f.dir, pki.AuthorityFile),
	}, nil)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

func newFabric(t testing.TB) *fabric {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	g, err := topology.LeafSpine(2, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &fabric{TB: t, ctx: ctx, dir: t.TempDir(), agents: map[string]*agentd.Daemon{}, taps: map[string][]*tap{}, view: newView(t),
		last: uint64(time.Now().Add(peering.MaxAhead - time.Hour).UnixNano()),
	}
	ids := []pki.Identity{{Role: pki.Manager, Name: "m"}, {Role: pki.Operator, Name: "me"}}
	for n := range topology.NodeID(g.Nodes()) {
		role := pki.Host
		if g.IsSwitch(n) {
			role = pki.Agent
		}
		ids = append(ids, pki.Identity{Role: role, Name: g.Name(n)})
	}
	if _, err := pki.Init(f.dir, ids...); err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	for i := range g.Switches() {
		name := g.Name(g.Switch(i))
		d, err := agentd.Start(agentd.Config{
			Switch: name, Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0",
			Data: netip.MustParseAddr("127.0.0.1"), Trust: f.source(pki.Identity{Role: pki.Agent, Name: name}),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Kill)
		f.agents[name], addresses[name] = d, d.Addr()
	}
	f.manager, err = managerd.Start(managerd.Config{
		Topology: g, Agents: addresses, Listen: "127.0.0.1:0", Heartbeat: patience, Verify: -1,
		Core:  manager.Config{ReleaseGrace: time.Millisecond},
		Trust: f.source(pki.Identity{Role: pki.Manager, Name: "m"}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.manager.Kill)
	f.operator, err = rpc.DialManager(f.manager.Addr(), rpc.ClientConfig{
		TLS: f.source(pki.Identity{Role: pki.Operator, Name: "me"}).Client(pki.Want{Role: pki.Manager}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.operator.Close() })
	f.until("the manager has met all switches", func() bool {
		fabric, err := f.operator.Topology(ctx)
		return err == nil && !slices.ContainsFunc(fabric.Nodes, func(n rpc.FabricNode) bool { return n.Switch != nil && !n.Switch.Connected })
	})
	f.join()
	f.formAll()
	return f
}

// until asks again and again until the answer is yes.
func (f *fabric) until(what string, holds func() bool) {
	f.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-f.ctx.Done():
			f.Fatalf("waiting until %s: %v", what, f.ctx.Err())
		}
	}
}

func (f *fabric) join() {
	for i := range 5 {
		name := fmt.Sprint("h", i)
		id := pki.Identity{Role: pki.Host, Name: name}
		c := hostlib.Config{
			Name: name, Manager: f.manager.Addr(), DeadAfter: patience, OfferWait: patience,
			TLS: &hostlib.TLS{
				Cert: filepath.Join(f.dir, pki.CertFile(id)), Key: filepath.Join(f.dir, pki.KeyFile(id)), CA: filepath.Join(f.dir, pki.AuthorityFile),
			},
			Speed:      topology.Speed{},
			Membership: &membership.Config{Keys: []membership.Key{zoneKey}, Timing: membership.Timing{Grace: patience / 10}},
		}
		if i > 0 {
			c.Membership.Bootstrap = []string{f.hosts[0].Addr()}
		}
		ctx := hooks.With(f.Context(), hooks.Hooks{Data: func(c transport.Conn) transport.Conn {
			f.mu.Lock()
			defer f.mu.Unlock()
			p := &tap{Conn: c}
			f.taps[name] = append(f.taps[name], p)
			return p
		}})
		h, err := hostlib.Join(ctx, c)
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = h.Close(context.Background()) })
		f.hosts = append(f.hosts, h)
	}
	for _, h := range f.hosts {
		f.until(h.Name()+" sees all", func() bool {
			view, err := h.Members().View(f.ctx)
			return err == nil && len(view) == len(f.hosts)
		})
	}
	f.zone = f.lives(f.hosts[0])
}

// form forms a group on a tree of switches.
func (f *fabric) form(name string, hosts []int, options ...hostlib.GroupOption) *group {
	f.Helper()
	g := &group{name: name, comms: make([]*hostlib.Communicator, len(hosts))}
	var members []hostlib.Member
	for _, i := range hosts {
		members = append(members, f.hosts[i].Member())
	}
	options = append([]hostlib.GroupOption{hostlib.OnTree()}, options...)
	f.each(len(members), func(rank int) error {
		c, err := f.hosts[hosts[rank]].Communicator(f.ctx, g.name, members, options...)
		g.comms[rank] = c
		return err
	})
	for _, i := range hosts {
		all := f.taps[f.hosts[i].Name()]
		g.taps = append(g.taps, all[len(all)-1])
	}
	for rank, c := range g.comms {
		f.until(fmt.Sprintf("rank %d of %s is on a tree of switches", rank, g.name), func() bool {
			via, _ := c.Transport()
			return via == hostlib.Offload
		})
	}
	for _, s := range f.summaries() {
		if strings.HasPrefix(s.Name, name+"/") {
			g.number = s.Group
		}
	}
	if g.number == 0 {
		f.Fatalf("the manager has no group %s", name)
	}
	return g
}

// formAll forms the groups.
func (f *fabric) formAll() {
	f.Helper()
	for _, wanted := range groups {
		f.groups = append(f.groups, f.form(wanted.name, wanted.hosts, wanted.options...))
	}
	f.list = f.summaries()
}

// each calls all ranks at once.
func (f *fabric) each(n int, call func(rank int) error) {
	f.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = call(i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		f.Fatal(err)
	}
}

// summaries returns the manager's groups, without what operations change.
func (f *fabric) summaries() []manager.Summary {
	f.Helper()
	all, err := f.operator.Groups(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	for i := range all {
		all[i].Demand = 0
	}
	slices.SortFunc(all, func(a, b manager.Summary) int { return int(a.Group) - int(b.Group) })
	return all
}

// elements of an operation take more than one chunk.
const elements = 300

// under has an operation of every group under way, for which its last rank is late, while the attack
// runs, and checks all sums; then that groups and lives are as before.
func (f *fabric) under(t *testing.T, attack func()) {
	t.Helper()
	type running struct {
		g       *group
		vectors [][]int64
		request []*hostlib.Request
	}
	var all []*running
	begin := func(r *running, rank int) {
		r.request[rank] = hostlib.StartAllreduce(r.g.comms[rank], reduce.Sum, r.vectors[rank], r.vectors[rank])
	}
	for _, g := range f.groups {
		n := len(g.comms)
		r := &running{g, make([][]int64, n), make([]*hostlib.Request, n)}
		g.done++
		for rank := range n {
			r.vectors[rank] = make([]int64, elements)
			for k := range r.vectors[rank] {
				r.vectors[rank][k] = int64((rank + 1) * (g.done + k))
			}
			if rank < n-1 {
				begin(r, rank)
			}
		}
		all = append(all, r)
	}
	attack()
	for _, r := range all {
		n := len(r.request)
		begin(r, n-1)
		for rank, q := range r.request {
			o, err := q.Wait(f.ctx)
			if err != nil {
				t.Fatalf("%s, rank %d: %v", r.g.name, rank, err)
			}
			if o.Transport != hostlib.Offload {
				t.Errorf("%s, rank %d, ran by %v: %s", r.g.name, rank, o.Transport, o.Reason)
			}
			for k, x := range r.vectors[rank] {
				if want := int64(n * (n + 1) / 2 * (r.g.done + k)); x != want {
					t.Fatalf("%s, rank %d: element %d is %d, want %d", r.g.name, rank, k, x, want)
				}
			}
		}
	}
	f.alive(t)
}

// lives returns the nodes of the zone that a host sees, with their incarnations.
func (f *fabric) lives(h *hostlib.Host) string {
	f.Helper()
	view, err := h.Members().View(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	var all []string
	for _, m := range view {
		all = append(all, fmt.Sprintf("%s in %d", m.Name, m.Version.Incarnation))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// alive checks that groups, hosts and the zone are as before any attack.
func (f *fabric) alive(t *testing.T) {
	t.Helper()
	if list := f.summaries(); !slices.Equal(list, f.list) {
		t.Errorf("groups are %+v, before they were %+v", list, f.list)
	}
	for _, h := range f.hosts {
		if err := h.Err(); err != nil {
			t.Errorf("%s: %v", h.Name(), err)
		}
		if lives := f.lives(h); lives != f.zone {
			t.Errorf("%s sees %s, before it was %s", h.Name(), lives, f.zone)
		}
		if n := h.Connections(); n.Dead > 0 { // restarts are mallory's, in any incarnation it likes
			t.Errorf("%s: %+v", h.Name(), n)
		}
	}
}
