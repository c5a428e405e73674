package main

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

func main() {
	sizes := flag.String("sizes", "8,65536,1048576,16777216", "bytes of the vectors, multiples of 4")
	rounds := flag.Int("rounds", 9, "turns of each host")
	turn := flag.Duration("turn", 200*time.Millisecond, "least processor time of a turn")
	cpu := flag.Int("cpu", 0, "processor for all; -1: as the scheduler likes")
	only := flag.String("only", "", "the only host to measure, beside the minimal one")
	flag.Parse()
	var err error
	if flag.Arg(0) == echoes {
		err = echo()
	} else {
		err = run(*sizes, *rounds, *turn, *cpu, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostcost:", err)
		os.Exit(1)
	}
}

// pin starts this program anew on one processor, unless that was done. Threads that are
// there already would keep theirs.
func pin(cpu int) error {
	const done = "HOSTCOST_PINNED"
	if cpu < 0 || os.Getenv(done) != "" {
		return nil
	}
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), done+"=1"))
}

// contestant is a host that takes turns.
type contestant struct {
	name      string
	allreduce func(in, out []float32) error
	perOp     []float64 // nanoseconds of processor time, by round
}

// contestants returns the minimal host, by which ratios are, and all others, and what
// closes them.
func contestants(peer netip.AddrPort) (all []contestant, stop func() error, err error) {
	for _, m := range []struct {
		name           string
		inPlace, lends bool
	}{{"minimal", false, false}, {"minimal, received in place", true, false}, {"minimal, MSG_ZEROCOPY", false, true}} {
		host, err := newMinimal(peer, m.inPlace, m.lends)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, contestant{name: m.name, allreduce: func(in, out []float32) error {
			return host.allreduce(bytesOf(in), bytesOf(out))
		}})
	}
	ctx := context.Background()
	p, err := newProduct(ctx, func(c transport.Conn, isOn *atomic.Bool) transport.Conn {
		return &diverted{Conn: c, isOn: isOn, peer: peer}
	})
	if err != nil {
		return nil, nil, err
	}
	product := contestant{name: "hostlib", allreduce: func(in, out []float32) error { return p.allreduce(ctx, in, out) }}
	return append(all, product), p.fabric.Close, nil
}

func run(sizes string, rounds int, turn time.Duration, cpu int, only string) error {
	if err := pin(cpu); err != nil {
		return err
	}
	peer, stop, err := startEcho()
	if err != nil {
		return err
	}
	defer func() { _ = stop() }()
	hosts, end, err := contestants(peer)
	if err != nil {
		return err
	}
	defer func() { _ = end() }()
	if only != "" {
		hosts = slices.DeleteFunc(hosts, func(h contestant) bool { return h.name != hosts[0].name && h.name != only })
	}
	fmt.Printf("%9s  %-28s %12s %10s %10s %8s\n", "bytes", "host", "ns/op", "ns/batch", "ns/chunk", "ratio")
	for _, text := range strings.Split(sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size <= 0 || size%4 != 0 {
			return fmt.Errorf("a vector of %q bytes", text)
		}
		if err := compare(hosts, size, rounds, turn); err != nil {
			return err
		}
	}
	return nil
}

// compare has all hosts take turns, each round in another order.
func compare(hosts []contestant, size, rounds int, turn time.Duration) error {
	in, out := make([]float32, size/4), make([]float32, size/4)
	for i := range in {
		in[i] = float32(i)
	}
	for i := range hosts {
		hosts[i].perOp = nil
	}
	for round := range rounds {
		for i := range hosts {
			h := &hosts[(i+round)%len(hosts)]
			ns, err := measure(h, in, out, turn)
			if err != nil {
				return fmt.Errorf("%s, %d bytes: %w", h.name, size, err)
			}
			h.perOp = append(h.perOp, ns)
		}
	}
	report(hosts, size)
	return nil
}

// measure returns the processor time of an operation.
func measure(h *contestant, in, out []float32, turn time.Duration) (float64, error) {
	clear(out)
	if err := h.allreduce(in, out); err != nil { // warms up, and is checked
		return 0, err
	}
	if !slices.Equal(in, out) {
		return 0, fmt.Errorf("the result is wrong")
	}
	begun, n := spent(), 0
	for batch := 1; ; batch *= 2 {
		for range batch {
			if err := h.allreduce(in, out); err != nil {
				return 0, err
			}
		}
		if n += batch; spent()-begun >= turn {
			return float64(spent()-begun) / float64(n), nil
		}
	}
}

// spent returns the processor time of this process.
func spent() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic(err) // there is such a clock wherever there is a process
	}
	return time.Duration(t.Nano())
}

func report(hosts []contestant, size int) {
	chunks := (size + chunkBytes - 1) / chunkBytes
	batches := (chunks + batchMost - 1) / batchMost
	base := hosts[0].perOp
	for _, h := range hosts {
		ratios := make([]float64, len(base))
		for i := range ratios {
			ratios[i] = h.perOp[i] / base[i]
		}
		ns := median(h.perOp)
		fmt.Printf("%9d  %-28s %12.0f %10.0f %10.1f %8.2f\n", size, h.name, ns, ns/float64(batches), ns/float64(chunks), median(ratios))
	}
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}
