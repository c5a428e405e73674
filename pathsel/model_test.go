package pathsel

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

func TestModelByHand(t *testing.T) {
	m := Model{HostMessage: 10 * time.Microsecond, SwitchHop: time.Microsecond, SwitchReduce: 8e9, HostReduce: 1e9, Bandwidth: 8e9}
	trip := Trip{Members: 5, Latency: 4 * time.Microsecond, Bandwidth: 8e9, Children: 4, Bytes: 1_000_000}
	// 2*(10+4) us + 1 MB * (1/1e9 + 4/8e9) s
	if got, want := m.Switches(trip), 1528*time.Microsecond; got != want {
		t.Errorf("switches: %v, want %v", got, want)
	}
	// 2*3*(10+8) us + 1 MB * 3 * (1/1e9 + 1/1e9) s
	if got, want := m.Hosts(trip), 6108*time.Microsecond; got != want {
		t.Errorf("hosts: %v, want %v", got, want)
	}
	trip.Collective = Barrier
	if m.Switches(trip) != 28*time.Microsecond || m.Hosts(trip) != 108*time.Microsecond {
		t.Errorf("a barrier: %v and %v", m.Switches(trip), m.Hosts(trip))
	}
	trip.Collective = Reduce
	if got, want := m.Switches(trip), 1514*time.Microsecond; got != want {
		t.Errorf("reduce: %v, want %v", got, want)
	}
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 1024: 10, 1025: 11} {
		if Rounds(n) != want {
			t.Errorf("%d members: %d rounds, want %d", n, Rounds(n), want)
		}
	}
}

// TestFitFindsTheModel makes rows by a model and finds it again from them, also
// where they are off by up to 2 %.
func TestFitFindsTheModel(t *testing.T) {
	truth := Model{HostMessage: 37 * time.Microsecond, SwitchHop: 9 * time.Microsecond, SwitchReduce: 3e9, HostReduce: 7e8, Bandwidth: 10e9}
	base := DefaultModel()
	for _, noise := range []float64{0, 0.02} {
		rng := rand.New(rand.NewPCG(51, 52))
		var rows []Measured
		var hops []int
		for range 200 {
			depth := 1 + rng.IntN(3)
			wire := time.Duration(depth) * 500 * time.Nanosecond
			trip := Trip{
				Members: 2 + rng.IntN(60), Bandwidth: 10e9, Children: 2 + rng.IntN(16), Bytes: int64(64) << rng.IntN(16),
				Latency: wire + time.Duration(depth)*truth.SwitchHop,
			}
			r := Measured{Trip: trip, OverHosts: rng.IntN(2) == 0, Took: truth.Switches(trip)}
			if r.OverHosts {
				r.Took = truth.Hosts(trip)
			}
			r.Took = time.Duration(float64(r.Took) * (1 + noise*(2*rng.Float64()-1)))
			r.Latency = wire + time.Duration(depth)*base.SwitchHop
			rows, hops = append(rows, r), append(hops, depth)
		}
		f, err := Fit(base, hops, rows)
		if err != nil {
			t.Fatal(err)
		}
		for name, ratio := range map[string]float64{
			"host message": f.HostMessage.Seconds() / truth.HostMessage.Seconds(), "switch hop": f.SwitchHop.Seconds() / truth.SwitchHop.Seconds(),
			"switch reduce": f.SwitchReduce / truth.SwitchReduce, "host reduce": f.HostReduce / truth.HostReduce,
		} {
			if math.Abs(ratio-1) > 0.001+2*noise {
				t.Errorf("noise %v: the %s is %v times what it was", noise, name, ratio)
			}
		}
		if f.Worst > 0.001+1.5*noise || f.Mean > f.Worst || f.Rows != 200 {
			t.Errorf("noise %v: off by %v at worst, %v on average", noise, f.Worst, f.Mean)
		}
	}
}

