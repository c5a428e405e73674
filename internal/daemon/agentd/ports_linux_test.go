package agentd_test

import (
	"math"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/linkaudit"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// found is a configuration whose ports are the interfaces that a pattern names.
func (l *live) found() agentd.Config {
	c := l.config()
	c.Target.Ports, c.Target.Routes = nil, nil
	c.Ports, c.Interfaces = []portmap.Spec{{Interface: "port*"}}, nic.System()
	return c
}

// assigned is what a manager's map would have of the switch.
func (l *live) assigned() portmap.Assignment {
	a := portmap.Assignment{Addresses: map[uint16]netip.Addr{}}
	for _, cable := range l.links {
		number := uint16(cable.n)
		a.Addresses[number] = cable.port()
		a.Routes = append(a.Routes, portmap.Route{Prefix: netip.PrefixFrom(cable.host(), 32), Port: number, Next: cable.host()})
	}
	return a
}

// give gives the agent routes.
func (l *live) give(c *rpc.AgentClient, a portmap.Assignment) {
	l.Helper()
	if err := c.SetRoutes(testContext(l.T), a); err != nil {
		l.Fatal(err)
	}
}

// installed installs an epoch, of the number or above, as soon as the next hops have
// been found.
func (l *live) installed(c *rpc.AgentClient, incarnation uint64, epoch uint32) (switchreduce.Config, uint16) {
	l.Helper()
	for {
		config, port, err := l.try(c, incarnation, epoch)
		if err == nil {
			return config, port
		}
		if !strings.Contains(err.Error(), "no route to") {
			l.Fatal(err)
		}
		epoch += 2
	}
}

// counted returns the interfaces that counters are reported of.
func (l *live) counted(c *rpc.AgentClient) []nic.Interface {
	l.Helper()
	counted, err := c.Counters(testContext(l.T))
	if err != nil || counted.Interfaces == nil || len(counted.Interfaces.List) != len(l.links) {
		l.Fatalf("%+v, %v", counted.Interfaces, err)
	}
	return counted.Interfaces.List
}

// plug sets the far end of a link up or down.
func (l *live) plug(number int, up bool) {
	l.Helper()
	s := l.spaces[number-1]
	s.do(func() error {
		link, err := s.net.LinkByName("eth0")
		if err != nil {
			return err
		}
		if !up {
			return s.net.LinkSetDown(link)
		}
		if err := s.net.LinkSetUp(link); err != nil {
			return err
		}
		return s.net.NeighSet(l.links[number-1].neighbour(link.Attrs().Index)) // the kernel forgot it
	})
}

// packetSocket returns a packet socket of an interface, for frames of one type.
func packetSocket(name string, etherType uint16) (int, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	bigEndian := etherType<<8 | etherType>>8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(bigEndian))
	if err != nil {
		return 0, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: bigEndian, Ifindex: i.Index})
}

// TestLivePorts has a bmv2 of which the agent's file has nothing but a pattern of
// interfaces: numbers and MACs are theirs, addresses and routes come by SetRoutes, next
// hops by ARP. It sees a link go down and come up.
func TestLivePorts(t *testing.T) {
	if !inside(t) {
		return
	}
	l := newLive(t)
	_, c := start(t, l.found())
	events, _ := watch(t, c)
	for e := range events { // nobody has said an address yet
		if e.State != nil && strings.Contains(e.State.Unusable, pipeline.ErrNoPorts.Error()) {
			break
		}
	}
	l.give(c, l.assigned())
	incarnation := usable(t, events)
	epoch, port := l.installed(c, incarnation, 2)
	l.allreduce(&epoch, port, 0, reduce.Int32, []uint32{1, 2}, 3)
	state, err := c.State(testContext(t))
	if err != nil || !state.TakesRoutes || state.Interfaces == nil || len(state.Interfaces.List) != 2 {
		t.Fatalf("%+v, %v", state, err)
	}
	for n, i := range state.Interfaces.List {
		if cable := l.links[n]; i.Name != cable.name() || !i.Up || !i.Has(cable.port()) {
			t.Errorf("interface %+v, want %s with %v", i, cable.name(), cable.port())
		}
	}
	before := l.counted(c)
	l.allreduce(&epoch, port, 1, reduce.Int32, []uint32{1, 2}, 3)
	after := l.counted(c)
	for n := range after {
		if d := after[n].Traffic.BytesIn - before[n].Traffic.BytesIn; d < p4.Chunk {
			t.Errorf("%s has counted %d bytes of a chunk of %d", after[n].Name, d, p4.Chunk)
		}
	}
	for _, up := range []bool{false, true} {
		l.plug(2, up)
		for e := range events {
			if x := e.Interfaces; x != nil && len(x.List) == 2 && x.List[0].Up && x.List[1].Up == up {
				break
			}
		}
	}
	l.allreduce(&epoch, port, 2, reduce.Int32, []uint32{1, 2}, 3) // the cable is back, and the epoch was there all the time
}

