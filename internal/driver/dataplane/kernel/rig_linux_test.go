package kernel_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/kernel"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// rig is a switch in a network namespace, with a veth to each of its neighbours, which are
// in another. One thread does everything, on one processor, so that packets stay in order.
type rig struct {
	t          testing.TB
	sw, around netns.NsHandle
	offload    *kernel.Offload
	tree       int // the tree's socket, at the switch
	port       uint16
	neighbours []int    // their sockets
	fences     [2]fence // at the neighbours, and at the switch
	core       *switchreduce.Core
	now        core.Time
	buffer     [1 << 16]byte
}

type fence struct {
	socket int
	at     unix.Sockaddr // of the other one
}

// neighbourAddr is where neighbour i is, switchAddr where it sends to.
func neighbourAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 2}), 4800)
}

func (r *rig) switchAddr(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 9, byte(i), 1}), r.port)
}

// newRig makes a switch with so many neighbours. It skips the test where programs cannot
// be loaded into the kernel.
func newRig(t testing.TB, neighbours int) *rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	runtime.LockOSThread() // for good: the thread ends with the test, and with it its namespace
	var one unix.CPUSet
	one.Set(0)
	r := &rig{t: t, core: switchreduce.New()}
	r.check(unix.SchedSetaffinity(0, &one))
	home, err := netns.Get()
	r.check(err)
	r.around, err = netns.New()
	r.check(err)
	r.sw, err = netns.New()
	r.check(err)
	t.Cleanup(func() {
		r.check(netns.Set(home))
		for _, ns := range []*netns.NsHandle{&home, &r.around, &r.sw} {
			r.check(ns.Close())
		}
	})
	for i := range neighbours {
		r.link(i)
	}
	r.in(r.sw)
	r.check(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
	r.tree = r.socket(netip.IPv4Unspecified(), 0)
	r.port = r.portOf(r.tree)
	r.offload, err = kernel.New(kernel.Config{Data: netip.IPv4Unspecified(), Interfaces: nic.System(), Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, kernel.ErrUnsupported) {
		t.Skip(err)
	}
	r.check(err)
	t.Cleanup(r.offload.Close)
	r.fences[1].socket = r.socket(netip.IPv4Unspecified(), 4900)
	r.in(r.around)
	r.fences[0].socket = r.socket(netip.IPv4Unspecified(), 4900)
	for i := range neighbours {
		r.neighbours = append(r.neighbours, r.socket(neighbourAddr(i).Addr(), 4800))
	}
	r.fences[0].at = sockaddr(netip.AddrPortFrom(r.switchAddr(0).Addr(), 4900))
	r.fences[1].at = sockaddr(netip.AddrPortFrom(neighbourAddr(0).Addr(), 4900))
	return r
}

func (r *rig) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) in(ns netns.NsHandle) {
	r.t.Helper()
	r.check(netns.Set(ns))
}

// link connects neighbour i.
func (r *rig) link(i int) {
	r.in(r.sw)
	own, far := fmt.Sprintf("s%d", i), fmt.Sprintf("n%d", i)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = own
	r.check(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: far, PeerNamespace: netlink.NsFd(r.around)}))
	r.up(own, r.switchAddr(i).Addr())
	r.in(r.around)
	r.up(far, neighbourAddr(i).Addr())
	r.in(r.sw)
}

func (r *rig) up(name string, at netip.Addr) {
	l, err := netlink.LinkByName(name)
	r.check(err)
	a, err := netlink.ParseAddr(at.String() + "/24")
	r.check(err)
	r.check(netlink.AddrAdd(l, a))
	r.check(netlink.LinkSetUp(l))
}

func (r *rig) socket(at netip.Addr, port uint16) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	r.check(err)
	r.t.Cleanup(func() { r.check(unix.Close(fd)) })
	r.check(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20))
	r.check(unix.Bind(fd, sockaddr(netip.AddrPortFrom(at, port))))
	return fd
}

func (r *rig) portOf(fd int) uint16 {
	at, err := unix.Getsockname(fd)
	r.check(err)
	return uint16(at.(*unix.SockaddrInet4).Port)
}

func sockaddr(at netip.AddrPort) unix.Sockaddr {
	return &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}
}

// install installs an epoch with a fast path.
func (r *rig) install(c *switchreduce.Config) {
	r.t.Helper()
	r.in(r.sw)
	fast, err := r.offload.Install(r.port, c)
	r.check(err)
	with := *c
	with.FastPath = fast
	r.step([]switchreduce.Input{{Kind: switchreduce.Install, Config: &with}})
}

// send has a neighbour send packets of size bytes each, but for the last, at once.
func (r *rig) send(neighbour int, packets []byte, size int) {
	r.t.Helper()
	r.check(unix.Sendmsg(r.neighbours[neighbour], packets, segments(len(packets), size), sockaddr(r.switchAddr(neighbour)), 0))
}

// settle waits until packets that were sent have come to where they go.
func (r *rig) settle() {
	for i := range r.fences {
		r.check(unix.Sendto(r.fences[i].socket, []byte{1}, 0, r.fences[i].at))
		_, _, err := unix.Recvfrom(r.fences[1-i].socket, r.buffer[:], 0)
		r.check(err)
	}
}

// pump has the core take what has come to the tree's socket.
func (r *rig) pump() {
	for {
		r.settle()
		var in []switchreduce.Input
		for {
			b, from := r.receive(r.tree)
			if b == nil {
				break
			}
			in = append(in, switchreduce.Input{Kind: switchreduce.Packet, From: from, Packet: b})
		}
		if len(in) == 0 {
			return
		}
		r.step(in)
	}
}

func (r *rig) step(in []switchreduce.Input) {
	var out switchreduce.Output
	r.core.Step(r.now, in, &out)
	for i := range out.Sends {
		s := &out.Sends[i]
		r.check(unix.Sendto(r.tree, append(s.Head[:len(s.Head):len(s.Head)], s.Body...), 0, sockaddr(s.To)))
	}
	for _, e := range out.Begun {
		r.offload.Begin(r.port, e)
	}
	for _, e := range append(out.Retired, out.Expired...) {
		r.offload.Retire(r.port, e)
	}
}

// receive returns a packet that a socket has, or nil.
func (r *rig) receive(fd int) ([]byte, netip.AddrPort) {
	n, from, err := unix.Recvfrom(fd, r.buffer[:], unix.MSG_DONTWAIT)
	if errors.Is(err, unix.EAGAIN) {
		return nil, netip.AddrPort{}
	}
	r.check(err)
	at := from.(*unix.SockaddrInet4)
	return append([]byte(nil), r.buffer[:n]...), netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port))
}

// packet returns the packet of a header and a payload.
func packet(h wire.Header, payload []byte) []byte {
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(payload))
	h.Put(b)
	return append(b, payload...)
}

// counters returns what the program has counted of the tree.
func (r *rig) counters() (c rpc.TreeCounters) {
	r.offload.Count(r.port, &c, nil)
	return c
}
