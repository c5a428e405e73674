package embedded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/topology"
)

// railFabric is a fabric whose hosts have an interface for each of their links.
type railFabric struct {
	*embedded.Fabric
	machines map[string]*machine
}

// machine is the interfaces of a host, and what its links do to packets from and to
// switches.
type machine struct {
	interfaces nic.Fake

	mu   sync.Mutex
	all  []nic.Interface // by the link's switch
	cuts map[netip.Addr]cut
}

// cut is what does not pass, of a rail's packets.
type cut struct{ out, in bool }

// setUp gives the interface to a switch its carrier, or takes it away.
func (m *machine) setUp(leaf string, up bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.all {
		if m.all[i].Name == leaf {
			m.all[i].Up = up
		}
	}
	m.interfaces.Set(m.all, nil)
}

// cut lets packets pass on the link to a switch, or not; the interface shows nothing.
func (m *machine) cut(leaf string, c cut) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.all {
		if i.Name == leaf {
			m.cuts[i.Addresses[0]] = c
		}
	}
}

func (m *machine) at(rail netip.Addr) cut {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cuts[rail]
}

// wire is a data socket of a machine.
type wire struct {
	transport.Conn
	of *machine

	mu     sync.Mutex
	source netip.Addr
}

func (w *wire) SetSource(source netip.Addr, device int) bool {
	w.mu.Lock()
	w.source = source
	w.mu.Unlock()
	return w.Conn.SetSource(source, device)
}

func (w *wire) cut() cut {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of.at(w.source)
}

func (w *wire) WriteBatch(messages []transport.Message) error {
	if w.cut().out {
		return nil
	}
	return w.Conn.WriteBatch(messages)
}

func (w *wire) ReadBatch(packets []transport.Packet, until time.Time) (int, error) {
	for {
		n, err := w.Conn.ReadBatch(packets, until)
		if err != nil || !w.cut().in {
			return n, err
		}
	}
}

// startRails starts a fabric with rails. The ends of host H's link L have the addresses
// 127.1.L.1+H and 127.2.L.1+H.
func startRails(ctx context.Context, t *testing.T, spec string, core manager.Config, options ...hostlib.GroupOption) *railFabric {
	t.Helper()
	plain := parsed(t, spec)
	var b topology.Builder
	var nodes []topology.Ref
	for n := range topology.NodeID(plain.Nodes()) {
		add := b.AddHost
		if plain.IsSwitch(n) {
			add = func(name string) (topology.Ref, error) { return b.AddSwitch(name, plain.Capability(n)) }
		}
		r, err := add(plain.Name(n))
		if err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, r)
	}
	f := &railFabric{machines: map[string]*machine{}}
	for l := range plain.AllLinks() {
		ends := plain.Link(l).Ends
		id, err := b.Connect(nodes[ends[0].Node], ends[0].Port, nodes[ends[1].Node], ends[1].Port, topology.DefaultLink())
		if err != nil {
			t.Fatal(err)
		}
		if !plain.IsHost(ends[0].Node) {
			continue
		}
		host, at := byte(ends[0].Node)+1, byte(ends[0].Port)
		own := netip.AddrFrom4([4]byte{127, 1, at, host})
		if err := b.SetAddresses(id, own, netip.AddrFrom4([4]byte{127, 2, at, host})); err != nil {
			t.Fatal(err)
		}
		name := plain.Name(ends[0].Node)
		if f.machines[name] == nil {
			f.machines[name] = &machine{cuts: map[netip.Addr]cut{}}
		}
		m := f.machines[name]
		m.all = append(m.all, nic.Interface{Name: plain.Name(ends[1].Node), Enabled: true, Up: true, Addresses: []netip.Addr{own}, Bits: []int{24}})
		m.interfaces.Set(m.all, nil)
	}
	graph, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	f.Fabric = start(ctx, t, embedded.Config{
		Topology: graph, Rails: true, Core: core, Options: options,
		Hooks: func(host string) hooks.Hooks {
			m := f.machines[host]
			return hooks.Hooks{Interfaces: &m.interfaces, Data: func(c transport.Conn) transport.Conn { return &wire{Conn: c, of: m} }}
		},
	})
	return f
}

// leaves returns the switches that the members' links of a communicator's tree lead to.
func (f *railFabric) leaves(ctx context.Context, t *testing.T, name string) (all []string) {
	t.Helper()
	tree, err := f.AwaitTree(ctx, name, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range tree.Tree.Leaves {
		all = append(all, f.Topology().Name(f.Topology().Across(l.Link, l.Host)))
	}
	return all
}

// TestTreesTakeRails: packets come from the rail at the tree's link, or the switch would
// drop them.
func TestTreesTakeRails(t *testing.T) {
	for _, stripes := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(stripes), func(t *testing.T) {
			ctx := within(t)
			f := startRails(ctx, t, "rail:4,3,1,0", manager.Config{}, hostlib.Stripes(stripes))
			comms := communicators(ctx, t, f.Fabric, "job")
			onSwitches(ctx, t, comms)
			wantTransport(t, sum(ctx, t, comms, nil), hostlib.Offload)
			var used []string
			for i := range stripes {
				name := "job"
				if i > 0 {
					name = fmt.Sprint("job/stripe-", i)
				}
				used = append(used, slices.Compact(f.leaves(ctx, t, name))...)
			}
			slices.Sort(used)
			if len(slices.Compact(used)) != stripes {
				t.Errorf("the stripes are on %v", used)
			}
			leave(ctx, t, comms)
		})
	}
}

