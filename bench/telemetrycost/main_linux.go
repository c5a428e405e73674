// Command telemetrycost measures what subscribers cost a switch agent. It starts an
// agent with 64 interfaces as a process of its own, opens streams of gNMI to it, and
// prints the agent's CPU time and memory, and the bytes and messages of the streams.
//
//	go run -C bench ./telemetrycost [-streams 100] [-seconds 30] [-mode sample|change|target]
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/topology"
)

const (
	asAgent    = "TELEMETRYCOST_AGENT"
	interfaces = 64
)

func main() {
	run := measure
	if os.Getenv(asAgent) != "" {
		run = serve
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ports are interfaces whose counters move at each reading, and of which one goes down
// or comes up every second.
type ports struct{ reads atomic.Uint64 }

// Read implements nic.Source.
func (p *ports) Read() ([]nic.Interface, error) {
	n := p.reads.Add(1)
	all := make([]nic.Interface, interfaces)
	for i := range all {
		all[i] = nic.Interface{
			Name: fmt.Sprintf("port%02d", i), Index: i + 1, Enabled: true, Up: i > 0 || time.Now().Unix()%2 == 0, Ethernet: true,
			MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}, MTU: 9000, Speed: 100e9,
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i), 1})}, Bits: []int{24},
			Traffic: nic.Traffic{PacketsIn: n << 10, BytesIn: n << 20, PacketsOut: n << 10, BytesOut: n << 20},
		}
	}
	return all, nil
}

// Watch implements nic.Source.
func (p *ports) Watch(ctx context.Context, changed func()) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		changed()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// serve is the agent's process. It ends with its parent.
func serve() error {
	d, err := agentd.Start(agentd.Config{
		Switch: "leaf-0", Capability: topology.DefaultCapability(), Listen: "127.0.0.1:0", Data: netip.MustParseAddr("127.0.0.1"),
		Interfaces: &ports{}, Processor: processor.Read,
	})
	if err != nil {
		return err
	}
	defer d.Close()
	fmt.Println(d.Addr())
	_, err = bufio.NewReader(os.Stdin).ReadByte()
	_ = err // the parent has ended
	return nil
}

// traffic counts what arrives on a connection.
type traffic struct{ bytes, messages, updates atomic.Uint64 }

func (t *traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (t *traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (t *traffic) HandleConn(context.Context, stats.ConnStats)                       {}
func (t *traffic) HandleRPC(_ context.Context, s stats.RPCStats) {
	if in, ok := s.(*stats.InPayload); ok {
		t.bytes.Add(uint64(in.WireLength))
		t.messages.Add(1)
	}
}

func measure() error {
	streams := flag.Int("streams", 100, "streams")
	seconds := flag.Int("seconds", 30, "how long it is measured")
	mode := flag.String("mode", "sample", "sample: counters each second, and events on change; change: events alone; target: as the target decides")
	flag.Parse()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agent := exec.Command(self)
	agent.Env = append(os.Environ(), asAgent+"=1")
	agent.Stderr = os.Stderr
	in, err := agent.StdinPipe()
	if err != nil {
		return err
	}
	out, err := agent.StdoutPipe()
	if err != nil {
		return err
	}
	if err := agent.Start(); err != nil {
		return err
	}
	defer func() { _ = in.Close(); _ = agent.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	pid := agent.Process.Pid
	idle, err := span(pid, 3*time.Second)
	if err != nil {
		return err
	}
	fmt.Printf("no stream: %v\n", idle)
	var t traffic
	ctx, cancel := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	defer func() { cancel(); readers.Wait() }()
	for range *streams {
		conn, err := grpc.NewClient(strings.TrimSpace(line), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStatsHandler(&t))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := open(ctx, &readers, pb.NewGNMIClient(conn), *mode, &t); err != nil {
			return err
		}
	}
	bytes, messages, updates := t.bytes.Load(), t.messages.Load(), t.updates.Load()
	fmt.Printf("at first, each: %d bytes, %d updates in %d messages\n",
		bytes/uint64(*streams), updates/uint64(*streams), messages/uint64(*streams))
	used, err := span(pid, time.Duration(*seconds)*time.Second)
	if err != nil {
		return err
	}
	per := func(now, before uint64) float64 {
		return float64(now-before) / float64(*streams) / used.wall.Seconds()
	}
	fmt.Printf("%d streams, %s: %v\n", *streams, *mode, used)
	fmt.Printf("each, a second: %.0f bytes, %.1f updates in %.2f messages\n",
		per(t.bytes.Load(), bytes), per(t.updates.Load(), updates), per(t.messages.Load(), messages))
	return nil
}

// open opens a stream, waits for its first data, and has it read.
func open(ctx context.Context, readers *sync.WaitGroup, client pb.GNMIClient, mode string, t *traffic) error {
	stream, err := client.Subscribe(ctx)
	if err != nil {
		return err
	}
	elems := func(names ...string) *pb.Path {
		p := &pb.Path{}
		for _, n := range names {
			p.Elem = append(p.Elem, &pb.PathElem{Name: n})
		}
		return p
	}
	l := &pb.SubscriptionList{Encoding: pb.Encoding_PROTO}
	switch mode {
	case "target":
		l.Subscription = []*pb.Subscription{{Path: elems()}}
	case "sample":
		l.Subscription = append(l.Subscription, &pb.Subscription{
			Path: elems("interfaces", "interface", "state", "counters"), Mode: pb.SubscriptionMode_SAMPLE, SampleInterval: uint64(time.Second),
		})
		fallthrough
	default:
		for _, leaf := range []string{"oper-status", "admin-status", "ifindex", "last-change"} {
			l.Subscription = append(l.Subscription, &pb.Subscription{
				Path: elems("interfaces", "interface", "state", leaf), Mode: pb.SubscriptionMode_ON_CHANGE,
			})
		}
	}
	if err := stream.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Subscribe{Subscribe: l}}); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		t.updates.Add(uint64(len(m.GetUpdate().GetUpdate())))
		if m.GetSyncResponse() {
			break
		}
	}
	readers.Go(func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			t.updates.Add(uint64(len(m.GetUpdate().GetUpdate())))
		}
	})
	return nil
}

// use is what a process has used.
type use struct {
	wall, cpu time.Duration
	resident  uint64 // bytes, at the end
}

func (u use) String() string {
	return fmt.Sprintf("%.1f ms of CPU a second, %.1f MiB", float64(u.cpu.Microseconds())/u.wall.Seconds()/1000, float64(u.resident)/(1<<20))
}

// span reports what a process uses in a while.
func span(pid int, d time.Duration) (use, error) {
	begin := time.Now()
	before, _, err := stat(pid)
	if err != nil {
		return use{}, err
	}
	<-time.After(d)
	after, resident, err := stat(pid)
	return use{time.Since(begin), after - before, resident}, err
}

// stat reads /proc/PID/stat (proc(5)): the time spent, and the memory that is resident.
func stat(pid int) (time.Duration, uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	var n [3]uint64
	for i, at := range []int{11, 12, 21} { // utime, stime, rss
		if n[i], err = strconv.ParseUint(fields[at], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return time.Duration(n[0]+n[1]) * 10 * time.Millisecond, n[2] * uint64(os.Getpagesize()), nil
}