// TestFitKnowsSpeeds fits the rest of a model to rows of switches and hosts whose own
// speeds are known: these are not fitted.
func TestFitKnowsSpeeds(t *testing.T) {
	truth, base := DefaultModel(), DefaultModel()
	truth.HostMessage, truth.SwitchReduce, truth.HostReduce = 30*time.Microsecond, 1e9, 1e9
	var rows []Measured
	var hops []int
	for i := range 40 {
		r := Measured{OverHosts: i%2 == 0, Trip: Trip{
			Members: 2 + i, Latency: 5 * time.Microsecond, Bandwidth: 100e9, Children: 4, Bytes: int64(i) << 16, Collective: Allreduce,
			Reduce: float64(1+i) * 1e8, HostReduce: float64(1+i) * 2e8, Packet: time.Duration(i) * time.Microsecond,
		}}
		r.Took = truth.Switches(r.Trip)
		if r.OverHosts {
			r.Took = truth.Hosts(r.Trip)
		}
		rows, hops = append(rows, r), append(hops, 2)
	}
	f, err := Fit(base, hops, rows)
	if err != nil || f.Worst > 0.001 || math.Abs(f.HostMessage.Seconds()/truth.HostMessage.Seconds()-1) > 0.001 ||
		math.Abs(f.SwitchReduce/base.SwitchReduce-1) > 1e-9 || math.Abs(f.HostReduce/base.HostReduce-1) > 1e-9 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestFitLeavesWhatItCannotKnow keeps the speed of hosts where only switches
// were measured, and refuses rows that say nothing.
func TestFitLeavesWhatItCannotKnow(t *testing.T) {
	base := DefaultModel()
	row := Measured{Trip: Trip{Members: 4, Latency: time.Microsecond, Bandwidth: 1e9, Children: 2, Bytes: 1000}, Took: time.Millisecond}
	big := row
	big.Bytes, big.Took = 1_000_000, 20*time.Millisecond
	f, err := Fit(base, []int{0, 0}, []Measured{row, big})
	if err != nil || math.Abs(f.HostReduce/base.HostReduce-1) > 1e-9 || f.SwitchHop != base.SwitchHop {
		t.Errorf("%+v, %v", f, err)
	}
	if f.Worst > 0.01 {
		t.Errorf("two rows and two unknowns, and off by %v", f.Worst)
	}
	row.Took = 0
	for _, rows := range [][]Measured{nil, {row}} {
		if _, err := Fit(base, make([]int, len(rows)), rows); !errors.Is(err, ErrModel) {
			t.Errorf("%v: %v", rows, err)
		}
	}
	base.HostReduce = 0
	if _, err := Fit(base, []int{0}, []Measured{big}); !errors.Is(err, ErrModel) {
		t.Errorf("a model without a speed: %v", err)
	}
}

func TestHostsAreFaster(t *testing.T) {
	g := fabric(t, "leaf-spine:2,2,1")
	slow := DefaultModel()
	slow.SwitchReduce, slow.SwitchHop = 1e6, time.Millisecond
	p, err := NewPlanner(g, Config{Model: slow})
	if err != nil {
		t.Fatal(err)
	}
	req := usual(g.AllHosts())
	req.Bytes = 1 << 20
	if plan, err := p.Plan(g.View(), nil, req); err != nil || plan.Forecast.Hosts >= plan.Forecast.Switches {
		t.Fatalf("not asked: %+v, %v", plan.Forecast, err)
	}
	req.Hosts = true
	_, err = p.Plan(g.View(), nil, req)
	var faster *HostsFaster
	if !errors.As(err, &faster) || !errors.Is(err, ErrNoTree) || faster.Hosts >= faster.Switches || faster.Plan.Tree.Root() == topology.NoNode {
		t.Fatalf("%v", err)
	}
	if _, err := planner(t, g).Plan(g.View(), nil, req); err != nil {
		t.Errorf("fast switches: %v", err)
	}
}
