package lldp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// TestTwoMachines: two machines on a cable know each other, and the delay of the cable, until
// one ends.
func TestTwoMachines(t *testing.T) {
	a, b := newMachine(), newMachine()
	plug(end{a, 1}, &end{b, 2})
	a.nic.Set([]nic.Interface{card(1, "a1", true)}, nil)
	b.nic.Set([]nic.Interface{card(2, "b2", true)}, nil)
	a.start(t, a.config("a"))
	b.start(t, b.config("b"))
	a.await(t, "a hears b, and measures", func(all map[string]Port) bool { return hears(all, "a1", "b") && all["a1"].Latency > 0 })
	b.await(t, "b hears a", func(all map[string]Port) bool { return hears(all, "b2", "a") })
	n := b.Ports()["b2"].Neighbors[0]
	want := a.cfg.announcement(card(1, "a1", true))
	want.TTL = 2
	if !n.Equal(&want) || n.Loop || n.MAC != [6]byte{2, 5: 1} {
		t.Errorf("b heard %+v, want %+v", n, want)
	}
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.1")}; !slices.Equal(n.Management, want) || n.Chassis.String() != "02:00:00:00:00:01" {
		t.Errorf("b can reach a at %v, want %v; its chassis is %v", n.Management, want, n.Chassis)
	}
	counters, err := b.Counters(t.Context())
	if c := counters["b2"]; err != nil || c.Announced == 0 || c.Heard == 0 || c.Malformed+c.TLVs+c.Looped != 0 {
		t.Errorf("%+v, %v", counters, err)
	}
	a.Close()
	b.await(t, "a has shut down", func(all map[string]Port) bool { return len(all["b2"].Neighbors) == 0 && all["b2"].Latency == 0 })
	if len(a.Ports()) != 0 {
		t.Errorf("it has ended, and has the ports %v", a.Ports())
	}
	if _, err := a.Counters(t.Context()); err == nil {
		t.Error("it has ended, and counts")
	}
}

// TestInterfacesComeAndGo: ports follow the interfaces: one that is new, has another name,
// is down, is excluded, is none for LLDP, or is gone.
func TestInterfacesComeAndGo(t *testing.T) {
	a, b := newMachine(), newMachine()
	plug(end{a, 1}, &end{b, 2})
	b.nic.Set([]nic.Interface{card(2, "b2", true), card(3, "b3", true)}, nil)
	b.start(t, b.config("b"))
	vlan, tunnel := card(5, "a1.7", true), card(6, "tun0", true)
	vlan.Kind, tunnel.Ethernet = "vlan", false
	c := a.config("a")
	c.Exclude = []string{"mgmt*"}
	c.Number = func(i nic.Interface) uint32 { return uint32(i.Index) + 100 }
	a.nic.Set([]nic.Interface{card(4, "mgmt0", true), vlan, tunnel}, nil)
	a.start(t, c)
	a.nic.Set([]nic.Interface{card(1, "a1", true), card(4, "mgmt0", true), vlan, tunnel}, nil)
	b.await(t, "a1 has come", func(all map[string]Port) bool { return hears(all, "b2", "a") })
	a.await(t, "a1 hears b", func(all map[string]Port) bool { return len(all) == 1 && hears(all, "a1", "b") })
	if n := b.Ports()["b2"].Neighbors[0]; n.Tributary.PortNumber != 101 {
		t.Errorf("%+v, want port number 101", n)
	}

	// A port with another name shuts down as what it was.
	renamed := card(1, "uplink", true)
	renamed.Alias = "to b"
	a.nic.Set([]nic.Interface{renamed}, nil)
	b.await(t, "a1 is uplink", func(all map[string]Port) bool {
		return hears(all, "b2", "a") && all["b2"].Neighbors[0].Port.Value == "uplink" && all["b2"].Neighbors[0].PortDescription == "to b"
	})
	a.nic.Set([]nic.Interface{card(1, "uplink", false)}, nil)
	a.await(t, "uplink is down", func(all map[string]Port) bool { return len(all) == 1 && len(all["uplink"].Neighbors) == 0 })
	a.nic.Set([]nic.Interface{card(1, "uplink", true)}, nil)
	a.await(t, "uplink is up", func(all map[string]Port) bool { return hears(all, "uplink", "b") })

	// The cable goes to another port.
	plug(end{b, 2}, nil)
	plug(end{a, 1}, &end{b, 3})
	b.await(t, "it is plugged elsewhere", func(all map[string]Port) bool { return hears(all, "b3", "a") && len(all["b2"].Neighbors) == 0 })

	a.nic.Set(nil, nil)
	a.await(t, "the interface is gone", func(all map[string]Port) bool { return len(all) == 0 })
	b.await(t, "a has shut down", func(all map[string]Port) bool { return len(all["b3"].Neighbors) == 0 })
}

