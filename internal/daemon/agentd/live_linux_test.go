package agentd_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/p4"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// space is a network namespace, and a thread in it. It ends with the thread.
type space struct {
	t    *testing.T
	work chan func()
	at   netns.NsHandle
	net  *netlink.Handle
}

func newSpace(t *testing.T) *space {
	t.Helper()
	return spaceOf(t, netns.New)
}

// spaceOf returns a thread in the namespace that enter makes, or is in.
func spaceOf(t *testing.T, enter func() (netns.NsHandle, error)) *space {
	t.Helper()
	s := &space{t: t, work: make(chan func())}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for f := range s.work {
			f()
		}
	}()
	t.Cleanup(func() { close(s.work); <-done })
	s.do(func() (err error) {
		if s.at, err = enter(); err != nil {
			return err
		}
		t.Cleanup(func() { _ = s.at.Close() })
		s.net, err = netlink.NewHandle()
		return err
	})
	t.Cleanup(s.net.Close)
	return s
}

// do runs f on the thread.
func (s *space) do(f func() error) {
	s.t.Helper()
	var err error
	ran := make(chan struct{})
	s.work <- func() { defer close(ran); err = f() }
	<-ran
	if err != nil {
		s.t.Fatal(err)
	}
}

// link is a host's link to port n of the switch: 10.0.n.1 at the host, 10.0.n.0
// at the switch.
type link struct{ n byte }

func (l link) name() string              { return fmt.Sprintf("port%d", l.n) }
func (l link) host() netip.Addr          { return netip.AddrFrom4([4]byte{10, 0, l.n, 1}) }
func (l link) port() netip.Addr          { return netip.AddrFrom4([4]byte{10, 0, l.n, 0}) }
func (l link) mac(side byte) p4.MAC      { return p4.MAC{2, 0, 0, 0, l.n, side} }
func hardware(m p4.MAC) net.HardwareAddr { return m[:] }

// connect makes the link. Hosts know the hardware address of the switch: a
// target answers no ARP.
func (l link) connect(t *testing.T, sw, host *space) {
	t.Helper()
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: l.name(), HardwareAddr: hardware(l.mac(0))}, PeerName: "eth0", PeerHardwareAddr: hardware(l.mac(1))}
	sw.do(func() error {
		if err := sw.net.LinkAdd(pair); err != nil {
			return err
		}
		peer, err := sw.net.LinkByName("eth0")
		if err != nil {
			return err
		}
		return errors.Join(sw.net.LinkSetNsFd(peer, int(host.at)), sw.net.LinkSetUp(pair))
	})
	host.do(func() error {
		own, err := host.net.LinkByName("eth0")
		if err != nil {
			return err
		}
		address := &netlink.Addr{IPNet: &net.IPNet{IP: l.host().AsSlice(), Mask: net.CIDRMask(31, 32)}}
		if err := errors.Join(host.net.AddrAdd(own, address), host.net.LinkSetUp(own)); err != nil {
			return err
		}
		return errors.Join(host.net.NeighSet(l.neighbour(own.Attrs().Index)), checksums("eth0"))
	})
}

// neighbour is the switch, as a host knows it at its interface.
func (l link) neighbour(index int) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: index, State: netlink.NUD_PERMANENT, IP: l.port().AsSlice(), HardwareAddr: hardware(l.mac(0))}
}

// checksums makes the kernel write checksums into what it sends by a device,
// which leaves that to hardware that a veth does not have.
func checksums(device string) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	off := struct{ command, value uint32 }{command: unix.ETHTOOL_STXCSUM}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&off)}
	copy(request.name[:], device)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); e != 0 {
		return fmt.Errorf("checksums of %s: %w", device, e)
	}
	return nil
}

// inNamespace is set where the switch's namespace is that of the process.
const inNamespace = "TRIBUTARY_AGENTD_NAMESPACE"

