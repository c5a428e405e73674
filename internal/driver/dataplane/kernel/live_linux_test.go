package kernel_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/soft"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// live is a switch as the agent runs it, and members that keep the rules, each with a
// thread.
type live struct {
	*rig
	plane  *soft.Plane
	events chan dataplane.Event
	cfg    *switchreduce.Config
}

func newLive(t *testing.T, members int) *live {
	r := &live{rig: newRig(t, members), events: make(chan dataplane.Event, 16)}
	r.in(r.sw)
	var err error
	r.plane, err = soft.New(soft.Config{
		Switch: "s", Data: netip.IPv4Unspecified(), Chunk: 1432, Accelerator: r.offload,
		Clock: runner.NewClock(), Log: slog.New(slog.DiscardHandler), Notify: func(e dataplane.Event) { r.events <- e },
	})
	r.check(err)
	t.Cleanup(r.plane.Close)
	r.plane.Open(1, 9)
	opened := (<-r.events).(dataplane.Opened)
	r.check(opened.Err)
	r.port = opened.Addr.Port()
	r.next(2)
	return r
}

// next installs an epoch.
func (r *live) next(epoch uint32) {
	r.in(r.sw)
	r.cfg = config(epoch, len(r.neighbours), true)
	r.plane.Install(1, r.cfg)
	installed := (<-r.events).(dataplane.Installed)
	r.check(installed.Err)
}

func (r *live) counted() rpc.TreeCounters {
	r.t.Helper()
	c, err := r.plane.Census(r.t.Context())
	r.check(err)
	return c.Trees[0]
}

// habits are what a member does to its packets.
type habits struct {
	lose, repeat float64 // share of what it sends and gets, of batches that it sends
	alone        bool    // it sends no batches
}

const elements = 358