// TestLoop: a cable between two ports of one machine is reported as such at both ends.
func TestLoop(t *testing.T) {
	a := newMachine()
	plug(end{a, 1}, &end{a, 2})
	a.nic.Set([]nic.Interface{card(1, "a1", true), card(2, "a2", true)}, nil)
	a.start(t, a.config("a"))
	a.await(t, "both hear each other", func(all map[string]Port) bool {
		return hears(all, "a1", "a") && hears(all, "a2", "a") && all["a1"].Neighbors[0].Loop && all["a2"].Neighbors[0].Loop &&
			all["a1"].Neighbors[0].Port.Value == "a2"
	})
}

// TestOneOfAMachine: a process sends nothing while another one does, and begins when that
// ends.
func TestOneOfAMachine(t *testing.T) {
	a, b := newMachine(), newMachine()
	plug(end{a, 1}, &end{b, 2})
	a.nic.Set([]nic.Interface{card(1, "a1", true)}, nil)
	b.nic.Set([]nic.Interface{card(2, "b2", true)}, nil)
	b.start(t, b.config("b"))
	a.others = make(chan struct{})
	a.start(t, a.config("a"))
	<-a.waits
	if len(a.Ports()) != 0 {
		t.Errorf("it waits, and has the ports %v", a.Ports())
	}
	close(a.others)
	b.await(t, "a has begun", func(all map[string]Port) bool { return hears(all, "b2", "a") })

	c := newMachine()
	c.others = make(chan struct{})
	c.start(t, c.config("c"))
	<-c.waits
	c.Close() // although it still waits
}

// TestNotPermitted: the error says what to grant.
func TestNotPermitted(t *testing.T) {
	m := newMachine()
	m.denied = ErrPermission
	if _, err := start(m.config("a"), m); !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_RAW") {
		t.Errorf("%v", err)
	}
	m.nic.Set(nil, nic.ErrUnsupported)
	if _, err := start(m.config("a"), m); !errors.Is(err, nic.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// TestConfig: what will not do is named.
func TestConfig(t *testing.T) {
	long := strings.Repeat("x", 256)
	for says, spoil := range map[string]func(c *Config){
		`"[" is no pattern`:   func(c *Config) { c.Exclude = []string{"["} },
		`"" is no pattern`:    func(c *Config) { c.Include = []string{""} },
		`"b c" may not have`:  func(c *Config) { c.Own.Tributary.Name = "b c" },
		"no name":             func(c *Config) { c.Own.Tributary.Name = "" },
		"system name has 256": func(c *Config) { c.Own.SystemName = long },
		"interval 2h":         func(c *Config) { c.Interval = 2 * time.Hour },
		"10 management":       func(c *Config) { c.Own.Management = make([]netip.Addr, 10) },
	} {
		m := newMachine()
		c := m.config("a")
		spoil(&c)
		if _, err := start(c, m); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want that it says %q", err, says)
		}
	}
}

// TestNoInterface: that no interface takes part is logged once, until one comes and goes.
func TestNoInterface(t *testing.T) {
	m, lines := newMachine(), make(chan string, 9)
	c := m.config("a")
	c.Include, c.Log = []string{"nosuch*"}, slog.New(slog.NewTextHandler(lineWriter(lines), nil))
	m.nic.Set([]nic.Interface{card(1, "a1", true)}, nil)
	m.start(t, c)
	waits := func() {
		t.Helper()
		for line := range lines {
			if strings.Contains(line, "no interface takes part in LLDP; waiting for one") && strings.Contains(line, "nosuch*") {
				return
			}
		}
	}
	waits()
	m.nic.Set([]nic.Interface{card(1, "nosuch1", true)}, nil)
	m.await(t, "one has come", func(all map[string]Port) bool { return len(all) == 1 })
	m.nic.Set(nil, nil)
	waits()
}