// inside runs a test again, in a process whose namespace is the switch's, so that the
// agent is in it, too. It returns false; there, it returns true.
func inside(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	if _, lack := p4rttest.BMv2(); lack != "" {
		t.Skip(lack)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("in a namespace: %v\n%s", err, output)
	}
	return false
}

// live is a bmv2 with two hosts.
type live struct {
	*testing.T
	path, dir string
	sw        *space
	links     []link
	hosts     []host
	spaces    []*space // of the hosts
	process   *exec.Cmd
	lost      map[packet]bool // that were lost once; nil: none is
}

// packet is one between a host and the switch.
type packet struct {
	rank, chunk int
	kind        wire.Type
}

// loses reports whether a packet is lost: the first of each kind is.
func (l *live) loses(rank int, h *wire.Header) bool {
	p := packet{rank, int(h.Chunk), h.Type}
	if l.lost == nil || l.lost[p] {
		return false
	}
	l.lost[p] = true
	return true
}

func newLive(t *testing.T) *live {
	t.Helper()
	path, lack := p4rttest.BMv2()
	if lack != "" {
		t.Skip(lack)
	}
	dir, err := os.MkdirTemp("", "agentd") // short: a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &live{T: t, path: path, dir: dir, links: []link{{1}, {2}}}
	if os.Getenv(inNamespace) != "" {
		l.sw = spaceOf(t, netns.Get)
		l.set("lo", true)
	} else {
		l.sw = newSpace(t)
	}
	l.loop()
	for _, cable := range l.links {
		s := newSpace(t)
		cable.connect(t, l.sw, s)
		l.spaces = append(l.spaces, s)
		s.do(func() error {
			conn, err := transport.ListenUDP(netip.AddrPortFrom(cable.host(), 0), transport.Config{})
			if err == nil {
				t.Cleanup(func() { _ = conn.Close() })
				l.hosts = append(l.hosts, host{t, conn})
			}
			return err
		})
	}
	l.start()
	t.Cleanup(l.kill)
	return l
}

// loop connects the two ports at which a packet that is to grow goes round, by a
// bridge: of a bmv2 whose own interface is set down, libpcap waits for that one alone.
func (l *live) loop() {
	l.Helper()
	l.sw.do(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "loop"}}
		if err := l.sw.net.LinkAdd(bridge); err != nil {
			return err
		}
		errs := []error{l.sw.net.LinkSetUp(bridge)}
		for _, name := range []string{"loop-out", "loop-in"} {
			pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-far"}
			if err := l.sw.net.LinkAdd(pair); err != nil {
				return err
			}
			far, err := l.sw.net.LinkByName(pair.PeerName)
			if err != nil {
				return err
			}
			errs = append(errs, l.sw.net.LinkSetMaster(far, bridge), l.sw.net.LinkSetUp(pair), l.sw.net.LinkSetUp(far))
		}
		return errors.Join(errs...)
	})
}

// set sets an interface of the switch up or down.
func (l *live) set(name string, up bool) {
	l.Helper()
	l.sw.do(func() error {
		link, err := l.sw.net.LinkByName(name)
		if err != nil {
			return err
		}
		if up {
			return l.sw.net.LinkSetUp(link)
		}
		return l.sw.net.LinkSetDown(link)
	})
}

func (l *live) address() string { return "unix:" + filepath.Join(l.dir, "s") }

func (l *live) start() {
	l.Helper()
	options := []string{"--no-p4", "--device-id", "3", "-i", "1@port1", "-i", "2@port2",
		"-i", fmt.Sprintf("%d@loop-out", p4.LoopOutPort), "-i", fmt.Sprintf("%d@loop-in", p4.LoopInPort)}
	apart, err := p4rttest.Apart(l.path, l.dir)
	if err != nil {
		l.Fatal(err)
	}
	options = append(options, apart...)
	cmd := exec.Command(l.path, append(options, "--", "--grpc-server-addr", l.address(), "--cpu-port", fmt.Sprint(p4.CPUPort))...)
	cmd.Dir = l.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = output, output
	l.sw.do(cmd.Start)
	l.process = cmd
	l.Cleanup(func() {
		if l.Failed() {
			l.Logf("bmv2 printed:\n%s", output)
		}
	})
}

