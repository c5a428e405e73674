package peering

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// idle returns a core that n hosts have connected to, one after the other within a second.
func idle(n int) *trial {
	w := newTrial(nil)
	for i := range n {
		w.pass(time.Second / time.Duration(n))
		source := prefix(i)
		w.step(Input{Kind: Arrived, ID: ID(i + 1), Source: source})
		w.step(greet(ID(i+1), fmt.Sprintf("host-%d", i), 0, 1))
	}
	return w
}

// wait has time pass with nothing to do but to look at connections: something has come on all
// of them. It returns how often the core was stepped.
func (t *trial) wait(d time.Duration) (steps int) {
	end := t.now.Add(d)
	for t.c.Deadline() <= end {
		t.now = max(t.now, t.c.Deadline())
		steps++
		t.step()
		var samples []Input
		for _, a := range t.out.Actions {
			if a.Do == Check {
				samples = append(samples, Input{Kind: Sampled, ID: a.ID})
			}
		}
		t.step(samples...)
	}
	t.now = end
	return steps
}

// TestIdleCostsNothingPerOther: to look at a connection takes no memory of the number of all.
func TestIdleCostsNothingPerOther(t *testing.T) {
	const most = 4000
	sizes := []int{most / 16, most}
	var each []uint64
	for _, n := range sizes {
		w := idle(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		steps := w.wait(2 * time.Second)
		runtime.ReadMemStats(&after)
		if steps < n || steps > 3*n {
			t.Errorf("%d steps for %d connections", steps, n)
		}
		each = append(each, (after.TotalAlloc-before.TotalAlloc)/uint64(steps))
	}
	if slices.Max(each) > 4096 {
		t.Errorf("%d bytes a step with %d connections", each, sizes)
	}
}

func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{1, 20, 200, 1000, 4000, 16000} {
		b.Run(fmt.Sprintf("connections=%d", n), func(b *testing.B) {
			w := idle(n)
			for b.Loop() {
				w.wait(2 * time.Second)
			}
		})
	}
}

// greet is the greeting of a host in its first incarnation.
func greet(id ID, from string, class uint8, call uint64) Input {
	return Input{Kind: Greeted, ID: id, Peer: HostOf(from), Greeting: greeting.Greeting{From: from, Incarnation: 1, To: "a", Class: class, Call: call}}
}

// BenchmarkConnect is the steps of a connection from its first byte to its end.
func BenchmarkConnect(b *testing.B) {
	w := newTrial(nil)
	source, broke := prefix(1), errors.New("it broke")
	var in [3]Input
	id := ID(0)
	b.ReportAllocs()
	for b.Loop() {
		id++
		in[0] = Input{Kind: Arrived, ID: id, Source: source}
		in[1] = greet(id, "b", 0, uint64(id))
		in[2] = Input{Kind: Ended, ID: id, Err: broke}
		w.out.Reset()
		w.c.Step(w.now, in[:], &w.out)
	}
}
