package lldp

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// patience bounds what a test waits for.
const patience = 60 * time.Second

// machine is one whose sockets and interfaces are those of a test.
type machine struct {
	*Service
	nic     nic.Fake
	changed chan struct{}

	mu     sync.Mutex
	ports  map[int]*fakeConn
	denied error         // of opening sockets
	others chan struct{} // closed when no other process has the claim; nil: none has it
	waits  chan struct{} // closed when it is waited for
}

// fakeConn is a socket. What is written to it arrives at the other end of the cable.
type fakeConn struct {
	of     *machine
	index  int
	frames chan []byte
	closed chan struct{}
	once   sync.Once
}

func newConn(m *machine, index int) *fakeConn {
	return &fakeConn{of: m, index: index, frames: make(chan []byte, 100), closed: make(chan struct{})}
}

func (c *fakeConn) read(b []byte) (arrival, error) {
	select {
	case f := <-c.frames:
		return arrival{size: copy(b, f)}, nil
	case <-c.closed:
		return arrival{}, net.ErrClosed
	}
}

// cables are those between machines.
type cables struct {
	mu   sync.Mutex
	ends map[end]end
}

type end struct {
	of    *machine
	index int
}

var plugged = cables{ends: map[end]end{}}

// plug connects two ports, or takes the cable of one away.
func plug(a end, b *end) {
	plugged.mu.Lock()
	defer plugged.mu.Unlock()
	if other, ok := plugged.ends[a]; ok {
		delete(plugged.ends, other)
	}
	delete(plugged.ends, a)
	if b != nil {
		plugged.ends[a], plugged.ends[*b] = *b, a
	}
}

func (c *fakeConn) write(frame []byte) error {
	plugged.mu.Lock()
	to, ok := plugged.ends[end{c.of, c.index}]
	plugged.mu.Unlock()
	if !ok {
		return net.ErrClosed
	}
	to.of.mu.Lock()
	defer to.of.mu.Unlock()
	at := to.of.ports[to.index]
	if at == nil {
		return nil
	}
	select {
	case at.frames <- slices.Clone(frame):
	default: // a socket's buffer is full
	}
	return nil
}

func (c *fakeConn) close() { c.once.Do(func() { close(c.closed) }) }

func (m *machine) port(index int) (conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.denied != nil {
		return nil, m.denied
	}
	m.ports[index] = newConn(m, index)
	return m.ports[index], nil
}

func (m *machine) permitted() error { return m.denied }

func (m *machine) claim(ctx context.Context, waiting func(int)) (func(), error) {
	if m.others != nil {
		waiting(1)
		close(m.waits)
		select {
		case <-m.others:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {}, nil
}

// newMachine returns a machine that is not started.
func newMachine() *machine {
	return &machine{ports: map[int]*fakeConn{}, changed: make(chan struct{}, 1), waits: make(chan struct{})}
}

// config is that of a switch.
func (m *machine) config(name string) Config {
	return Config{
		Interfaces: &m.nic, Interval: 50 * time.Millisecond,
		Own: lldpdu.Announcement{Tributary: lldpdu.Tributary{Role: lldpdu.Switch, Name: name, AgentPort: 7410}},
		Changed: func() {
			select {
			case m.changed <- struct{}{}:
			default: // it is looked at soon
			}
		},
	}
}

func (m *machine) start(t *testing.T, c Config) {
	t.Helper()
	s, err := start(c, m)
	if err != nil {
		t.Fatal(err)
	}
	m.Service = s
	t.Cleanup(s.Close)
}

// await waits until the ports are as is.
func (m *machine) await(t *testing.T, what string, is func(map[string]Port) bool) {
	t.Helper()
	give := time.NewTimer(patience)
	defer give.Stop()
	for !is(m.Ports()) {
		select {
		case <-m.changed:
		case <-give.C:
			t.Fatalf("%s: the ports are %+v", what, m.Ports())
		}
	}
}

// card returns an interface.
func card(index int, name string, up bool) nic.Interface {
	return nic.Interface{
		Name: name, Index: index, Up: up, Enabled: true, Ethernet: true, Kind: "veth", MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(index)},
		Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(index)}), netip.MustParseAddr("fe80::1")},
	}
}

// hears reports whether a port has one neighbour, of this name.
func hears(all map[string]Port, port, name string) bool {
	n := all[port].Neighbors
	return len(n) == 1 && n[0].SystemName == name
}
