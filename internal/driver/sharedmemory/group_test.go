//go:build linux

package sharedmemory

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/node"
)

// share makes the memory of several processes, all of them this one.
func share(t *testing.T, s Shape) []*Group {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o, err := MakeOffer(s)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]*Group, s.Processes)
	var tasks sync.WaitGroup
	for p := 1; p < s.Processes; p++ {
		tasks.Go(func() {
			var err error
			if all[p], err = Take(ctx, o.Name(), s, p); err != nil {
				t.Error(err)
			}
		})
	}
	if all[0], err = o.Accept(ctx); err != nil {
		t.Error(err)
	}
	if tasks.Wait(); t.Failed() {
		t.FailNow()
	}
	return all
}

// mappings returns how often memory is mapped here.
func mappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(maps), "memfd:tributary")
}

// TestShare: what one process writes the others read; all is freed in the end.
func TestShare(t *testing.T) {
	s := Shape{Processes: 3, Slots: 2, Area: 8192}
	all := share(t, s)
	if n := mappings(t); n != 3 {
		t.Errorf("%d mappings", n)
	}
	for p, g := range all {
		g.Watch(func(process int) { t.Errorf("process %d has died for %d", process, p) })
		copy(g.Memory(3, p, 8192)[8191:], []byte{byte(p + 1)})
		g.Publish(node.Read, uint64(p+7))
		*g.Tag(3, p) = uint64(p + 9)
	}
	all[0].Publish(node.Finished, 5)
	copy(all[0].Note(3), "done")
	for _, g := range all {
		for p := range all {
			if got := g.Memory(3, p, 8192)[8191]; got != byte(p+1) || g.Count(node.Read, p) != uint64(p+7) || *g.Tag(3, p) != uint64(p+9) {
				t.Errorf("process %d: %d", p, got)
			}
		}
		if g.Count(node.Finished, 0) != 5 || string(g.Note(3)[:4]) != "done" || g.Memory(2, 0, 8192)[8191] != 0 {
			t.Error("not as written")
		}
	}
	for _, g := range all {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := mappings(t); n != 0 {
		t.Errorf("%d mappings are left", n)
	}
}

// TestWait: two processes hand a number over many times, and none sleeps for ever.
func TestWait(t *testing.T) {
	all := share(t, Shape{Processes: 2, Slots: 1, Area: 64})
	var tasks sync.WaitGroup
	for own, g := range all {
		tasks.Go(func() {
			for i := range uint64(5000) {
				g.Publish(node.Copied, i+1)
				g.Wake(node.All)
				for g.Count(node.Copied, 1-own) <= i {
					g.Wait(func() bool { return g.Count(node.Copied, 1-own) > i })
				}
			}
		})
	}
	tasks.Wait()
	for _, g := range all {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDeath: a connection that ends without a word is a death, and the others wake.
func TestDeath(t *testing.T) {
	all := share(t, Shape{Processes: 3, Slots: 1, Area: 64})
	all[0].Watch(all[0].Mourn)
	_ = all[2].others[0].Close()
	for _, g := range all[:2] {
		isDead := func() bool { _, is := g.Dead(); return is }
		for !isDead() {
			g.Wait(isDead)
		}
		if p, _ := g.Dead(); p != 2 {
			t.Errorf("process %d has died", p)
		}
	}
	for _, g := range all {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRingAfterClose: who starts an operation while its communicator ends may ring once the memory is gone.
func TestRingAfterClose(t *testing.T) {
	for _, g := range share(t, Shape{Processes: 2, Slots: 1, Area: 64}) {
		atomic.StoreUint32(g.Way(), 3)
		if way := g.LastWay(); way != 3 {
			t.Errorf("way %d, want 3", way)
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		for p := range 2 {
			g.Ring(p)
		}
		if way := g.LastWay(); way != 0 {
			t.Errorf("way %d after Close, want 0", way)
		}
	}
}

// TestRefusals: nobody takes memory of another shape, or without an offer.
func TestRefusals(t *testing.T) {
	s := Shape{Processes: 2, Slots: 1, Area: 64}
	o, err := MakeOffer(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		g, err := o.Accept(ctx)
		if err == nil { // the memory went to the one that did not want it
			err = g.Close()
		}
		done <- err
	}()
	if _, err := Take(ctx, o.Name(), s, 2); err == nil {
		t.Error("a process that is none of the group")
	}
	other := s
	other.Area = 128
	if _, err := Take(ctx, o.Name(), other, 1); err == nil || !strings.Contains(err.Error(), "bytes with seals") {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil && !strings.Contains(err.Error(), "context canceled") {
		t.Error(err)
	}
	if _, err := Take(t.Context(), "@tributary-none", s, 1); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}
