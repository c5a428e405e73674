package rails

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMeter holds a meter against the list of all arrivals.
func TestMeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type arrival struct {
			at    time.Duration
			bytes int
		}
		times := rapid.SliceOfN(rapid.Int64Range(0, int64(time.Second)), 1, 50).Draw(t, "times")
		slices.Sort(times)
		var all []arrival
		var m Meter
		var gap time.Duration
		for i, at := range times {
			all = append(all, arrival{time.Duration(at), rapid.IntRange(1, 1<<20).Draw(t, "bytes")})
			m.Add(all[i].at, all[i].bytes)
			if i > 0 {
				gap = max(gap, all[i].at-all[i-1].at)
			}
		}
		if m.Gap != gap || m.First != all[0].at || m.Last != all[len(all)-1].at {
			t.Fatalf("%+v, want a gap of %v", m, gap)
		}
		from := BinTime * time.Duration(rapid.IntRange(0, 100).Draw(t, "from"))
		to := from + BinTime*time.Duration(rapid.IntRange(1, 100).Draw(t, "bins"))
		bits := 0.0
		for _, a := range all {
			if a.at >= from && a.at < to {
				bits += float64(a.bytes) * 8
			}
		}
		if want := bits / (to - from).Seconds(); math.Abs(m.Rate(from, to)-want) > 1e-6*want {
			t.Fatalf("%v bit/s from %v to %v, want %v", m.Rate(from, to), from, to, want)
		}
	})
}

func TestReaches(t *testing.T) {
	var m Meter
	for i := range 200 { // 8 Mbit/s, half a second of nothing, 8 Mbit/s
		if at := time.Duration(i) * 10 * time.Millisecond; at < 500*time.Millisecond || at >= time.Second {
			m.Add(at, 10_000)
		}
	}
	if at, ok := m.Reaches(600*time.Millisecond, 100*time.Millisecond, 7e6); !ok || at < time.Second || at > 1100*time.Millisecond {
		t.Errorf("%v, %v", at, ok)
	}
	if at, ok := m.Reaches(0, 100*time.Millisecond, 9e6); ok {
		t.Errorf("a rate that there never was, at %v", at)
	}
	if m.Rate(0, 0) != 0 || m.Rate(time.Hour, 2*time.Hour) != 0 || (&Meter{}).Mean(0) != 0 {
		t.Error("rates of nothing")
	}
	c := cutOf(Schedule{{At: 500 * time.Millisecond}, {At: time.Second}}, &Ledger{}, &m)
	if c.Before < 7 || c.During != 0 || c.After < 7 || c.Gap != 510*time.Millisecond || c.Back < 0 {
		t.Errorf("%+v", c)
	}
}
