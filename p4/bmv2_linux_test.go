package p4_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/p4"
)

const (
	switchPorts = 3
	grpcAddr    = "127.0.0.1:9559"
	patience    = 10 * time.Second // for what comes in milliseconds
	inNamespace = "TRIBUTARY_P4_NAMESPACE"
)

// live runs the test named name again, in a network namespace of its own, and
// returns false; there, it returns true. What the test makes there is gone when
// its process ends. Without bmv2 or the right to make a namespace it skips.
func live(t testing.TB) bool {
	t.Helper()
	if os.Getenv(inNamespace) != "" {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("a network namespace and its links take root")
	}
	if _, err := bmv2(); err != nil {
		t.Skipf("no bmv2: %v (put simple_switch_grpc on the path, or its path into TRIBUTARY_BMV2)", err)
	}
	which, pattern := "run", "^"+t.Name()+"$"
	if _, ok := t.(*testing.B); ok {
		which, pattern = "bench", flag.Lookup("test.bench").Value.String()
	}
	args := []string{"-test.run=^$", "-test." + which + "=" + pattern, "-test.v", "-test.benchtime=" + flag.Lookup("test.benchtime").Value.String(), fmt.Sprintf("-steps=%d", *steps), "-update=" + flag.Lookup("update").Value.String()}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if err != nil {
		t.Fatalf("in a namespace: %v", err)
	}
	return false
}

func bmv2() (string, error) {
	if path := os.Getenv("TRIBUTARY_BMV2"); path != "" {
		return exec.LookPath(path)
	}
	return exec.LookPath("simple_switch_grpc")
}

// pipeline is the target that runs in bmv2, with an agent's core beside it for
// what the pipeline hands over.
type pipeline struct {
	t       testing.TB
	pid     int
	client  *p4rt.Client
	sockets [switchPorts + 1]int // by port, from 1; raw ones at the other end of its link
	state   p4.State
	serial  uint64
	forged  map[int]uint64 // by cell
	marks   uint64
	counted map[int]uint64 // outcomes of the tree in use
	agent   *switchreduce.Core
	handed  int
	looped  int
	pending []sent // what the agent sent

	last   []byte // the packet that was sent last
	from   netip.AddrPort
	damage string
}

func newPipeline(t testing.TB) *pipeline {
	t.Helper()
	p := &pipeline{t: t, forged: map[int]uint64{}}
	p.link("lo")
	args := []string{"--no-p4", "--device-id", "1"}
	for port := 1; port <= switchPorts; port++ {
		here, there := fmt.Sprintf("s%d", port), fmt.Sprintf("h%d", port)
		p.veth(here, there)
		args = append(args, "-i", fmt.Sprintf("%d@%s", port, here))
		p.sockets[port] = p.socket(there)
		mac := p4.MAC{2, 0, 0, 0, byte(port), 254}
		addr := netip.AddrFrom4([4]byte{10, 0, byte(port), 254})
		p.state.Ports = append(p.state.Ports, p4.Port{Number: uint16(port), Addr: addr, MAC: mac})
		p.state.Routes = append(p.state.Routes, p4.Route{
			Prefix: netip.PrefixFrom(addr, 24).Masked(), Port: uint16(port), MAC: p4.MAC{2, 0, 0, 0, byte(port), 1},
		})
	}
	p.veth("l0", "l1")
	args = append(args, "-i", fmt.Sprintf("%d@l0", p4.LoopOutPort), "-i", fmt.Sprintf("%d@l1", p4.LoopInPort))
	p.start(append(args, "--", "--grpc-server-addr", grpcAddr, "--cpu-port", fmt.Sprint(p4.CPUPort)))
	p.connect()
	return p
}

func (p *pipeline) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pipeline) link(name string) {
	l, err := netlink.LinkByName(name)
	p.must(err)
	p.must(netlink.LinkSetUp(l))
}

// veth makes a link without IPv6, whose packets nobody else sends.
func (p *pipeline) veth(here, there string) {
	for _, name := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EROFS) {
			p.t.Fatal(err)
		}
	}
	p.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: here, MTU: 3000}, PeerName: there}))
	p.link(here)
	p.link(there)
}

func (p *pipeline) socket(name string) int {
	l, err := net.InterfaceByName(name)
	p.must(err)
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL&0xff<<8
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, everything)
	p.must(err)
	p.t.Cleanup(func() { _ = unix.Close(fd) })
	p.must(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: l.Index}))
	p.must(unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1))
	p.must(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)}))
	p.must(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20))
	return fd
}

