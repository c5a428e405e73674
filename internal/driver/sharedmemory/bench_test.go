//go:build linux

package sharedmemory

import (
	"context"
	"math"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/node"
)

// partnerVariable is set in the process of TestPartner: the name of an offer, and how it waits.
const partnerVariable = "TRIBUTARY_TEST_PARTNER"

var pair = Shape{Processes: 2, Slots: 1, Area: 64}

// ways are how a process waits for another one.
var ways = map[string]func(b *Board, may func() bool){
	"eventfd": (*Board).Wait,
	"futex":   func(b *Board, may func() bool) { b.Sleep(may) },
}

// handOver publishes a number and waits until the other process has.
func handOver(b *Board, i uint64, wait func(b *Board, may func() bool), isFirst bool) {
	if isFirst {
		b.Publish(node.Copied, i)
		b.Wake(node.All)
	}
	has := func() bool { return b.Count(node.Copied, 1-b.own) >= i }
	for !has() {
		wait(b, has)
	}
	if !isFirst {
		b.Publish(node.Copied, i)
		b.Wake(node.All)
	}
}

// TestPartner is the other process of BenchmarkHandOver.
func TestPartner(t *testing.T) {
	name := os.Getenv(partnerVariable)
	if name == "" {
		t.Skip("it is for BenchmarkHandOver")
	}
	g, err := Take(t.Context(), name, pair, 1)
	if err != nil {
		t.Fatal(err)
	}
	wait := ways[os.Getenv(partnerVariable+"_WAITS")]
	for i := uint64(1); g.Count(node.Copied, 0) < math.MaxUint64; i++ {
		handOver(g.Board, i, wait, false)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkHandOver hands a number over to another process and back.
//
// cpu-us/op is the processor time of both.
func BenchmarkHandOver(b *testing.B) {
	for by, wait := range ways {
		b.Run("by="+by, func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			defer cancel()
			o, err := MakeOffer(pair)
			if err != nil {
				b.Fatal(err)
			}
			partner := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPartner$")
			partner.Env = append(os.Environ(), partnerVariable+"="+o.Name(), partnerVariable+"_WAITS="+by)
			if err := partner.Start(); err != nil {
				b.Fatal(err)
			}
			g, err := o.Accept(ctx)
			if err != nil {
				b.Fatal(err)
			}
			i, before := uint64(0), processorTime(syscall.RUSAGE_SELF)
			for b.Loop() {
				i++
				handOver(g.Board, i, wait, true)
			}
			used := processorTime(syscall.RUSAGE_SELF) - before
			g.Publish(node.Copied, math.MaxUint64)
			g.Wake(node.All)
			before = processorTime(syscall.RUSAGE_CHILDREN)
			if err := partner.Wait(); err != nil {
				b.Error(err)
			}
			used += processorTime(syscall.RUSAGE_CHILDREN) - before
			b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-us/op")
			if err := g.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}

func processorTime(who int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