// TestLiveSetDown sets an interface of bmv2's down, which then hears nothing at any port:
// the agent says why, and reports every port down, until that interface is up again.
func TestLiveSetDown(t *testing.T) {
	if !inside(t) {
		return
	}
	l := newLive(t)
	_, c := start(t, l.found())
	events, _ := watch(t, c)
	l.give(c, l.assigned())
	incarnation := usable(t, events)
	l.set(l.links[1].name(), false)
	for reason, down := "", false; reason == "" || !down; {
		e, ok := <-events
		if !ok {
			t.Fatal("the watch has ended")
		}
		if e.State != nil {
			reason = e.State.Unusable
		}
		if x := e.Interfaces; x != nil {
			down = len(x.List) == 2 && !x.List[0].Up && !x.List[1].Up
		}
		if reason != "" && !strings.HasSuffix(reason, pipeline.ErrSetDown.Error()+": "+l.links[1].name()) {
			t.Fatal(reason)
		}
	}
	l.set(l.links[1].name(), true)
	for usable, up := false, false; !usable || !up; {
		e, ok := <-events
		if !ok {
			t.Fatal("the watch has ended")
		}
		if e.State != nil {
			usable = e.State.Unusable == ""
		}
		if x := e.Interfaces; x != nil {
			up = len(x.List) == 2 && x.List[0].Up && x.List[1].Up
		}
	}
	l.give(c, l.assigned())
	epoch, port := l.installed(c, incarnation, 2)
	l.allreduce(&epoch, port, 0, reduce.Int32, []uint32{1, 2}, 3)
}

// TestLiveRoutesChange: routes that no epoch uses come and go beside it, a neighbour
// that moves is followed, and an epoch without a way to a neighbour ends alone.
func TestLiveRoutesChange(t *testing.T) {
	if !inside(t) {
		return
	}
	l := newLive(t)
	_, c := start(t, l.found())
	events, _ := watch(t, c)
	l.give(c, l.assigned())
	incarnation := usable(t, events)
	epoch, port := l.installed(c, incarnation, 2)
	more := l.assigned()
	more.Routes = append(more.Routes, portmap.Route{Prefix: netip.MustParsePrefix("10.9.0.0/16"), Port: 2, Next: l.links[1].host()})
	for chunk, a := range []portmap.Assignment{more, l.assigned(), more} {
		l.give(c, a)
		l.allreduce(&epoch, port, uint32(chunk), reduce.Int32, []uint32{1, 2}, 3)
	}
	less := l.assigned()
	less.Routes = less.Routes[:1]
	l.give(c, less)
	ended(t, events, 7)
	l.give(c, l.assigned())
	epoch, port = l.installed(c, incarnation, 4)
	l.allreduce(&epoch, port, 0, reduce.Int32, []uint32{1, 2}, 3)
}

// TestLiveLLDP: an LLDP frame at a port of bmv2 is seen by a packet socket on the
// interface, and leaves by no other port.
func TestLiveLLDP(t *testing.T) {
	l := newLive(t)
	_, c := start(t, l.config())
	events, _ := watch(t, c)
	incarnation := usable(t, events)
	const lldp = 0x88cc
	frame := append([]byte{1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 1, 1, lldp >> 8, lldp & 0xff}, make([]byte, 46)...)
	ports := [2]int{}
	for n := range ports {
		l.sw.do(func() (err error) { ports[n], err = packetSocket(l.links[n].name(), lldp); return err })
		t.Cleanup(func() { _ = unix.Close(ports[n]) })
	}
	far := 0
	l.spaces[1].do(func() (err error) { far, err = packetSocket("eth0", lldp); return err })
	t.Cleanup(func() { _ = unix.Close(far) })
	l.spaces[0].do(func() error {
		near, err := packetSocket("eth0", lldp)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(near) }()
		return unix.Send(near, frame, 0)
	})
	got := make([]byte, 100)
	if n, _, err := unix.Recvfrom(ports[0], got, 0); err != nil || string(got[:n]) != string(frame) {
		t.Fatalf("the switch's socket got %x, %v", got[:n], err)
	}
	epoch, port := l.install(c, incarnation, 2)
	l.allreduce(&epoch, port, 0, reduce.Int32, []uint32{1, 2}, 3) // passes bmv2 after the frame
	if n, _, err := unix.Recvfrom(far, got, unix.MSG_DONTWAIT); err == nil {
		t.Errorf("the frame was forwarded: %x", got[:n])
	}
}

