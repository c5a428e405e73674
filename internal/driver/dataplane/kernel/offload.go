//go:build linux

package kernel

import (
	"bytes"
	"context"
	_ "embed" // of the program
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

//go:embed bpf/reduce.o
var object []byte

// Offload is the program, attached to the interfaces, and the memory of its epochs.
type Offload struct {
	cfg     Config
	program *ebpf.Program
	ports   *ebpf.Map
	locals  *ebpf.Map
	regions [3]*ebpf.Map     // of trees, words and areas
	inner   [3]*ebpf.MapSpec // what is in them

	stop context.CancelFunc
	done chan struct{}

	freeing  sync.WaitGroup // of memory that is no longer in use
	mu       sync.Mutex
	links    map[int]link.Link // by index of the interface
	addrs    map[netip.Addr]bool
	epochs   map[key]*epoch
	begun    map[uint16]uint32 // by port, the epoch whose packets are taken
	inUse    []bool            // regions
	reserved int               // bytes of memory
	past     map[uint16]*past
}

type key struct {
	port  uint16
	epoch uint32
}

type epoch struct {
	*memory
	region uint32
	size   int
}

// past is what a tree's epochs have counted that have ended.
type past struct {
	counts  [counts]uint64
	traffic [trafficCounts]uint64
}

// New loads the program and attaches it to all Ethernet interfaces that there are, and
// that come later. The caller owns the Offload and must Close it.
func New(c Config) (*Offload, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if cpu.IsBigEndian {
		return nil, ErrUnsupported
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	_ = rlimit.RemoveMemlock() // kernels before 5.11; if it fails, loading does, and says so
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("kernel: reading the program: %w", err)
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return nil, fmt.Errorf("kernel: loading the program (it needs Linux 6.6, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN): %w", err)
	}
	o := &Offload{
		cfg: c, program: loaded.DetachProgram("reduce"),
		ports: loaded.DetachMap("ports"), locals: loaded.DetachMap("locals"),
		links: map[int]link.Link{}, addrs: map[netip.Addr]bool{}, epochs: map[key]*epoch{}, begun: map[uint16]uint32{}, past: map[uint16]*past{},
		done: make(chan struct{}),
	}
	for i, name := range [...]string{"trees", "words", "areas"} {
		o.regions[i], o.inner[i] = loaded.DetachMap(name), spec.Maps[name].InnerMap
	}
	loaded.Close()
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	if err := o.follow(); err != nil {
		close(o.done)
		o.Close()
		return nil, err
	}
	here, err := netns.Get()
	if err != nil {
		close(o.done)
		o.Close()
		return nil, fmt.Errorf("kernel: finding out the network namespace: %w", err)
	}
	go o.watch(ctx, here)
	return o, nil
}

// watch follows changes of the interfaces, in the namespace of who made the Offload.
func (o *Offload) watch(ctx context.Context, here netns.NsHandle) {
	defer close(o.done)
	runtime.LockOSThread() // for good: the thread ends with this goroutine
	err := enter(here)
	if err != nil {
		o.cfg.Log.Error("new interfaces' packets will be reduced by the agent, not in the kernel", slog.Any("error", err))
		return
	}
	nic.Follow(ctx, o.cfg.Interfaces, o.cfg.Log, func() {
		if err := o.follow(); err != nil {
			o.cfg.Log.Warn("some interfaces' packets are reduced by the agent, not in the kernel", slog.Any("error", err))
		}
	})
}

// enter has the thread be in a namespace. Where it is already, it needs no capability.
func enter(ns netns.NsHandle) error {
	defer func() { _ = ns.Close() }()
	now, err := netns.Get()
	if err != nil {
		return err
	}
	defer func() { _ = now.Close() }()
	if now.Equal(ns) {
		return nil
	}
	return netns.Set(ns)
}

// follow attaches the program to interfaces that are new, and notes the addresses of all.
func (o *Offload) follow() error {
	all, err := o.cfg.Interfaces.Read()
	if err != nil {
		return fmt.Errorf("kernel: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	there, addrs := map[int]bool{}, map[netip.Addr]bool{}
	for i := range all {
		n := &all[i]
		there[n.Index] = true
		for _, a := range n.Addresses {
			if a.Is4() {
				addrs[a] = true
			}
		}
		if _, ok := o.links[n.Index]; ok || !n.Ethernet {
			continue
		}
		l, err := link.AttachTCX(link.TCXOptions{Interface: n.Index, Program: o.program, Attach: ebpf.AttachTCXIngress})
		if errors.Is(err, unix.ENODEV) {
			continue // it has gone meanwhile
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("kernel: attaching to %s: %w", n.Name, err))
			continue
		}
		o.links[n.Index] = l
	}
	maps.DeleteFunc(o.links, func(index int, l link.Link) bool {
		if !there[index] {
			_ = l.Close() // the kernel has detached it with the interface
		}
		return !there[index]
	})
	errs = append(errs, o.address(addrs))
	return errors.Join(errs...)
}

// address makes addrs the addresses at which packets are taken.
func (o *Offload) address(addrs map[netip.Addr]bool) error {
	var errs []error
	for a := range addrs {
		if !o.addrs[a] {
			errs = append(errs, o.locals.Put(a.As4(), uint8(1)))
		}
	}
	for a := range o.addrs {
		if !addrs[a] {
			errs = append(errs, o.locals.Delete(a.As4()))
		}
	}
	o.addrs = addrs
	return errors.Join(errs...)
}

// Install implements soft.Accelerator.
func (o *Offload) Install(port uint16, c *switchreduce.Config) (switchreduce.FastPath, error) {
	if err := servable(c, o.cfg.Data); err != nil {
		return nil, err
	}
	tree, err := encode(c, port, o.cfg.Data)
	if err != nil {
		return nil, err
	}
	need := size(len(c.Children), c.Window)
	region, err := o.reserve(need)
	if err != nil {
		return nil, err
	}
	m, err := newMemory(o.inner, tree, len(c.Children), c.Window)
	if err != nil {
		o.release(region, need)
		return nil, err
	}
	for i, of := range o.regions {
		if err := of.Put(region, m.maps[i]); err != nil {
			o.free(region, need, m)
			return nil, fmt.Errorf("kernel: memory of an epoch: %w", err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.epochs[key{port, c.Epoch}] = &epoch{memory: m, region: region, size: need}
	return m, nil
}

// reserve returns a region that is free, and takes so many bytes.
func (o *Offload) reserve(need int) (region uint32, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if free := o.cfg.Memory - o.reserved; need > free {
		return 0, fmt.Errorf("%d bytes of kernel memory are needed, %d of %d are free", need, free, o.cfg.Memory)
	}
	at := slices.Index(o.inUse, false)
	if at < 0 {
		at = len(o.inUse)
		o.inUse = append(o.inUse, false)
	}
	o.inUse[at] = true
	o.reserved += need
	return uint32(at), nil
}

func (o *Offload) release(region uint32, size int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inUse[region] = false
	o.reserved -= size
}

// free gives a region back. Each removal waits until no program uses what is removed.
func (o *Offload) free(region uint32, size int, m *memory) {
	for _, of := range o.regions {
		_ = of.Delete(region) // it is there, unless Install has failed
	}
	m.close()
	o.release(region, size)
}

// portKey is the key of a tree in the map of ports.
func portKey(port uint16) (k [4]byte) {
	native := binary.NativeEndian
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	native.PutUint32(k[:], uint32(native.Uint16(b[:])))
	return k
}

// Begin implements soft.Accelerator.
func (o *Offload) Begin(port uint16, number uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cease(port)
	e := o.epochs[key{port, number}]
	if e == nil {
		return
	}
	if err := o.ports.Put(portKey(port), e.region); err != nil {
		o.cfg.Log.Warn("an epoch is reduced by the agent, not in the kernel", slog.Uint64("epoch", uint64(number)), slog.Any("error", err))
		return
	}
	o.begun[port] = number
}

// cease has no packet of a tree be taken any more.
func (o *Offload) cease(port uint16) {
	if _, ok := o.begun[port]; ok {
		_ = o.ports.Delete(portKey(port)) // it is there
		delete(o.begun, port)
	}
}

// Retire implements soft.Accelerator.
func (o *Offload) Retire(port uint16, number uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retire(key{port, number})
}

func (o *Offload) retire(k key) {
	e := o.epochs[k]
	if e == nil {
		return
	}
	if o.begun[k.port] == k.epoch {
		o.cease(k.port)
	}
	p := o.past[k.port]
	if p == nil {
		p = new(past)
		o.past[k.port] = p
	}
	p.add(e)
	delete(o.epochs, k)
	o.freeing.Go(func() { o.free(e.region, e.size, e.memory) }) // it takes some ten milliseconds
}

func (p *past) add(e *epoch) {
	for i := range p.counts {
		p.counts[i] += e.count(i)
	}
	for n := range e.children + 1 {
		for i := range p.traffic {
			p.traffic[i] += e.memory.traffic(n, i)
		}
	}
}

// Shut implements soft.Accelerator.
func (o *Offload) Shut(port uint16) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k := range o.epochs {
		if k.port == port {
			o.retire(k)
		}
	}
	delete(o.past, port)
}

// Count implements soft.Accelerator.
func (o *Offload) Count(port uint16, c *rpc.TreeCounters, epochs []switchreduce.EpochTraffic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var sum past
	if p := o.past[port]; p != nil {
		sum = *p
	}
	for k, e := range o.epochs {
		if k.port != port {
			continue
		}
		sum.add(e)
		for i := range epochs {
			if t := &epochs[i]; t.Epoch == k.epoch {
				e.report(t)
			}
		}
	}
	sum.count(c)
}

// report adds what the program has exchanged with each neighbour.
func (m *memory) report(t *switchreduce.EpochTraffic) {
	add := func(to *switchreduce.Traffic, neighbour int) {
		to.PacketsIn += m.traffic(neighbour, packetsIn)
		to.BytesIn += m.traffic(neighbour, bytesIn)
		to.PacketsOut += m.traffic(neighbour, packetsOut)
		to.BytesOut += m.traffic(neighbour, bytesOut)
	}
	for i := range t.Children {
		add(&t.Children[i], i)
	}
	if t.Parent != nil {
		add(t.Parent, m.children)
	}
}

// Close detaches the program and gives all memory back.
func (o *Offload) Close() {
	o.stop()
	<-o.done
	o.mu.Lock()
	for k := range o.epochs {
		o.retire(k)
	}
	o.mu.Unlock()
	o.freeing.Wait()
	for _, l := range o.links {
		_ = l.Close() // the interface may be gone
	}
	clear(o.links)
	for _, m := range append(o.regions[:], o.ports, o.locals) {
		_ = m.Close() // nothing is to be had from it any more
	}
	_ = o.program.Close()
}

// count adds p to what is published of a tree.
func (p *past) count(c *rpc.TreeCounters) {
	const beneath = 28 // bytes of IPv4 and UDP headers
	c.PacketsIn += p.traffic[packetsIn]
	c.BytesIn += p.traffic[bytesIn] + beneath*p.traffic[packetsIn]
	c.PacketsOut += p.traffic[packetsOut]
	c.BytesOut += p.traffic[bytesOut] + beneath*p.traffic[packetsOut]
	for i, name := range [...]string{"kernel-taken", "kernel-partials", "kernel-results"} {
		dataplane.AddEvent(c, name, p.counts[countTaken+i])
	}
	for i, name := range [...]string{"odd", "owned", "partly", "sizes", "no-memory"} {
		dataplane.AddEvent(c, "kernel-passed-"+name, p.counts[countOdd+i])
	}
	dataplane.AddDrop(c, switchreduce.DropDuplicate.String(), p.counts[countDuplicate])
	dataplane.AddDrop(c, switchreduce.DropLate.String(), p.counts[countLate])
	dataplane.AddDrop(c, "unreachable", p.counts[countUndelivered])
}