func (p *pipeline) start(args []string) {
	path, err := bmv2()
	p.must(err)
	cmd := exec.Command(path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	p.must(cmd.Start())
	p.pid = cmd.Process.Pid
	t := p.t
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); t.Failed() {
			t.Logf("bmv2 ended: %v\n%s", err, said.String())
		}
	})
}

func (p *pipeline) connect() {
	client, err := p4rt.Dial(p4rt.Config{
		Target: grpcAddr, Device: 1, Election: p4rt.Election{Low: 1},
		Pipeline: p4rt.Pipeline{P4Info: p4.Info(), Device: p4.DeviceConfig(), Order: p4.TableOrder()},
	})
	p.must(err)
	p.t.Cleanup(client.Close)
	p.client = client
	ctx, cancel := context.WithTimeout(context.Background(), 6*patience)
	defer cancel()
	for primary := false; !primary; {
		events, err := client.Events(ctx)
		p.must(err)
		primary = slices.ContainsFunc(events, func(e p4rt.Event) bool { return e.Kind == p4rt.Primary })
	}
	_, err = client.Push(ctx)
	p.must(err)
	p.write()
}

// write brings the switch to the state. Beside it there is a route to the
// agent, for marks.
func (p *pipeline) write() {
	want, err := p4.Translate(&p.state)
	p.must(err)
	want.Entries = append(want.Entries, p4.Entry{
		Table: p4.TableRoutes, Match: []p4.Field{{ID: p4.FieldRoutesPrefix, Value: agentAddr.AsSlice(), Prefix: 32}},
		Action: p4.ActionForward, Params: [][]byte{{p4.CPUPort >> 8, p4.CPUPort & 0xff}, make([]byte, 6)},
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = p.client.Reconcile(ctx, want)
	p.must(err)
}

// begin takes the next tree; the one before is gone, with its epochs.
func (p *pipeline) begin() {
	index := 0
	if len(p.state.Trees) > 0 {
		index = (p.state.Trees[0].Index + 1) % p4.Trees
	}
	p.state.Trees, p.state.Epochs = []p4.Tree{{Index: index, Newest: 0}}, nil
	p.agent = switchreduce.New()
	p.counted = nil
}

func (p *pipeline) tree() *p4.Tree { return &p.state.Trees[0] }

func (p *pipeline) install(cfg *switchreduce.Config) {
	t := p.tree()
	t.Group, t.Newest = cfg.Group, cfg.Epoch
	p.serial++
	// The epochs of a tree share slots, all or some, as those of package pipeline do.
	base := 8 + t.Index%2*(p4.BlockSlots-10) + int(p.serial%3)*4
	e := p4.Epoch{
		Tree: t.Index, Index: int(p.serial % p4.Epochs), Serial: p.serial, SlotBase: base,
		Epoch: cfg.Epoch, Window: cfg.Window, ChunkBytes: cfg.ChunkBytes,
		Parent: cfg.Parent, Own: cfg.Index, Cookie: uint64(cfg.Cookie), Probes: cfg.Probes,
	}
	for _, c := range cfg.Children {
		e.Children = append(e.Children, p4.Child{Addr: c.Addr, Lowest: c.Lowest, Cookie: uint64(c.Cookie)})
	}
	p.state.Epochs = append(p.state.Epochs, e)
	p.write()
	p.ask(switchreduce.Input{Kind: switchreduce.Install, Config: cfg})
	if p.counted == nil {
		p.counted = p.counters()
	}
}

func (p *pipeline) retire(epoch uint32) {
	p.state.Epochs = slices.DeleteFunc(p.state.Epochs, func(e p4.Epoch) bool { return e.Epoch == epoch })
	p.write()
	p.ask(switchreduce.Input{Kind: switchreduce.Retire, Epoch: epoch})
}

// ask steps the agent's core.
func (p *pipeline) ask(in switchreduce.Input) {
	o := oracle{core: p.agent}
	p.pending = append(p.pending, o.step(in)...)
}

func (p *pipeline) counters() map[int]uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	all, err := p.client.Counter(ctx, p4.CounterOutcomes)
	p.must(err)
	counted := map[int]uint64{}
	for o := range p4.Outcomes {
		counted[o] = all[p4.OutcomeIndex(p.tree().Index, p4.Outcome(o))].Packets
	}
	discards, err := p.client.Counter(ctx, p4.CounterDiscards)
	p.must(err)
	for d, c := range discards {
		counted[p4.Outcomes+d] = c.Packets
	}
	return counted
}

// outcomes returns what was counted since the last call.
func (p *pipeline) outcomes() (all []string) {
	now := p.counters()
	for i := range p4.Outcomes + p4.Discards {
		for range now[i] - p.counted[i] {
			if i >= p4.Outcomes {
				all = append(all, "discard "+p4.Discard(i-p4.Outcomes).String())
				continue
			}
			all = append(all, p4.Outcome(i).String())
		}
	}
	p.counted = now
	return all
}

func (p *pipeline) packet(from netip.AddrPort, port uint16, b []byte, damage string) ([]sent, []string) {
	p.last, p.from, p.damage = b, from, damage
	out := p.pass(from, port, b, damage)
	outcomes := p.outcomes()
	if slices.Contains(outcomes, p4.DropCookie.String()) {
		outcomes = append(outcomes, p.forgeries()...)
	}
	if slices.Contains(outcomes, p4.Looped.String()) {
		out, outcomes = p.await(out, outcomes)
	}
	if i := slices.Index(outcomes, p4.Handed.String()); i >= 0 {
		outcomes = slices.Delete(outcomes, i, i+1)
		var more []string
		out, more = p.relay(from, b, out)
		outcomes = append(outcomes, more...)
	}
	return out, outcomes
}

// forgeries returns in whose names packets without their cookie have come since the
// last call.
func (p *pipeline) forgeries() (all []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, e := range p.state.Epochs {
		cells := []int{e.Index * p4.Neighbours}
		names := []string{"p"}
		for i := range e.Children {
			cells, names = append(cells, cells[0]+1+i), append(names, string(rune('a'+i)))
		}
		counts, err := p.client.Cells(ctx, p4.CounterForged, cells)
		p.must(err)
		for i, c := range counts {
			for range c.Packets - p.forged[cells[i]] {
				all = append(all, forgedText(e.Epoch, names[i]))
			}
			p.forged[cells[i]] = c.Packets
		}
	}
	return all
}

// await waits for the outcome of a packet that goes round, which marks overtake,
// and then for what leaves of it.
func (p *pipeline) await(out []sent, outcomes []string) ([]sent, []string) {
	p.looped++
	for {
		outcomes = slices.DeleteFunc(outcomes, func(o string) bool { return o == p4.Looped.String() })
		last := len(outcomes) > 0
		out = append(out, p.collect(func(frame []byte, _ int) { p.must(unix.Send(p.sockets[1], frame, 0)) }, nil)...)
		if last {
			return out, outcomes
		}
		outcomes = p.outcomes()
	}
}

// relay has the agent's core do what the pipeline does not, and sends what
// comes of it through the pipeline.
func (p *pipeline) relay(from netip.AddrPort, b []byte, out []sent) ([]sent, []string) {
	p.handed++
	if len(out) > 0 {
		p.t.Errorf("a packet that is handed over was answered, too: %s", describe(out, nil))
	}
	before := p.agent.Counters()
	p.ask(switchreduce.Input{Kind: switchreduce.Packet, From: from, Packet: b})
	after := p.agent.Counters()
	wanted := p.pending
	p.pending = nil
	outcome := outcomeOf(&before, &after, b, wanted)
	for _, s := range wanted {
		frame := frameOf(udpPacket(netip.AddrPortFrom(netip.IPv4Unspecified(), p4.TreePort(p.tree().Index)), s.to, s.b, false))
		p.must(p.client.PacketOut(p4rt.Packet{Header: []p4rt.Meta{{ID: p4.PacketOutPort, Value: p4.RoutedPacketOut}}, Payload: frame}))
	}
	return p.collect(func(frame []byte, port int) {
		out := uint64(port)
		if port == p4.CPUPort {
			out = p4.RoutedPacketOut // by the route that leads there
		}
		p.must(p.client.PacketOut(p4rt.Packet{Header: []p4rt.Meta{{ID: p4.PacketOutPort, Value: out}}, Payload: frame}))
	}, nil), outcome
}

// pass sends a packet to the switch by a port and returns what leaves it. It is for the
// address that its sender knows.
func (p *pipeline) pass(from netip.AddrPort, port uint16, b []byte, damage string) []sent {
	to := netip.AddrPortFrom(p.state.Ports[from.Addr().As4()[2]-1].Addr, p4.TreePort(p.tree().Index))
	frame := frameOf(udpPacket(from, to, b, true))
	switch damage {
	case "udp":
		frame[linkBytes+ipBytes+udpBytes+5] ^= 0x10
	case "ip":
		frame[linkBytes+1] ^= 0x10
	case "none":
		clear(frame[linkBytes+ipBytes+6 : linkBytes+ipBytes+udpBytes])
	case "frame":
		frame = frame[:len(frame)-3]
	}
	p.must(unix.Send(p.sockets[port], frame, 0))
	return p.collect(func(frame []byte, _ int) { p.must(unix.Send(p.sockets[port], frame, 0)) }, &handover{from: from, b: b})
}

// handover is a packet that the pipeline may hand over.
type handover struct {
	from netip.AddrPort
	b    []byte
}

// collect returns the packets that leave the switch, and checks what it hands
// over.
func (p *pipeline) collect(send func(frame []byte, port int), may *handover) []sent {
	var out []sent
	for port, frames := range p.frames(send) {
		for _, frame := range frames {
			s, err := p.read(frame, port)
			if err != nil {
				p.t.Errorf("port %d: %v: %x", port, err, frame)
				continue
			}
			out = append(out, s)
		}
	}
	p.drainAgent(may)
	return out
}

// frames sends a mark to each way out of the switch and returns what leaves by
// it before the mark, by port: ingress is one thread, and each way out a queue.
func (p *pipeline) frames(send func(frame []byte, port int)) (all [switchPorts + 1][][]byte) {
	p.marks++
	for port := 1; port <= switchPorts; port++ {
		send(mark(netip.AddrFrom4([4]byte{10, 0, byte(port), 200}), p.marks), port)
	}
	send(mark(agentAddr, p.marks), p4.CPUPort)
	for port := 1; port <= switchPorts; port++ {
		all[port] = p.drain(port)
	}
	return all
}

func (p *pipeline) drain(port int) (frames [][]byte) {
	buffer := make([]byte, 4096)
	for {
		n, _, err := unix.Recvfrom(p.sockets[port], buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			p.t.Fatalf("port %d: no mark %d: %v, after\n%x from %v %s", port, p.marks, err, p.last, p.from, p.damage)
		}
		frame := slices.Clone(buffer[:n])
		if isMark(frame, p.marks) {
			return frames
		}
		frames = append(frames, frame)
	}
}

// drainAgent takes what the pipeline gives the agent, up to the mark; that must
// be the packet that went in, as it was.
func (p *pipeline) drainAgent(may *handover) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		packets, err := p.client.Packets(ctx)
		p.must(err)
		for _, packet := range packets {
			if isMark(packet.Payload, p.marks) {
				return
			}
			var in p4.PacketIn
			for _, f := range packet.Header {
				in.Take(f.ID, f.Value)
			}
			if may == nil {
				p.t.Fatalf("the pipeline hands over what the agent sent: %x", packet.Payload)
			}
			port := uint16(may.from.Addr().As4()[2])
			if int(in.Tree) != p.tree().Index || in.Port != port || !slices.Equal(packet.Payload[linkBytes+ipBytes+udpBytes:], may.b) {
				p.t.Errorf("the pipeline hands over %+v %x", in, packet.Payload)
			}
		}
	}
}