// TestLiveTraffic: what the target has exchanged with its neighbours is what they
// have sent and got, to the byte.
func TestLiveTraffic(t *testing.T) {
	l := newLive(t)
	_, c := start(t, l.config())
	events, _ := watch(t, c)
	epoch, port := l.install(c, usable(t, events), 2)
	before, err := c.Counters(testContext(t)) // from now on
	if err != nil {
		t.Fatal(err)
	}
	const chunks = 10
	for chunk := range uint32(chunks) {
		l.allreduce(&epoch, port, chunk, reduce.Int32, []uint32{chunk, 1}, chunk+1)
		l.allreduce(&epoch, port, chunks+chunk, reduce.Float32, []uint32{math.Float32bits(1), math.Float32bits(2)}, math.Float32bits(3))
	}
	after, err := c.Counters(testContext(t))
	if err != nil || len(before.Epochs) != 1 || len(after.Epochs) != 1 {
		t.Fatalf("%+v, %+v, %v", before.Epochs, after.Epochs, err)
	}
	for child, x := range after.Epochs[0].Children {
		const least = 2 * chunks * (wire.HeaderSize + p4.Chunk) // repairs are more
		probes := uint64(wire.HeaderSize) * (x.PacketsIn + x.PacketsOut)
		if x.PacketsIn < 2*chunks || x.PacketsOut < 2*chunks || x.BytesIn < least || x.BytesOut < least ||
			x.PacketsIn == 2*chunks && x.BytesIn != least || x.PacketsOut == 2*chunks && x.BytesOut != least {
			t.Errorf("child %d: %+v, want at least %d packets and %d bytes each way, and %d of repairs", child, x, 2*chunks, least, probes)
		}
	}
}

// TestLiveAudit: what a bmv2 and its interfaces report passes the link audit, and fails
// it if another interface, which carries nothing, were at the link.
func TestLiveAudit(t *testing.T) {
	if !inside(t) {
		return
	}
	l := newLive(t)
	_, c := start(t, l.found())
	events, _ := watch(t, c)
	l.give(c, l.assigned())
	epoch, port := l.installed(c, usable(t, events), 2)
	var right, wrong linkaudit.Auditor
	audit := func() (found, missed []linkaudit.Mismatch) {
		counted, err := c.Counters(testContext(t))
		if err != nil || len(counted.Epochs) != 1 || counted.Interfaces == nil || len(counted.Interfaces.List) != 2 {
			t.Fatalf("%+v, %v", counted, err)
		}
		var ports, idle []linkaudit.Port
		var flows []linkaudit.Flow
		for n, x := range counted.Epochs[0].Children {
			i := counted.Interfaces.List[n]
			link := topology.Port(n + 1)
			ports = append(ports, linkaudit.Port{Port: link, Interface: i.Name, Count: linkaudit.Count{In: i.Traffic.BytesIn, Out: i.Traffic.BytesOut}})
			idle = append(idle, linkaudit.Port{Port: link, Interface: "idle"})
			flows = append(flows, linkaudit.Flow{
				Group: 7, Epoch: 2, Port: link, Count: linkaudit.Count{In: x.BytesIn, Out: x.BytesOut},
				Window: uint64(epoch.Window) * (p4.Chunk + wire.HeaderSize),
			})
		}
		return right.Take(ports, flows), wrong.Take(idle, flows)
	}
	audit()
	for chunk := range 6 * epoch.Window {
		l.allreduce(&epoch, port, chunk, reduce.Int32, []uint32{chunk, 1}, chunk+1)
	}
	found, missed := audit()
	if len(found) != 0 || len(missed) != 4 {
		t.Errorf("found %+v, and at idle interfaces %+v, want both directions of both links", found, missed)
	}
}
