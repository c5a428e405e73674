package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// rough is a config in which everything happens within a millisecond.
func rough(seed uint64) Config {
	return Config{
		Seed:      seed,
		Link:      Link{Delay: time.Microsecond, Jitter: 2 * time.Microsecond, Loss: 0.1, Duplicate: 0.1, Reorder: 0.1, Stray: 20 * time.Microsecond},
		Reconnect: 10 * time.Microsecond,
		Death:     15 * time.Microsecond,
		Patience:  60 * time.Microsecond,
		Poison:    true,
	}
}

// Whatever faults a world goes through, order and counters are right at every
// event, it comes to rest, and then nothing is in flight and who wants to be
// connected is.
func TestCrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := rough(rapid.Uint64().Draw(t, "seed"))
		cfg.Service = time.Duration(rapid.IntRange(0, 2000).Draw(t, "service"))
		if rapid.Bool().Draw(t, "patient") {
			cfg.Patience = 0
		}
		c := newCrowd(cfg, rapid.IntRange(2, 5).Draw(t, "nodes"), 300*time.Microsecond)
		for _, f := range rapid.SliceOfN(rapid.Custom(drawFault), 0, 12).Draw(t, "faults") {
			c.At(f.at, "fault", func() { c.fault(f.kind, f.which) })
		}
		c.At(core.Time(260*time.Microsecond), "heal", c.Heal)
		var failure error
		if err := c.Await(time.Hour, func() bool {
			failure = c.check()
			return failure != nil || c.next() == core.Never
		}); err != nil {
			t.Fatal(err)
		}
		if failure != nil {
			t.Fatal(failure)
		}
		for transport := range Transport(transports) {
			if n := c.Total(transport).InFlight(); n > 0 {
				t.Fatal(c.Fail(fmt.Errorf("%d of transport %d in flight at rest", n, transport)))
			}
		}
		for _, conn := range c.conns {
			p := c.paths[conn.paths[0]]
			if conn.state == dialing || conn.state == broken || conn.state == up && !c.Connected(p.from, p.to) {
				t.Fatal(c.Fail(fmt.Errorf("%d and %d at rest: %+v", p.from, p.to, *conn)))
			}
		}
	})
}

type fault struct {
	at          core.Time
	kind, which int
}

func drawFault(t *rapid.T) fault {
	return fault{
		core.Time(rapid.IntRange(0, 250_000).Draw(t, "at")),
		rapid.IntRange(0, 7).Draw(t, "kind"),
		rapid.IntRange(0, 99).Draw(t, "which"),
	}
}

// Every fault at every event of a scenario.
func TestFaultAtEveryEvent(t *testing.T) {
	disturbances := 0
	for kind := range 8 {
		err := Sweep(1, func(index uint64) (uint64, error) {
			cfg := rough(uint64(kind))
			cfg.Service = 300
			c := newCrowd(cfg, 3, 60*time.Microsecond)
			c.AtEvent(index, "fault", func() {
				disturbances++
				c.fault(kind, int(index))
				c.After(30*time.Microsecond, "heal", c.Heal)
			})
			if err := c.Run(); err != nil {
				return 0, err
			}
			return c.Events(), c.check()
		})
		if err != nil {
			t.Error(err)
		}
	}
	if disturbances < 500 {
		t.Errorf("%d disturbances, want 500 at least", disturbances)
	}
}

func TestSweepReportsTheEvent(t *testing.T) {
	wrong := errors.New("wrong")
	var asked []uint64
	err := Sweep(2, func(index uint64) (uint64, error) {
		asked = append(asked, index)
		if index == 4 {
			return 0, wrong
		}
		return 10, nil
	})
	if !errors.Is(err, wrong) || err.Error() != "sim: disturbed at event 4 of 10: wrong" {
		t.Errorf("error %v", err)
	}
	if fmt.Sprint(asked) != fmt.Sprint([]uint64{Undisturbed, 0, 2, 4}) {
		t.Errorf("asked for %v", asked)
	}
}

// story runs a crowd through random faults and returns its hash and trace.
func story(t *testing.T, seed uint64, trace *lines) uint64 {
	t.Helper()
	cfg := rough(seed)
	cfg.Service = 500
	if trace != nil {
		cfg.Trace = trace
	}
	c := newCrowd(cfg, 5, 300*time.Microsecond)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 10 {
		kind, which := r.IntN(8), r.IntN(100)
		c.AtEvent(r.Uint64N(500), "fault", func() { c.fault(kind, which) })
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	return c.Hash()
}

// lines takes a trace.
type lines struct{ text []byte }

func (l *lines) Write(b []byte) (int, error) {
	l.text = append(l.text, b...)
	return len(b), nil
}

func TestSameSeedSameTrace(t *testing.T) {
	hashes := map[uint64]uint64{}
	for seed := range uint64(50) {
		var one, two lines
		hash := story(t, seed, &one)
		if again := story(t, seed, &two); again != hash || string(one.text) != string(two.text) {
			t.Errorf("seed %d: hashes %x and %x", seed, hash, again)
		}
		if quiet := story(t, seed, nil); quiet != hash {
			t.Errorf("seed %d: hash %x, and %x with a trace", seed, quiet, hash)
		}
		if other, ok := hashes[hash]; ok {
			t.Errorf("seeds %d and %d have the same hash", seed, other)
		}
		hashes[hash] = seed
		if len(one.text) == 0 {
			t.Errorf("seed %d: no trace", seed)
		}
	}
}