// kill ends bmv2 and waits for its end.
func (l *live) kill() {
	if l.process != nil {
		_ = l.process.Process.Kill()
		_ = l.process.Wait()
		l.process = nil
	}
}

func (l *live) config() agentd.Config {
	c := config()
	c.Capability, c.Data, c.AllowPlaintext = pipeline.Limits(), netip.Addr{}, true
	c.Target = &pipeline.Target{Address: l.address(), Device: 3}
	for _, cable := range l.links {
		number := uint16(cable.n)
		c.Target.Ports = append(c.Target.Ports, p4.Port{Number: number, Addr: cable.port(), MAC: cable.mac(0)})
		c.Target.Routes = append(c.Target.Routes, p4.Route{Prefix: netip.PrefixFrom(cable.host(), 32), Port: number, MAC: cable.mac(1)})
	}
	return c
}

// install puts an epoch into use and returns its configuration, and the port of
// the tree.
func (l *live) install(c *rpc.AgentClient, incarnation uint64, epoch uint32) (switchreduce.Config, uint16) {
	l.Helper()
	config, port, err := l.try(c, incarnation, epoch)
	if err != nil {
		l.Fatal(err)
	}
	return config, port
}

// try is install where it may be refused.
func (l *live) try(c *rpc.AgentClient, incarnation uint64, epoch uint32) (switchreduce.Config, uint16, error) {
	l.Helper()
	config := switchreduce.Config{Group: 7, Epoch: epoch, Window: 8, ChunkBytes: p4.Chunk, Probes: 4}
	for rank, h := range l.hosts {
		config.Children = append(config.Children, switchreduce.Child{Addr: h.conn.LocalAddr(), Lowest: uint32(rank), Cookie: 0xfeed + wire.Cookie(rank)})
	}
	ctx := testContext(l.T)
	addr, err := c.Prepare(ctx, agent.Prepare{
		Incarnation: incarnation, Group: 7, Epoch: epoch, Children: len(l.hosts), Window: 8, ChunkBytes: p4.Chunk,
		Functions: topology.FunctionsOf(reduce.Sum), Types: topology.TypesOf(reduce.Int32, reduce.Float32),
	})
	if err == nil {
		_, err = c.Commit(ctx, agent.Commit{Incarnation: incarnation, Config: config})
	}
	return config, addr.Port(), err
}

// vector is a full chunk of equal elements.
func vector(value uint32) (b []byte) {
	for range p4.Chunk / 4 {
		b = binary.LittleEndian.AppendUint32(b, value)
	}
	return b
}

// silence is how long a host waits before it asks for a chunk: packets are lost
// on a machine that is busy, as they are on any link.
const silence = 500 * time.Millisecond

// allreduce sums a full chunk of equal elements, one value of each host. Hosts
// repair as members do (docs/protocol.md).
func (l *live) allreduce(c *switchreduce.Config, port uint16, chunk uint32, element reduce.Type, values []uint32, want uint32) {
	l.Helper()
	say := func(rank int, kind wire.Type) { l.say(c, port, chunk, element, rank, kind, values[rank]) }
	for rank := range l.hosts {
		say(rank, wire.Contribution)
	}
	waits := map[int]bool{0: true, 1: true}
	for end := time.Now().Add(patience); len(waits) > 0; {
		if time.Now().After(end) {
			l.Fatalf("chunk %d: hosts %v got no result", chunk, waits)
		}
		for rank := range l.hosts { // who has the result still answers for the other
			switch head, body := l.hear(rank, waits[rank]); {
			case head.Type == 0 && waits[rank]:
				say(rank, wire.Probe)
			case head.Type == wire.Want && head.Chunk == chunk:
				say(rank, wire.Contribution)
			case head.Type == wire.Result && head.Chunk == chunk:
				if int(head.Child) != rank || !bytes.Equal(body, vector(want)) {
					l.Fatalf("rank %d: got %+v with %x, want the result %#x", rank, head, body[:min(8, len(body))], want)
				}
				delete(waits, rank)
			}
		}
	}
}