type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// TestTakes: which interfaces take part.
func TestTakes(t *testing.T) {
	bridge := card(1, "br0", true)
	bridge.Kind = "bridge"
	for _, c := range []struct {
		i                nic.Interface
		include, exclude []string
		want             bool
	}{
		{card(1, "eth0", true), nil, nil, true},
		{bridge, nil, nil, false},
		{bridge, []string{"br*"}, nil, true},
		{card(1, "eth0", true), []string{"br*"}, nil, false},
		{card(1, "eth0", true), nil, []string{"br*", "eth0"}, false},
		{card(1, "eth0", true), []string{"eth*"}, []string{"eth0"}, false},
		{nic.Interface{Name: "ib0", Ethernet: false}, []string{"*"}, nil, false},
	} {
		if got := (&Config{Include: c.include, Exclude: c.exclude}).takes(&c.i); got != c.want {
			t.Errorf("%s, with %v without %v: %v", c.i.Name, c.include, c.exclude, got)
		}
	}
	if id := chassis([]nic.Interface{bridge}, "a"); id != (lldpdu.ChassisID{Subtype: lldpdu.ChassisLocal, Value: "a"}) {
		t.Errorf("without a cable the chassis is %v", id)
	}
}

// TestCloseWaits: nothing of a service runs after Close, whenever that comes.
func TestCloseWaits(t *testing.T) {
	for range 20 {
		m := newMachine()
		m.nic.Set([]nic.Interface{card(1, "a1", true)}, nil)
		m.start(t, m.config("a"))
		m.Close()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Counters(ended); err == nil {
			t.Error("it counts after its end")
		}
	}
}

// late are interfaces of which changes are not reported after the first time.
type late struct{ nic.Fake }

func (l *late) Watch(ctx context.Context, changed func()) error {
	changed()
	<-ctx.Done()
	return ctx.Err()
}

// failing are interfaces that cannot be read the second time.
type failing struct {
	late
	reads atomic.Int32
}

func (f *failing) Read() ([]nic.Interface, error) {
	if f.reads.Add(1) == 2 {
		return nil, errors.New("the kernel is busy")
	}
	return f.late.Read()
}

// TestInterfacesThatCannotBeRead are read again, without a change.
func TestInterfacesThatCannotBeRead(t *testing.T) {
	a := newMachine()
	var interfaces failing
	interfaces.Set([]nic.Interface{card(1, "a1", true)}, nil)
	c := a.config("a")
	c.Interfaces = &interfaces
	a.start(t, c)
	a.await(t, "a has the port", func(all map[string]Port) bool { return len(all) == 1 })
	if n := interfaces.reads.Load(); n != 3 {
		t.Errorf("%d readings", n)
	}
}

// TestHeardBeforeItIsUp: a frame shows that a port is up before the system reports that, and
// is not lost.
func TestHeardBeforeItIsUp(t *testing.T) {
	a, b := newMachine(), newMachine()
	var interfaces late
	interfaces.Set([]nic.Interface{card(1, "a1", false)}, nil)
	c := a.config("a")
	c.Interfaces = &interfaces
	a.start(t, c)
	a.await(t, "a has the port", func(all map[string]Port) bool { return len(all) == 1 })
	interfaces.Set([]nic.Interface{card(1, "a1", true)}, nil)
	plug(end{a, 1}, &end{b, 2})
	b.nic.Set([]nic.Interface{card(2, "b2", true)}, nil)
	b.start(t, b.config("b"))
	a.await(t, "a hears b", func(all map[string]Port) bool { return hears(all, "a1", "b") })
	b.await(t, "b hears a", func(all map[string]Port) bool { return hears(all, "b2", "a") })
}

// flooded is a socket at which frames come without end.
type flooded struct{ *fakeConn }

func (c flooded) read(b []byte) (arrival, error) {
	select {
	case <-c.closed:
		return arrival{}, net.ErrClosed
	default:
		return arrival{size: copy(b, make([]byte, leastFrame))}, nil
	}
}

// floodedMachine has such sockets at its ports.
type floodedMachine struct{ *machine }

func (m floodedMachine) port(index int) (conn, error) {
	c, err := m.machine.port(index)
	if err != nil {
		return nil, err
	}
	return flooded{c.(*fakeConn)}, nil
}

// TestCloseUnderFlood: a service ends while frames come at ports that are not up, and at
// others.
func TestCloseUnderFlood(t *testing.T) {
	for i := range 100 {
		m := newMachine()
		m.nic.Set([]nic.Interface{card(1, "a1", false), card(2, "a2", true)}, nil)
		s, err := start(m.config("a"), floodedMachine{m})
		if err != nil {
			t.Fatal(err)
		}
		m.Service = s
		m.await(t, "it has its ports", func(all map[string]Port) bool { return len(all) == 2 })
		if i%2 == 0 {
			s.Close()
		} else {
			s.Kill()
		}
	}
}
