package lldp

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// BenchmarkLinkUp is the time from a cable that comes up to the neighbour that is known at
// its other end, as another process reads it.
func BenchmarkLinkUp(b *testing.B) {
	x, y := newNodeEvery(b, 500*time.Millisecond, "leaf0", lldpdu.Switch), newNodeEvery(b, 500*time.Millisecond, "h0", lldpdu.Host)
	cable(x.space, "p1", 1, y.space, "eth0", 2)
	x.await("leaf0 hears h0", func(all map[string]Port) bool { return hears(all, "p1", "h0") })
	for b.Loop() {
		b.StopTimer()
		y.set("eth0", y.net.LinkSetDown)
		x.await("down", func(all map[string]Port) bool { return len(all["p1"].Neighbors) == 0 })
		b.StartTimer()
		y.set("eth0", y.net.LinkSetUp)
		x.await("up", func(all map[string]Port) bool { return hears(all, "p1", "h0") })
	}
}

// BenchmarkPorts is what a process with many ports, each with a neighbour of Tributary,
// spends in a second, and what it sends.
func BenchmarkPorts(b *testing.B) {
	for _, ports := range []int{1, 64} {
		b.Run(fmt.Sprintf("ports=%d", ports), func(b *testing.B) {
			x, y := newNodeEvery(b, 500*time.Millisecond, "leaf0", lldpdu.Switch), newNodeEvery(b, 500*time.Millisecond, "spine0", lldpdu.Switch)
			for i := range ports {
				cable(x.space, fmt.Sprint("p", i), byte(2*i), y.space, fmt.Sprint("p", i), byte(2*i+1))
			}
			x.await("all are known", func(all map[string]Port) bool {
				known := 0
				for _, p := range all {
					if p.Latency > 0 {
						known++
					}
				}
				return known == ports
			})
			const seconds = 10
			pass := func(d time.Duration) { _ = runner.Pause(b.Context(), d) }
			for b.Loop() {
				pass(time.Second) // the first requests are more
				frames, sent, spent := x.sent(), x.bytes(), x.spent()
				pass(seconds * time.Second)
				b.ReportMetric(float64(x.spent()-spent)/seconds/float64(time.Millisecond), "cpu-ms/s")
				b.ReportMetric(float64(x.sent()-frames)/seconds/float64(ports), "frames/s/port")
				b.ReportMetric(float64(x.bytes()-sent)/seconds/float64(ports), "B/s/port")
			}
		})
	}
}

// spent returns the processor time of a node.
func (n *node) spent() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+2:])
	var ticks int
	for _, f := range fields[11:13] { // user, system
		x, err := strconv.Atoi(string(f))
		if err != nil {
			n.t.Fatal(err)
		}
		ticks += x
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func (n *node) sent() uint64 {
	return n.sum(func(s *netlink.LinkStatistics) uint64 { return s.TxPackets })
}

func (n *node) bytes() uint64 {
	return n.sum(func(s *netlink.LinkStatistics) uint64 { return s.TxBytes })
}

// sum adds up what the interfaces of a node have counted.
func (n *node) sum(of func(*netlink.LinkStatistics) uint64) (sum uint64) {
	all, err := n.net.LinkList()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, l := range all {
		sum += of(l.Attrs().Statistics)
	}
	return sum
}

// BenchmarkFlood is what a process spends in a second in which a port hears as many forged
// neighbours as another process can send.
func BenchmarkFlood(b *testing.B) {
	x, y := newNodeEvery(b, 500*time.Millisecond, "leaf0", lldpdu.Switch), newNodeEvery(b, 500*time.Millisecond, "h0", lldpdu.Host)
	cable(x.space, "p1", 1, y.space, "eth0", 2)
	x.await("leaf0 hears h0", func(all map[string]Port) bool { return hears(all, "p1", "h0") })
	for b.Loop() {
		spent, sent, begun := x.spent(), y.sent(), time.Now()
		y.order(`forge eth0 300000 ""`)
		for y.sent() < sent+300000 {
			_ = runner.Pause(b.Context(), 10*time.Millisecond)
		}
		took := time.Since(begun).Seconds()
		b.ReportMetric((x.spent()-spent).Seconds()*1000/took, "cpu-ms/s")
		b.ReportMetric(300000/took, "frames/s")
	}
}
