package peers

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/bench/turn"
)

// size reads the sizes of these tests.
func size(text string) (int, error) {
	known := map[string]int{"8": 8, "0": 0, "6": 6, "1MiB": 1 << 20}
	n, ok := known[text]
	if !ok {
		return 0, errors.New("no size")
	}
	return n, nil
}

func TestParseRows(t *testing.T) {
	rows, err := ParseRows([]string{"1MiB@unshaped", "8@200mbit", "alltoall:8@unshaped", "1MiB@200mbit"}, size)
	want := []Row{{"", 1 << 20, 0}, {"alltoall", 8, 0}, {"", 8, 200e6}, {"", 1 << 20, 200e6}}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("%v, %v, want %v", rows, err, want)
	}
	if parts := fabrics(rows); !cmp.Equal(parts, [][]Row{want[:2], want[2:]}) {
		t.Errorf("%v", parts)
	}
	for _, texts := range [][]string{nil, {"8"}, {"8@fast"}, {"x@200mbit"}, {"0@unshaped"}, {"6@unshaped"}, {"sum:8@unshaped"}} {
		if _, err := ParseRows(texts, size); !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v", texts, err)
		}
	}
}

func TestConfig(t *testing.T) {
	valid := DefaultConfig()
	valid.Rows = []Row{{Bytes: 8}}
	if err := valid.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"no rows":   func(c *Config) { c.Rows = nil },
		"no rounds": func(c *Config) { c.Rounds = 0 },
		"rounds":    func(c *Config) { c.Rounds = maxRounds + 1 },
		"turn":      func(c *Config) { c.Turn = 0 },
		"limit":     func(c *Config) { c.Limit = c.Turn },
		"peer":      func(c *Config) { c.Peers = []string{"openmpi", "lammpi"} },
	} {
		c := valid
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIterations(t *testing.T) {
	c := Config{Turn: time.Second}
	for took, want := range map[time.Duration][2]int{
		time.Minute: {1, 1}, time.Second: {1, 1}, 300 * time.Millisecond: {3, 1}, 10 * time.Millisecond: {100, 11},
		time.Millisecond: {1000, 20}, time.Microsecond: {maxIterations, 20}, 0: {maxIterations, 20},
	} {
		if n, warmup := c.iterations(took); [2]int{n, warmup} != want {
			t.Errorf("%v: %d and %d, want %v", took, n, warmup, want)
		}
	}
}

// TestOrder has everybody play once a round, and, where there are as many rounds
// as contestants, once at each place.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "contestants")
		first := rapid.IntRange(0, 1000).Draw(t, "round")
		at := make([][]int, n) // the places that each has had
		for round := first; round < first+n; round++ {
			for place, i := range order(n, round) {
				at[i] = append(at[i], place)
			}
		}
		for i, places := range at {
			slices.Sort(places)
			for place, got := range places {
				if got != place {
					t.Fatalf("contestant %d of %d: %v", i, n, places)
				}
			}
		}
	})
}

func TestMissing(t *testing.T) {
	chosen, err := find([]string{"gloo", "openmpi", "gloo"})
	if err != nil || len(chosen) != 2 || chosen[0].name != gloo || chosen[1].name != openMPI {
		t.Fatalf("%v, %v", chosen, err)
	}
	for name, test := range map[string]struct {
		here []string
		text string
	}{
		openMPI: {[]string{"mpirun.openmpi"}, "openmpi lacks mpicc.openmpi; on Debian: apt install openmpi-bin libopenmpi-dev gcc"},
		mpich:   {nil, "mpich lacks mpiexec.hydra and mpicc.mpich; on Debian: apt install mpich libmpich-dev gcc"},
		gloo:    {[]string{"g++"}, "gloo lacks /usr/include/gloo/allreduce.h; on Debian: apt install libgloo-dev g++"},
	} {
		p, err := find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		err = p[0].missing(func(what string) bool { return slices.Contains(test.here, what) })
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
		if err := p[0].missing(func(string) bool { return true }); err != nil {
			t.Errorf("%s is all here: %v", name, err)
		}
	}
	if !installed("go") && !installed("sh") || installed("/nowhere/at/all") || installed("no-such-program") {
		t.Error("what is installed is not known")
	}
}

func TestContestants(t *testing.T) {
	var names []string
	for i := range all {
		for j := range all[i].jobs {
			for _, variant := range all[i].jobs[j].variants {
				names = append(names, all[i].jobs[j].contestant(variant))
			}
		}
	}
	want := []string{"openmpi-default", "openmpi-ring", "openmpi-rabenseifner", "mpich", "gloo-ring", "gloo-bcube"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// TestSources finds each peer's source, and what it includes of ours.
func TestSources(t *testing.T) {
	dir := t.TempDir()
	if err := writeSources(dir); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		text, err := os.ReadFile(filepath.Join(dir, all[i].source))
		if err != nil || !strings.Contains(string(text), `#include "turn.h"`) {
			t.Errorf("%s: %v", all[i].source, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "turn.h")); err != nil {
		t.Error(err)
	}
}

func TestTally(t *testing.T) {
	var s tally
	turnOf := func(right bool, transport string, times ...time.Duration) turn.Outcome {
		return turn.Outcome{Right: right, Transport: transport, User: 4 * time.Microsecond, System: 8 * time.Microsecond, Times: times}
	}
	s.add(turnOf(true, "offload", 3*time.Microsecond, time.Microsecond), 30*time.Microsecond, turn.Request{Warmup: 1, Iterations: 2})
	s.add(turnOf(true, "offload", 2*time.Microsecond, 9*time.Microsecond), 30*time.Microsecond, turn.Request{Warmup: 1, Iterations: 2})
	r := s.result("x", "")
	if r.Name != "x" || r.Iterations != 4 || r.Min != 1 || r.Median != 3 || r.Max != 9 || !r.Right || r.Transport != "offload" ||
		r.User != 2 || r.System != 4 || r.Switches != 10 {
		t.Errorf("%+v", r)
	}
	s.add(turnOf(false, "host-tree", 1), 0, turn.Request{Iterations: 1})
	if r := s.result("x", "it failed"); r.Right || r.Transport != "mixed" || r.Left != "it failed" {
		t.Errorf("%+v", r)
	}
	var nothing tally
	if r := nothing.result("y", "not started"); r.Iterations != 0 || r.Left != "not started" || r.Right {
		t.Errorf("%+v", r)
	}
}
