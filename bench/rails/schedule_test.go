package rails

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

func TestParse(t *testing.T) {
	got, err := Parse("rail1 down@2s up@5s; h1.rail0 slow:20mbit@3s up@4s;", 2, 2)
	want := Schedule{
		{2 * time.Second, AllHosts, 1, netlab.Silent, 0}, {3 * time.Second, 1, 0, netlab.Works, 20_000_000},
		{4 * time.Second, 1, 0, netlab.Works, 0}, {5 * time.Second, AllHosts, 1, netlab.Works, 0},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if first, last := got.Bounds(); first != 2*time.Second || last != 5*time.Second {
		t.Errorf("from %v to %v", first, last)
	}
	for _, text := range []string{
		"rail1", "rail2 down@1s", "rail-1 down@1s", "h2.rail0 down@1s", "x.rail0 down@1s", "rail0 down", "rail0 sideways@1s",
		"rail0 down@soon", "rail0 down@-1s", "rail0 slow:fast@1s", "rail0 slow:unshaped@1s",
	} {
		if _, err := Parse(text, 2, 2); !errors.Is(err, ErrSchedule) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s, err := Parse("", 2, 2); err != nil || len(s) != 0 {
		t.Errorf("nothing: %v, %v", s, err)
	}
}

// chaos draws what random schedules are like.
func chaos(t *rapid.T) Chaos {
	times := rapid.Int64Range(int64(time.Millisecond), int64(5*time.Second))
	c := Chaos{
		Seed: rapid.Uint64().Draw(t, "seed"), Hosts: rapid.IntRange(1, 5).Draw(t, "hosts"),
		Rates:   rapid.SliceOfN(rapid.SampledFrom([]int64{0, 100_000_000, 200_000_000}), 2, 4).Draw(t, "rates"),
		Lasting: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "lasting")),
		Least:   time.Duration(times.Draw(t, "least")), Pause: time.Duration(times.Draw(t, "pause")),
	}
	c.Longest = c.Least + time.Duration(times.Draw(t, "longest"))
	return c
}

// TestRandom expects of random schedules that any two hosts always have a rail that
// works, but for a blink, and works for the pause before the next fault; that all is well
// in the end; that a seed repeats them; and that Parse reads what String writes.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := chaos(t)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		s := c.Random()
		if !reflect.DeepEqual(s, c.Random()) {
			t.Fatal("not repeated")
		}
		again, err := Parse(s.String(), c.Hosts, len(c.Rates))
		if err != nil || !slices.Equal(again, s) {
			t.Fatalf("%v, %v, want %v", again, err, s)
		}
		broken := map[[2]int]bool{} // by host and rail
		well := -c.Pause            // since when nothing is broken
		for len(s) > 0 {
			now, wasWell := s[0].At, len(broken) == 0
			for ; len(s) > 0 && s[0].At == now; s = s[1:] {
				for host := range c.Hosts {
					if s[0].Host == host || s[0].Host == AllHosts {
						delete(broken, [2]int{host, s[0].Rail})
						if s[0].Fault != netlab.Works || s[0].Slow > 0 {
							broken[[2]int{host, s[0].Rail}] = true
						}
					}
				}
			}
			rails := map[int]bool{}
			for link := range broken {
				rails[link[1]] = true
			}
			switch {
			case now > c.Lasting || len(s) > 0 && s[0].At < now:
				t.Fatalf("an event at %v before one at %v, of %v", now, s[0].At, c.Lasting)
			case wasWell && len(broken) > 0 && now < well+c.Pause && well > 0:
				t.Fatalf("a fault %v after the last one", now-well)
			case len(rails) > 1 && (len(broken) < c.Hosts*len(c.Rates) || s[0].At-now > c.Blink):
				t.Fatalf("%d rails are broken at %v", len(rails), now)
			case len(broken) == 0:
				well = now
			}
		}
		if len(broken) > 0 {
			t.Fatalf("broken in the end: %v", broken)
		}
	})
	bad := Chaos{Hosts: 2, Rates: []int64{0}, Least: 1, Longest: 1, Pause: 1}
	if err := bad.Validate(); !errors.Is(err, ErrSchedule) {
		t.Errorf("one rail: %v", err)
	}
}
