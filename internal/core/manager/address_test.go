package manager

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// addressed is a leaf with four hosts, of which two have addresses on their links.
const addressedFabric = `
version: 1
switches: [{name: s}]
hosts: [h0, h1, h2, h3]
links:
  - {between: [h0, s], addresses: [10.0.0.1, 10.0.0.254]}
  - {between: [h1, s], addresses: [10.0.1.1, 10.0.1.254]}
  - {between: [h2, s]}
  - {between: [h3, s]}
`

// TestDataAddresses: a member gets a tree at an address that the topology gives its host, or
// that its session proves, and at no other: not at another host's, not at an arbitrary one.
// Where one has none, no switch hears of the group, and the others hear why.
func TestDataAddresses(t *testing.T) {
	graph := must(topology.Read(strings.NewReader(addressedFabric), "fabric.yaml"))
	ip := netip.MustParseAddr
	for name, test := range map[string]struct {
		host   int
		data   string
		proven string // empty: no proof
		open   bool   // there are no certificates
		says   string // empty: it gets a tree
	}{
		"the topology's":                     {host: 0, data: "10.0.0.1"},
		"all of its own":                     {host: 0, data: "0.0.0.0"},
		"proven":                             {host: 2, data: "10.9.0.1", proven: "10.9.0.1"},
		"proven beside the topology's":       {host: 0, data: "10.9.0.1", proven: "10.9.0.1"},
		"another host's":                     {host: 0, data: "10.0.1.1", proven: "10.0.0.1", says: "the topology has the links h0:1--s:1 (10.0.0.1)"},
		"another host's, of one without":     {host: 2, data: "10.0.1.1", proven: "10.9.0.1", says: "the topology has it for h1"},
		"a switch's":                         {host: 2, data: "10.0.1.254", proven: "10.9.0.1", says: "the topology has it for s"},
		"anybody's":                          {host: 0, data: "8.8.8.8", proven: "10.0.0.1", says: "the topology has the links"},
		"anybody's, of one without":          {host: 2, data: "8.8.8.8", proven: "10.9.0.1", says: "its session comes from 10.9.0.1"},
		"anybody's, without proof":           {host: 2, data: "8.8.8.8", says: "its session comes from"},
		"this machine's":                     {host: 2, data: "127.0.0.5", proven: "127.0.0.1"},
		"this machine's, from another":       {host: 2, data: "127.0.0.5", proven: "10.9.0.1", says: "its session comes from 10.9.0.1"},
		"open: another host's":               {host: 0, data: "10.0.1.1", open: true, says: "the topology has the links"},
		"open: another host's of one withot": {host: 2, data: "10.0.1.1", open: true, says: "the topology has it for h1"},
		"open: nothing to compare":           {host: 2, data: "10.9.0.1", open: true},
		"open: this machine's":               {host: 0, data: "127.0.0.5", open: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(graph, Config{MinWindow: 2, Certified: !test.open}, 1000)
			for i := range w.agents {
				w.connect(i)
			}
			g := w.create("g", 8, test.host, 3).Group
			w.watch(g, 1)
			m := &fakeMember{addr: netip.AddrPortFrom(ip(test.data), 5000), watching: true, stream: 1 << 20}
			w.members[[2]uint32{g, 0}] = m
			in := Watch{Group: g, DataAddr: m.addr, Stream: m.stream}
			if test.proven != "" {
				in.Proven = ip(test.proven)
			}
			prepares := 0
			w.watcher = func(o *Output) { prepares += len(o.Prepares) }
			w.step(in)
			w.run(time.Second)
			e, _ := w.core.Group(g)
			switch {
			case test.says == "" && e.State != Active && !strings.HasPrefix(test.data, "0.0.0.0"):
				t.Errorf("it is %v: %v", e.State, e.Refusal)
			case test.says == "":
			case prepares > 0 || e.State != Refusing || !errors.Is(e.Refusal, ErrAddress) || !strings.Contains(e.Refusal.Error(), test.says) || !strings.Contains(e.Refusal.Error(), fmt.Sprint("rank 0, h", test.host)):
				t.Errorf("it is %v after %d Prepares: %v, want %s", e.State, prepares, e.Refusal, test.says)
			}
			if test.says == "" {
				return
			}
			in.DataAddr, in.Proven, in.Stream = netip.MustParseAddrPort("10.9.7.7:1"), ip("10.9.7.7"), 1<<21
			m.stream, m.addr = in.Stream, in.DataAddr
			w.step(in) // it comes again, with an address of its own
			w.run(time.Second)
			if e, _ := w.core.Group(g); e.State != Active || w.fault != nil {
				t.Errorf("then it is %v: %v; %v", e.State, e.Refusal, w.fault)
			}
		})
	}
}