// run has all members reduce so many chunks, and checks every result.
func (r *live) run(chunks uint32, h habits) {
	r.t.Helper()
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for i := range r.neighbours {
		wg.Go(func() {
			runtime.LockOSThread() // for good: it is pinned
			var one unix.CPUSet
			one.Set(i % runtime.NumCPU())
			err := unix.SchedSetaffinity(0, &one)
			if err == nil {
				err = (&member{live: r, i: i, rng: rand.New(rand.NewPCG(uint64(i), 1)), habits: h}).run(chunks)
			}
			if err != nil {
				err = fmt.Errorf("member %d: %w", i, err)
				failed.CompareAndSwap(nil, &err)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		r.t.Fatal(*err, r.counted())
	}
}

type member struct {
	*live
	i      int
	rng    *rand.Rand
	habits habits
	base   uint32
	sent   uint32
	has    map[uint32]bool
}

// patience is how long a member waits for a result before it probes.
const patience = 20 * time.Millisecond

func (m *member) run(chunks uint32) error {
	fd := m.neighbours[m.i]
	tv := unix.NsecToTimeval(int64(patience))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return err
	}
	m.has = map[uint32]bool{}
	buffer := make([]byte, 1<<16)
	for idle := 0; m.base < chunks; {
		for m.sent < chunks && m.sent+wire.BatchChunks-m.base <= m.cfg.Window {
			if err := m.batch(min(wire.BatchChunks, chunks-m.sent)); err != nil {
				return err
			}
		}
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			if idle++; idle > 500 {
				return fmt.Errorf("no result of %d", m.base)
			}
			if err := m.probe(m.base); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			idle = 0
			if err := m.take(buffer[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *member) value(n uint32) []byte { return values(elements, n*uint32(m.i+1)) }

func (m *member) packet(n uint32) []byte {
	return packet(sums(m.cfg, m.i, n, elements), m.value(n))
}

// batch sends the next chunks.
func (m *member) batch(count uint32) error {
	var all []byte
	size := wire.HeaderSize + 4*elements
	for range count {
		all = append(all, m.packet(m.sent)...)
		m.sent++
	}
	for again := true; again; again = m.rng.Float64() < m.habits.repeat {
		if !m.habits.alone {
			if err := m.put(all, size); err != nil {
				return err
			}
			continue
		}
		for at := 0; at < len(all); at += size {
			if err := m.put(all[at:at+size], size); err != nil {
				return err
			}
		}
	}
	return nil
}

// put sends packets, if they are not lost. What the network refuses is lost, too.
func (m *member) put(packets []byte, size int) error {
	if m.rng.Float64() < m.habits.lose {
		return nil
	}
	err := unix.Sendmsg(m.neighbours[m.i], packets, segments(len(packets), size), sockaddr(m.switchAddr(m.i)), 0)
	if errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOBUFS) {
		return nil
	}
	return err
}

func (m *member) probe(n uint32) error {
	h := wire.Header{Type: wire.Probe, Child: uint16(m.i), Group: m.cfg.Group, Epoch: m.cfg.Epoch, Cookie: m.cfg.Children[m.i].Cookie, Chunk: n}
	return m.put(packet(h, nil), 1<<16)
}

// take takes a packet of the switch's.
func (m *member) take(b []byte) error {
	var h wire.Header
	payload, fault := h.Decode(b)
	if fault != wire.NoFault || h.Cookie != m.cfg.Children[m.i].Cookie {
		return fmt.Errorf("a packet with fault %v: %+v", fault, h)
	}
	if m.rng.Float64() < m.habits.lose || h.Epoch != m.cfg.Epoch {
		return nil
	}
	switch h.Type {
	case wire.Want:
		return m.put(m.packet(h.Chunk), 1<<16)
	case wire.Result:
		if h.Chunk >= m.sent {
			return fmt.Errorf("a result of %d, before it was sent", h.Chunk)
		}
		members := uint32(len(m.neighbours))
		for e := range uint32(elements) {
			want := h.Chunk*members*(members+1)/2 + members*e
			if got := binary.LittleEndian.Uint32(payload[4*e:]); got != want {
				return fmt.Errorf("chunk %d, element %d: %d, want %d", h.Chunk, e, got, want)
			}
		}
		m.has[h.Chunk] = true
		for ; m.has[m.base]; m.base++ {
			delete(m.has, m.base)
		}
	case wire.Heard:
	default:
		return fmt.Errorf("%v of %d", h.Type, h.Chunk)
	}
	return nil
}

// segments returns the control message by which the kernel cuts what is sent into
// packets of a size.
func segments(n, size int) []byte {
	if n <= size {
		return nil
	}
	oob := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(oob[unix.CmsgLen(0):], uint16(size))
	return oob
}

// around runs f in the namespace of the neighbours.
func (r *live) there(f func()) {
	r.in(r.around)
	f()
	r.in(r.sw)
}

// shape gives a neighbour's link a token bucket that lets no whole batch pass at once.
func (r *live) shape(i int) {
	l, err := netlink.LinkByName(fmt.Sprintf("n%d", i))
	r.check(err)
	r.check(netlink.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       1e9 / 8, Buffer: uint32(netlink.TickInUsec() * 20_000 * 8 / 1000), Limit: 4 << 20,
	}))
}

// noChecksums has a neighbour's interface leave no checksum to others.
func (r *live) noChecksums(i int) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	r.check(err)
	defer func() { r.check(unix.Close(fd)) }()
	value := struct{ command, data uint32 }{unix.ETHTOOL_STXCSUM, 0}
	req := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(req.name[:], fmt.Sprintf("n%d", i))
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		r.t.Fatal(errno)
	}
}

// TestFaults: results stay right, whatever happens to packets.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		habits habits
		before func(*live)
		kernel bool // the program does most
	}{
		{name: "none", kernel: true},
		{name: "single packets", habits: habits{alone: true}, kernel: true},
		{name: "loss", habits: habits{lose: 0.02}},
		{name: "duplicates", habits: habits{repeat: 0.3}, kernel: true},
		{name: "loss and duplicates of single packets", habits: habits{lose: 0.01, repeat: 0.1, alone: true}},
		{name: "a link that splits batches", before: func(r *live) { r.shape(1) }},
		{name: "no checksum offload at one", before: func(r *live) { r.noChecksums(1) }},
		{name: "no checksum offload", before: func(r *live) {
			for i := range r.neighbours {
				r.noChecksums(i)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newLive(t, 4)
			if c.before != nil {
				r.there(func() { c.before(r) })
			}
			chunks := uint32(4000)
			if testing.Short() || c.habits.lose > 0 {
				chunks = 600
			}
			r.run(chunks, c.habits)
			n := r.counted()
			t.Log(n.Events, n.Drops)
			if got := n.Events["kernel-results"]; c.kernel && got < uint64(chunks)*8/10 {
				t.Errorf("%d of %d chunks were reduced in the kernel", got, chunks)
			}
		})
	}
}

// TestEpochsFollow: an epoch's program ends with the first packet of the next.
func TestEpochsFollow(t *testing.T) {
	r := newLive(t, 3)
	for epoch := uint32(2); epoch < 12; epoch += 2 {
		if epoch > 2 {
			r.next(epoch)
		}
		r.run(200, habits{})
	}
	if n := r.counted(); n.Events["kernel-results"] < 500 {
		t.Error(n.Events)
	}
}
