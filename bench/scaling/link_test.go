package scaling

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/pathsel"
)

// A token bucket sends what a bucket does that is filled byte by byte.
func TestBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Network{Rate: 8e6, Burst: rapid.IntRange(100, 1000).Draw(t, "burst")} // a byte a microsecond
		var p port
		tokens, clock, last := n.Burst, int64(0), int64(0)
		at := int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			at += rapid.Int64Range(0, 400).Draw(t, "gap")
			bytes := rapid.IntRange(1, n.Burst).Draw(t, "bytes")
			for clock = max(clock, last); clock < max(at, last) || tokens < bytes; clock++ {
				tokens = min(tokens+1, n.Burst)
			}
			tokens -= bytes
			last = clock
			if _, got := p.departure(&n, at*1e6, bytes); math.Abs(float64(got-clock*1e6)) > 1e3 {
				t.Fatalf("%d bytes at %d us leave at %d ps, not at %d us", bytes, at, got, clock)
			}
		}
	})
}

// A wire is never faster than its rate, and never idle while something waits.
func TestWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := Network{Rate: rapid.Int64Range(1e6, 400e9).Draw(t, "rate")}
		var p port
		free, at := int64(0), int64(0)
		for range rapid.IntRange(1, 30).Draw(t, "packets") {
			at += rapid.Int64Range(0, 1e6).Draw(t, "gap")
			bytes := rapid.IntRange(1, 9000).Draw(t, "bytes")
			first, last := p.departure(&n, at, bytes)
			if first != max(at, free) || last != first+n.serial(bytes) {
				t.Fatalf("from %d to %d", first, last)
			}
			free = last
		}
	})
}

func TestShapes(t *testing.T) {
	for hosts, want := range map[int]Shape{128: {32, 4}, 1024: {32, 32}, 16384: {32, 32, 16}, 65536: {32, 32, 64}} {
		got, err := Planned(64, hosts)
		if err != nil || len(got) != len(want) || got.Hosts() != hosts {
			t.Errorf("%d hosts: %v, %v, want %v", hosts, got, err, want)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%d hosts: %v, want %v", hosts, got, want)
			}
		}
	}
	if got, err := Planned(64, 100); !errors.Is(err, ErrModel) {
		t.Errorf("100 hosts on leaves of 32: %v, %v", got, err)
	}
	if _, err := Planned(4, 17); !errors.Is(err, ErrModel) {
		t.Error(err)
	}
	if _, err := shapeOf(pathsel.Tree{Vertices: []pathsel.Vertex{{Parent: -1}, {Parent: 0}}, Leaves: []pathsel.Leaf{{Vertex: 0}, {Vertex: 1}}}); !errors.Is(err, ErrModel) {
		t.Errorf("hosts at different depths: %v", err)
	}
	s := Shape{4, 2, 3}
	for b, want := range map[int]int{1: 1, 3: 1, 4: 3, 7: 3, 8: 5, 23: 5} {
		if got := s.between(0, b); got != want {
			t.Errorf("%d switches between 0 and %d, want %d", got, b, want)
		}
	}
}
