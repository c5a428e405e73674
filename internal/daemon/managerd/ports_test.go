package managerd_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// addressed returns the leaf-spine fabric of newFabric whose links all have
// addresses.
func addressed(t *testing.T) *topology.Graph {
	t.Helper()
	plain, err := topology.LeafSpine(2, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	b := topology.Builder{Fabric: plain.Fabric()}
	refs := map[topology.NodeID]topology.Ref{}
	for n := range topology.NodeID(plain.Nodes()) {
		if plain.IsSwitch(n) {
			refs[n], err = b.AddSwitch(plain.Name(n), plain.Capability(n))
		} else {
			refs[n], err = b.AddHost(plain.Name(n))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for l, link := range plain.AllLinks() {
		x, y := link.Ends[0], link.Ends[1]
		id, err := b.Connect(refs[x.Node], x.Port, refs[y.Node], y.Port, link.LinkSpec)
		if err == nil {
			err = b.SetAddresses(id, netip.AddrFrom4([4]byte{10, 0, byte(l), 1}), netip.AddrFrom4([4]byte{10, 0, byte(l), 2}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// panel is a switch's interfaces, one for each of its links, in memory.
type panel struct {
	nic.Fake
	all []nic.Interface
}

func newPanel(g *topology.Graph, n topology.NodeID) *panel {
	p := &panel{}
	for _, l := range g.Adjacent(n) {
		p.all = append(p.all, nic.Interface{Name: fmt.Sprint("link", l), Up: true, Addresses: []netip.Addr{g.AddressAt(l, n)}})
	}
	p.Set(p.all, nil)
	return p
}

// change changes the interface at a link.
func (p *panel) change(l topology.LinkID, f func(*nic.Interface)) {
	for i := range p.all {
		if p.all[i].Name == fmt.Sprint("link", l) {
			f(&p.all[i])
		}
	}
	p.Set(p.all, nil)
}

// wired is a fabric whose agents report interfaces.
type wired struct {
	*fabric
	panels map[string]*panel
}

func newWired(t *testing.T, adjust func(*managerd.Config)) *wired {
	t.Helper()
	w := &wired{panels: map[string]*panel{}}
	w.fabric = newFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Topology = addressed(t)
		for name, a := range agents {
			n, _ := c.Topology.Lookup(name)
			w.panels[name] = newPanel(c.Topology, n)
			a.Interfaces = w.panels[name]
		}
		if adjust != nil {
			adjust(c)
		}
	})
	w.graph = w.cfg.Topology
	return w
}

// metrics counts the manager's metrics of that name.
func (w *wired) metrics(name string) int {
	w.Helper()
	r := prometheus.NewRegistry()
	if err := r.Register(w.manager.Collector()); err != nil {
		w.Fatal(err)
	}
	all, err := r.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range all {
		if family.GetName() == name {
			return len(family.GetMetric())
		}
	}
	return 0
}

// link returns the link between two nodes.
func (w *wired) link(a, b string) topology.LinkID {
	w.Helper()
	x, _ := w.graph.Lookup(a)
	y, _ := w.graph.Lookup(b)
	for _, l := range w.graph.Adjacent(x) {
		if w.graph.Across(l, x) == y {
			return l
		}
	}
	w.Fatalf("no link between %s and %s", a, b)
	return topology.NoLink
}

// state waits until a link is up or down for the manager.
func (w *wired) state(l topology.LinkID, up bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("link %s is up: %v", w.graph.LinkName(l), up), func(ctx context.Context) (bool, error) {
		f, err := w.client.Topology(ctx)
		return err == nil && f.Cables[l].Up == up, err
	})
}

func TestTrunkGoesDown(t *testing.T) {
	w := newWired(t, nil)
	g := w.newGroup(w.spec("job"))
	first := g.offers(0)
	root := g.root(first[0].Epoch)
	trunk := w.link("leaf-0", root)
	w.panels["leaf-0"].change(trunk, func(i *nic.Interface) { i.Up = false })
	if why := g.members[0].withdrawal(first[0].Epoch).Why; !strings.Contains(why, w.graph.LinkName(trunk)) {
		t.Errorf("withdrawn because %s", why)
	}
	later := g.offers(first[0].Epoch)
	if other := g.root(later[0].Epoch); other == root {
		t.Errorf("the root is still %s", root)
	}
	g.allreduce(later, 0)

	// The other end says so, too, and is the last to have it up again.
	w.panels[root].change(trunk, func(i *nic.Interface) { i.Up = false })
	w.panels["leaf-0"].change(trunk, func(i *nic.Interface) { i.Up = true })
	w.panels[root].change(trunk, func(i *nic.Interface) { i.Up = true })
	w.state(trunk, true)
	if n := w.metrics("tributary_manager_link_mismatch"); n != 0 {
		t.Errorf("%d mismatches", n)
	}
}

func TestHostLinkGoesDown(t *testing.T) {
	w := newWired(t, nil)
	g := w.newGroup(w.spec("job"))
	epoch := g.offers(0)[0].Epoch
	cable := w.link("h3", "leaf-1")
	// Its addresses go with it, as those of IPv6 do.
	w.panels["leaf-1"].change(cable, func(i *nic.Interface) { i.Addresses = nil })
	g.members[3].withdrawal(epoch)
	w.state(cable, false)
	n, _ := w.graph.Lookup("leaf-1")
	w.panels["leaf-1"].change(cable, func(i *nic.Interface) { i.Addresses = []netip.Addr{w.graph.AddressAt(cable, n)} })
	g.allreduce(g.offers(epoch), 0)
}

// TestLinkWithoutAddressesIsUp: at a port whose link had addresses is a link that has none,
// to the same host or to another. No interface is missing there.
func TestLinkWithoutAddressesIsUp(t *testing.T) {
	for _, host := range []string{"h0", "h9"} {
		t.Run(host, func(t *testing.T) {
			w := newWired(t, nil)
			w.at = w.cfg.Agents
			cable := w.link("h0", "leaf-0")
			for _, up := range []bool{false, true} { // the agent has reported the interface
				w.panels["leaf-0"].change(cable, func(i *nic.Interface) { i.Up = up })
				w.state(cable, up)
			}
			p, err := w.graph.Patched([]byte("remove: {hosts: [h0]}\nhosts: ["+host+"]\nlinks:\n- {between: ["+host+", leaf-0], ports: [1, 1]}\n"), "patch", nil)
			if err != nil {
				t.Fatal(err)
			}
			w.set(p.Graph, "another cable")
			f, err := w.client.Topology(testContext(t))
			if err != nil || len(f.Cables) != w.graph.Links() {
				t.Fatalf("%d links, %v", len(f.Cables), err)
			}
			for _, c := range f.Cables {
				if !c.Up {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// TestLinkStaysDownWithItsAgentAway: what an agent said holds until it says
// otherwise, and one that does not report interfaces has no say.
func TestLinkStaysDownWithItsAgentAway(t *testing.T) {
	w := newWired(t, nil)
	trunk := w.link("leaf-0", "spine-1")
	w.panels["leaf-0"].change(trunk, func(i *nic.Interface) { i.Up = false })
	w.state(trunk, false)
	w.agents["leaf-0"].Kill()
	w.eventually("the agent is lost", func(ctx context.Context) (bool, error) {
		s, err := w.switchState(ctx, "leaf-0")
		return err == nil && !s.Connected, err
	})
	w.state(trunk, false)
	w.restartAgent("leaf-0")
	w.state(trunk, true)
}

// TestAddressThatNoInterfaceHas names the link, and does not take it for down.
func TestAddressThatNoInterfaceHas(t *testing.T) {
	var log logtest.Log
	w := &wired{}
	w.fabric = newFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Topology, c.Log = addressed(t), slog.New(slog.NewTextHandler(&log, nil))
		for name, a := range agents {
			n, _ := c.Topology.Lookup(name)
			p := newPanel(c.Topology, n)
			if name == "leaf-1" {
				p.Set(p.all[1:], nil)
			}
			a.Interfaces = p
		}
	})
	w.graph = w.cfg.Topology
	g := w.newGroup(w.spec("job"))
	g.allreduce(g.offers(0), 0)
	n, _ := w.graph.Lookup("leaf-1")
	link := w.graph.LinkName(w.graph.Adjacent(n)[0])
	warned := 0
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "no interface of the switch has the address") {
			warned++
			if !strings.Contains(line, "switch=leaf-1") || !strings.Contains(line, "link="+link) {
				t.Errorf("warned of %s", line)
			}
		}
	}
	if warned != 1 {
		t.Errorf("%d warnings\n%s", warned, log.String())
	}
}

// meter is a panel whose interfaces carry, from one reading to the next, more
// than all trees could, but for one that carries nothing.
type meter struct {
	*panel
	mu    sync.Mutex
	dead  string
	reads int
}

func (m *meter) Read() ([]nic.Interface, error) {
	all, err := m.panel.Read()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for i := range all {
		if all[i].Name != m.dead {
			carried := uint64(m.reads) << 30
			all[i].Traffic = nic.Traffic{BytesIn: carried, BytesOut: carried}
		}
	}
	return all, err
}

func (m *meter) seen() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

func (m *meter) kill(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = name
}

func TestTreesAreHeldAgainstLinks(t *testing.T) {
	meters := map[string]*meter{}
	var log logtest.Log
	w := &wired{panels: map[string]*panel{}}
	w.fabric = newFabric(t, func(c *managerd.Config, agents map[string]*agentd.Config) {
		c.Topology, c.Verify, c.Log = addressed(t), time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
		for name, a := range agents {
			n, _ := c.Topology.Lookup(name)
			meters[name] = &meter{panel: newPanel(c.Topology, n)}
			a.Interfaces = meters[name]
		}
	})
	w.graph = w.cfg.Topology
	spec := w.spec("job")
	spec.ChunkBytes = 16 // little is on its way at most
	g := w.newGroup(spec)
	offers := g.offers(0)
	chunk := uint32(0)
	reduce := func() {
		for range 100 {
			g.allreduce(offers, chunk)
			chunk++
		}
	}

	// All is well: many looks, and no alarm.
	reduce()
	for name, m := range meters {
		before := m.seen()
		w.eventually("the counters of "+name+" are read", func(context.Context) (bool, error) { return m.seen() > before+3, nil })
	}
	if all := g.explain().Mismatches; len(all) > 0 || strings.Contains(log.String(), "not where it was planned") {
		t.Fatalf("false alarms: %v\n%s", all, log.String())
	}

	// Nothing passes one end of the trunk any more.
	root := g.root(offers[0].Epoch)
	trunk := w.link("leaf-0", root)
	meters[root].kill(fmt.Sprint("link", trunk))
	var found []rpc.LinkMismatch
	w.eventually("the mismatch is found", func(context.Context) (bool, error) {
		reduce()
		found = g.explain().Mismatches
		return len(found) == 2, nil
	})
	for i, m := range found {
		if m.Link != w.graph.LinkName(trunk) || m.Switch != root || m.Sent != (i == 1) || m.Seen != 0 || m.Expected == 0 ||
			len(m.Trees) != 1 || m.Trees[0].Group != g.id || m.Trees[0].Epoch != offers[0].Epoch {
			t.Errorf("found %v", &found[i])
		}
	}
	line := fmt.Sprintf("link=%s interface=link%d direction=received", w.graph.LinkName(trunk), trunk)
	if text := log.String(); !strings.Contains(text, "tree is not where it was planned") || !strings.Contains(text, line) {
		t.Errorf("logged is\n%s", text)
	}
	if n := w.metrics("tributary_manager_link_mismatch"); n != 2 {
		t.Errorf("%d mismatches among the metrics", n)
	}
	fabric, err := w.client.Topology(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if at := slices.IndexFunc(fabric.Cables, func(l rpc.FabricLink) bool { return len(l.Mismatches) > 0 }); at != int(trunk) {
		t.Errorf("the fabric has a mismatch at link %d", at)
	}

	// The alarm ends with what it was about.
	meters[root].kill("")
	w.eventually("the alarm ends", func(context.Context) (bool, error) {
		reduce()
		return len(g.explain().Mismatches) == 0, nil
	})
}