// say sends a packet of a host about a chunk.
func (l *live) say(c *switchreduce.Config, port uint16, chunk uint32, element reduce.Type, rank int, kind wire.Type, value uint32) {
	l.Helper()
	h := wire.Header{
		Type: kind, Child: uint16(rank), Group: c.Group, Epoch: c.Epoch, Cookie: c.Children[rank].Cookie, Chunk: chunk, Lowest: uint32(rank),
	}
	var body []byte
	if kind == wire.Contribution {
		h.Flags, body = wire.Sink, vector(value)
		h.Signature = wire.Signature{
			Collective: wire.Allreduce, Function: reduce.Sum, Element: element, Operation: uint16(chunk),
			Elements: p4.Chunk / 4, ChunkElements: p4.Chunk / 4,
		}
	}
	if !l.loses(rank, &h) {
		l.hosts[rank].send(netip.AddrPortFrom(l.links[rank].port(), port), h, body)
	}
}

// hear returns the next packet of a host. Its type is 0 where none comes, for
// which one that does not wait gives no time.
func (l *live) hear(rank int, waits bool) (head wire.Header, body []byte) {
	l.Helper()
	until := time.Now()
	if waits {
		until = until.Add(silence)
	}
	packets := make([]transport.Packet, 1)
	_, err := l.hosts[rank].conn.ReadBatch(packets, until)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return head, nil
	}
	if err != nil {
		l.Fatal(err)
	}
	body, fault := head.Decode(packets[0].Data)
	if fault != wire.NoFault {
		l.Fatal(fault)
	}
	if l.loses(rank, &head) {
		return wire.Header{}, nil
	}
	return head, body
}

// TestLive reduces by bmv2, and what bmv2 cannot by the agent, and lives through
// the target's restart.
func TestLive(t *testing.T) {
	l := newLive(t)
	_, c := start(t, l.config())
	events, _ := watch(t, c)
	incarnation := usable(t, events)
	epoch, port := l.install(c, incarnation, 2)
	chunk := uint32(0)
	for range 20 {
		l.allreduce(&epoch, port, chunk, reduce.Int32, []uint32{chunk, 0xffffffff}, chunk-1)
		l.allreduce(&epoch, port, chunk+1, reduce.Float32,
			[]uint32{math.Float32bits(1.5), math.Float32bits(0.1)}, math.Float32bits(float32(1.5)+float32(0.1)))
		chunk += 2
	}
	counted, err := c.Counters(testContext(t))
	if err != nil || len(counted.Trees) != 1 {
		t.Fatalf("%+v, %v", counted, err)
	}
	n := counted.Trees[0]
	if n.Events["taken"] != 80 || n.Events["results"] != 40 || n.Events["handed"] < 40 || n.PacketsIn < 80 {
		t.Errorf("counted: %+v", n)
	}
	if len(counted.Epochs) != 1 || len(counted.Epochs[0].Children) != 2 {
		t.Fatalf("%+v", counted.Epochs)
	}
	delete(n.Drops, switchreduce.DropDuplicate.String()) // of a repair
	if len(n.Drops) > 0 {
		t.Errorf("dropped: %v", n.Drops)
	}

	l.kill()
	l.start()
	ended(t, events, 7)
	usable(t, events)
	epoch, port = l.install(c, incarnation, 4)
	l.allreduce(&epoch, port, chunk, reduce.Int32, []uint32{1, 2}, 3)
}