// TestMovedToAnother: a member that runs over a tree and then names another host's address
// loses it, and gets none there.
func TestMovedToAnother(t *testing.T) {
	graph := must(topology.Read(strings.NewReader(addressedFabric), "fabric.yaml"))
	w := newWorld(graph, Config{MinWindow: 2, Certified: true}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	g := w.create("g", 8, 2, 3).Group
	w.watchAll(g)
	w.settle()
	w.want(t, Active, 2)
	m := w.members[[2]uint32{g, 0}]
	m.stream, m.addr = 1<<20, netip.MustParseAddrPort("10.0.1.1:5")
	commits := 0
	w.watcher = func(o *Output) { commits += len(o.Commits) }
	w.step(Watch{Group: g, DataAddr: m.addr, Proven: netip.MustParseAddr("10.9.0.1"), Stream: m.stream, Entered: m.entered})
	w.run(time.Second)
	if e, _ := w.core.Group(g); e.State != Refusing || !errors.Is(e.Refusal, ErrAddress) || commits > 0 || w.fault != nil {
		t.Errorf("it is %v after %d Commits: %v; %v", e.State, commits, e.Refusal, w.fault)
	}
}

// TestMovedWhilePlanned: nor is a tree committed to if a member names another's address after the plan
// was made.
func TestMovedWhilePlanned(t *testing.T) {
	graph := must(topology.Read(strings.NewReader(addressedFabric), "fabric.yaml"))
	w := newWorld(graph, Config{MinWindow: 2, Certified: true}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	commits, prepares := 0, 0
	w.watcher = func(o *Output) { commits, prepares = commits+len(o.Commits), prepares+len(o.Prepares) }
	g := w.create("g", 8, 2, 3).Group
	w.watchAll(g)
	for range 3 {
		w.plan()
		w.store()
	}
	if prepares == 0 || commits > 0 {
		t.Fatalf("%d Prepares and %d Commits", prepares, commits)
	}
	m := w.members[[2]uint32{g, 0}]
	m.stream, m.addr = 1<<20, netip.MustParseAddrPort("10.0.1.1:5")
	w.step(Watch{Group: g, DataAddr: m.addr, Proven: netip.MustParseAddr("10.9.0.1"), Stream: m.stream, Entered: m.entered})
	w.run(time.Second)
	if e, _ := w.core.Group(g); e.State != Refusing || !errors.Is(e.Refusal, ErrAddress) || commits > 0 || w.fault != nil {
		t.Errorf("it is %v after %d Prepares and %d Commits: %v; %v", e.State, prepares, commits, e.Refusal, w.fault)
	}
}

// TestRedrawnAddresses: once the topology knows a host's addresses, these count.
func TestRedrawnAddresses(t *testing.T) {
	w := newWorld(must(topology.Read(strings.NewReader(addressedFabric), "fabric.yaml")), Config{MinWindow: 2}, 1000)
	for i := range w.agents {
		w.connect(i)
	}
	g := w.create("g", 8, 2, 3).Group
	w.watch(g, 1)
	m := &fakeMember{addr: netip.MustParseAddrPort("10.9.0.1:5"), watching: true, stream: 1 << 20}
	w.members[[2]uint32{g, 0}] = m
	w.step(Watch{Group: g, DataAddr: m.addr, Stream: m.stream})
	w.run(time.Second)
	w.want(t, Active, 2)
	text := strings.Replace(addressedFabric, "[h2, s]}", "[h2, s], addresses: [10.0.2.1, 10.0.2.254]}", 1)
	w.redrawTo(must(topology.Read(strings.NewReader(text), "fabric.yaml")))
	w.run(time.Minute)
	if e, _ := w.core.Group(g); e.State != Refusing || !errors.Is(e.Refusal, ErrAddress) || w.fault != nil {
		t.Errorf("it is %v: %v; %v", e.State, e.Refusal, w.fault)
	}
}