// TestRailGoesDown in the middle of an operation: its interface loses the carrier, or the
// link passes nothing, in both directions or one. The tree moves to the other rail.
func TestRailGoesDown(t *testing.T) {
	for name, lose := range map[string]func(m *machine, leaf string){
		"carrier": func(m *machine, leaf string) { m.cut(leaf, cut{true, true}); m.setUp(leaf, false) },
		"silent":  func(m *machine, leaf string) { m.cut(leaf, cut{true, true}) },
		"out":     func(m *machine, leaf string) { m.cut(leaf, cut{out: true}) },
		"in":      func(m *machine, leaf string) { m.cut(leaf, cut{in: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			f := startRails(ctx, t, "rail:4,2,1,0", manager.Config{})
			comms := communicators(ctx, t, f.Fabric, "job")
			onSwitches(ctx, t, comms)
			before := f.leaves(ctx, t, "job")
			sum(ctx, t, comms, func() { lose(f.machines["h2"], before[2]) })
			until(ctx, t, func() bool {
				return overSwitches(ctx, t, comms) && !slices.Contains(f.leaves(ctx, t, "job"), before[2])
			})
			leave(ctx, t, comms)
		})
	}
}

// overSwitches reports whether an operation runs over switches at every member.
func overSwitches(ctx context.Context, t *testing.T, comms []*hostlib.Communicator) bool {
	t.Helper()
	return !slices.ContainsFunc(sum(ctx, t, comms, nil), func(o hostlib.Outcome) bool { return o.Transport != hostlib.Offload })
}

// TestStripePerRail loses a rail in the middle of an operation: both stripes go on over the
// other one, while that is there; and each has one of its own again when it is back.
func TestStripePerRail(t *testing.T) {
	ctx := within(t)
	f := startRails(ctx, t, "rail:4,2,1,0", manager.Config{Settle: time.Millisecond}, hostlib.Stripes(hostlib.PerRail))
	comms := communicators(ctx, t, f.Fabric, "job")
	onSwitches(ctx, t, comms)
	if n := len(comms[0].Stripes()); n != 2 {
		t.Fatalf("%d stripes", n)
	}
	leavesOf := func() (all []string) {
		for _, name := range []string{"job", "job/stripe-1"} {
			all = append(all, slices.Compact(f.leaves(ctx, t, name))...)
		}
		slices.Sort(all)
		return all
	}
	both := []string{"leaf-0-0", "leaf-0-1"}
	if got := leavesOf(); !slices.Equal(got, both) {
		t.Fatalf("the stripes are on %v", got)
	}
	for _, lost := range both {
		sum(ctx, t, comms, func() {
			f.machines["h2"].cut(lost, cut{true, true})
			f.machines["h2"].setUp(lost, false)
		})
		until(ctx, t, func() bool { return overSwitches(ctx, t, comms) && !slices.Contains(leavesOf(), lost) })
		f.machines["h2"].cut(lost, cut{})
		f.machines["h2"].setUp(lost, true)
		until(ctx, t, func() bool { return slices.Equal(leavesOf(), both) && overSwitches(ctx, t, comms) })
	}
	leave(ctx, t, comms)
}

// TestRailsChurn has interfaces of hosts fail and recover in any order while operations run: all results are right, and in the end each stripe has rails of its own.
func TestRailsChurn(t *testing.T) {
	ctx := within(t)
	f := startRails(ctx, t, "rail:3,2,2,2", manager.Config{Settle: time.Millisecond}, hostlib.Stripes(hostlib.PerRail))
	comms := communicators(ctx, t, f.Fabric, "job")
	onSwitches(ctx, t, comms)
	r := rand.New(rand.NewPCG(18, 4))
	host := func(h int) (m *machine, leaf string, other string) {
		m = f.machines[fmt.Sprint("h", h)]
		leaf, other = m.all[0].Name, m.all[1].Name
		if r.IntN(2) == 0 {
			leaf, other = other, leaf
		}
		return m, leaf, other
	}
	for range 16 {
		m, leaf, other := host(r.IntN(len(comms)))
		sum(ctx, t, comms, func() {
			m.setUp(other, true) // not both at once
			m.cut(other, cut{})
			m.cut(leaf, cut{true, r.IntN(2) == 0})
			m.setUp(leaf, false)
		})
		if r.IntN(2) == 0 {
			sum(ctx, t, comms, func() {
				m.cut(leaf, cut{})
				m.setUp(leaf, true)
			})
		}
	}
	for _, m := range f.machines {
		for _, i := range m.all {
			m.cut(i.Name, cut{})
			m.setUp(i.Name, true)
		}
	}
	until(ctx, t, func() bool {
		if !overSwitches(ctx, t, comms) {
			return false
		}
		a, b := f.leaves(ctx, t, "job"), f.leaves(ctx, t, "job/stripe-1")
		for i := range a {
			if a[i] == b[i] {
				return false
			}
		}
		return true
	})
	leave(ctx, t, comms)
}
