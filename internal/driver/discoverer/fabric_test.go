package discoverer_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tributary-fabric/tributary/internal/core/telemetry"
	"github.com/tributary-fabric/tributary/internal/driver/gnmi"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
	"github.com/tributary-fabric/tributary/topology"
)

// fabric is a fabric of simulated switches, which report by real gNMI what they see.
type fabric struct {
	graph    *topology.Graph
	switches []*station // by switch index
	claim    *loopback.Claim

	mu    sync.Mutex
	links map[[2]topology.End]bool // whether they are up
	at    map[topology.NodeID][][2]topology.End
}

// station is one switch.
type station struct {
	fabric *fabric
	node   topology.NodeID
	server *gnmi.Server
	grpc   *grpc.Server
	addr   netip.AddrPort
	done   chan error
}

// fataler is a test, or a program that ends where one would fail.
type fataler interface{ Fatal(...any) }

// newFabric starts the switches of a graph. tlsOf returns how one serves; nil: in plaintext.
func newFabric(t fataler, g *topology.Graph, tlsOf func(name string) *tls.Config) *fabric {
	f := &fabric{graph: g, links: map[[2]topology.End]bool{}}
	for _, l := range g.AllLinks() {
		f.links[l.Ends] = true
	}
	f.index()
	for i := range g.Switches() {
		f.switches = append(f.switches, &station{fabric: f, node: g.Switch(i)})
	}
	claim, err := loopback.New() // an address whose ports nobody takes who asks for any
	if err != nil {
		t.Fatal(err)
	}
	f.claim = claim
	for _, s := range f.switches { // addresses first, which neighbours report
		listener, err := net.Listen("tcp", claim.Listen())
		if err != nil {
			t.Fatal(err)
		}
		s.addr = netip.MustParseAddrPort(listener.Addr().String())
		defer s.start(t, listener, tlsOf)
	}
	return f
}

func (s *station) start(t fataler, listener net.Listener, tlsOf func(name string) *tls.Config) {
	var options []grpc.ServerOption
	if tlsOf != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(tlsOf(s.fabric.graph.Name(s.node)))))
	}
	server, err := gnmi.Start(gnmi.Config{Source: s, Clock: runner.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	s.server, s.grpc, s.done = server, grpc.NewServer(options...), make(chan error, 1)
	s.server.Register(s.grpc)
	s.server.Changed()
	go func() { s.done <- s.grpc.Serve(listener) }()
}

// stop ends a switch as its failure would.
func (s *station) stop() {
	s.grpc.Stop()
	<-s.done
	s.server.Close()
}

func (f *fabric) close() {
	for _, s := range f.switches {
		s.stop()
	}
	f.claim.Release()
}

// change does something to the links, and has all switches look.
func (f *fabric) change(do func(links map[[2]topology.End]bool)) { f.changeWithout(nil, do) }

// changeWithout does so while a switch is dead.
func (f *fabric) changeWithout(dead *station, do func(links map[[2]topology.End]bool)) {
	f.mu.Lock()
	do(f.links)
	f.index()
	f.mu.Unlock()
	for _, s := range f.switches {
		if s != dead {
			s.server.Changed()
		}
	}
}

// index lists the links at each node.
func (f *fabric) index() {
	f.at = map[topology.NodeID][][2]topology.End{}
	for ends := range f.links {
		for _, e := range ends {
			f.at[e.Node] = append(f.at[e.Node], ends)
		}
	}
}

// Read implements gnmi.Source.
func (s *station) Read(context.Context, telemetry.Part) (*openconfig.Device, error) {
	f, name := s.fabric, s.fabric.graph.Name(s.node)
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &openconfig.Device{
		Name: name, LLDP: true, Chassis: "chassis-" + name, ChassisType: "LOCAL", Interfaces: map[string]*openconfig.Interface{},
		Agent: &openconfig.Agent{
			Switch: name, Functions: []string{"sum"}, Types: []string{"int32"}, Slots: 1024, Children: 32, Chunk: 1024,
		},
	}
	for _, ends := range f.at[s.node] {
		up := f.links[ends]
		for i, e := range ends {
			if e.Node != s.node {
				continue
			}
			port := fmt.Sprintf("eth%d", e.Port)
			x := &openconfig.Interface{Name: port, Port: uint32(e.Port), Index: uint32(e.Port) + 1, Admin: openconfig.Up, Oper: openconfig.StatusOf(up), MTU: 9000, Speed: 100e9}
			if up {
				x.Neighbors = []openconfig.Neighbor{f.announcement(ends[1-i])}
			}
			d.Interfaces[port] = x
		}
	}
	return d, nil
}

// Drain implements gnmi.Source.
func (s *station) Drain(context.Context, bool) error { return nil }

// announcement is what a node sends at an end.
func (f *fabric) announcement(e topology.End) openconfig.Neighbor {
	name := f.graph.Name(e.Node)
	n := openconfig.Neighbor{
		ID: "1", Chassis: "chassis-" + name, ChassisType: "LOCAL", Port: fmt.Sprintf("eth%d", e.Port), PortType: "INTERFACE_NAME", SystemName: name,
		Tributary: openconfig.Tributary{Role: f.graph.Kind(e.Node).String(), Name: name, Port: uint32(e.Port)},
	}
	if f.graph.IsSwitch(e.Node) {
		at := f.switches[f.graph.SwitchIndex(e.Node)].addr
		n.Management, n.Tributary.AgentPort = []netip.Addr{at.Addr()}, at.Port()
	}
	return n
}

// truth is what the map is to be: nodes, and links with their states.
func (f *fabric) truth() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]bool{}
	for ends, up := range f.links {
		for _, e := range ends {
			all["node "+f.graph.Name(e.Node)] = true
		}
		a, b := f.end(ends[0]), f.end(ends[1])
		all["link "+min(a, b)+"--"+max(a, b)+" "+strconv.FormatBool(up)] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func (f *fabric) end(e topology.End) string {
	return fmt.Sprintf("%s:%d", f.graph.Name(e.Node), e.Port)
}

func parse(t testing.TB, spec string) *topology.Graph {
	t.Helper()
	g, err := topology.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