// read reads a frame that the switch has sent by a port and checks all that is
// not Tributary's own.
func (p *pipeline) read(frame []byte, port int) (sent, error) {
	own, next := p.state.Ports[port-1], p.state.Routes[port-1].MAC
	if len(frame) < linkBytes+ipBytes+udpBytes {
		return sent{}, errors.New("short frame")
	}
	ip, udp := frame[linkBytes:], frame[linkBytes+ipBytes:]
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:16])), binary.BigEndian.Uint16(udp))
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:20])), binary.BigEndian.Uint16(udp[2:]))
	b := udp[udpBytes:]
	want := udpPacket(from, to, b, true)
	want[8] = ip[8] // time to live
	clear(want[10:12])
	binary.BigEndian.PutUint16(want[10:], checksum(want[:ipBytes], 0))
	switch {
	case !slices.Equal(ip, want):
		return sent{}, fmt.Errorf("it is not %x", want)
	case [6]byte(frame) != next || [6]byte(frame[6:]) != own.MAC:
		return sent{}, fmt.Errorf("link addresses %x", frame[:12])
	case from != netip.AddrPortFrom(own.Addr, p4.TreePort(p.tree().Index)):
		return sent{}, fmt.Errorf("it comes from %v", from)
	}
	return sent{to: to, b: b}, nil
}
