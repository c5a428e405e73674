package neighbor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// oracle is the table of one port, computed anew at each question from all that was heard.
type oracle struct {
	now   core.Time
	heard []heardThen
}

type heardThen struct {
	at core.Time
	a  lldpdu.Announcement
}

// row is a neighbour in the oracle's table.
type row struct {
	a           lldpdu.Announcement
	first, last core.Time
}

func (o *oracle) table() (rows []row) {
	age := func(now core.Time) {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.last.Add(time.Duration(r.a.TTL)*time.Second) <= now })
	}
	for _, h := range o.heard {
		age(h.at)
		i := slices.IndexFunc(rows, func(r row) bool { return r.a.Chassis == h.a.Chassis && r.a.Port == h.a.Port })
		if h.a.TTL == 0 {
			if i >= 0 {
				rows = slices.Delete(rows, i, i+1)
			}
			continue
		}
		if i >= 0 {
			rows[i].a, rows[i].last = h.a, h.at
			continue
		}
		if len(rows) == MostNeighbors {
			oldest := -1
			for j, r := range rows {
				if h.at.Sub(r.last) >= StaleAfter && (oldest < 0 || r.last < rows[oldest].last) {
					oldest = j
				}
			}
			if oldest < 0 {
				continue
			}
			rows = slices.Delete(rows, oldest, oldest+1)
		}
		rows = append(rows, row{a: h.a, first: h.at, last: h.at})
	}
	age(o.now)
	return rows
}

// TestOracle compares the core with the oracle, and what it puts out with what its
// description promises.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond, 30 * time.Second}).Draw(t, "interval")
		trial := newTrial(Config{Interval: interval, Seed: 1})
		var o oracle
		up, identity := false, 0
		var before string              // the table when a change was reported last
		var announced, all []core.Time // all: with requests
		after := func() {
			for _, s := range trial.out.Sends {
				if s.Delay.Kind == 0 && up {
					announced = append(announced, trial.now)
				}
				if up {
					all = append(all, trial.now)
				}
			}
			table := fmt.Sprint(trial.c.Neighbors(1), trial.c.Delay(1))
			if trial.out.Changed {
				before = table
			} else if table != before && trial.c.Deadline() > trial.now.Add(notifyPause) {
				t.Fatalf("the table has changed, and nobody will know:\n%s\n%s", before, table)
			}
			if wrong := trial.c.check(); wrong != nil {
				t.Fatal(wrong)
			}
		}
		before = fmt.Sprint(trial.c.Neighbors(1), trial.c.Delay(1))
		step := func(in ...Input) {
			trial.step(in...)
			after()
		}
		pass := func(d time.Duration) {
			for end := trial.now.Add(d); ; {
				next := trial.c.Deadline()
				if next > end {
					trial.now = end
					return
				}
				trial.now = max(trial.now, next)
				step()
			}
		}
		for range rapid.IntRange(1, 80).Draw(t, "inputs") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				in := Input{Kind: Set, Port: 1, Up: rapid.IntRange(0, 5).Draw(t, "up") > 0, MAC: [6]byte{2}}
				n := 0
				if rapid.IntRange(0, 5).Draw(t, "other") == 0 {
					n = 1
				}
				in.Own = announcement("me", fmt.Sprint("p", n))
				if up && (!in.Up || identity != n) {
					o.heard, announced, all = nil, nil, nil
				}
				up, identity = in.Up, n
				step(in)
			case 1:
				pass(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			case 2:
				pass(time.Duration(rapid.IntRange(0, 70).Draw(t, "s")) * time.Second)
			default:
				a := announcement(rapid.SampledFrom([]string{"a", "b", "c", "me"}).Draw(t, "chassis"), fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "port")))
				a.TTL = rapid.SampledFrom([]uint16{0, 1, 2, 120, 65535}).Draw(t, "TTL")
				if rapid.Bool().Draw(t, "own") {
					a.Tributary = lldpdu.Tributary{Role: lldpdu.Host, Name: "h"}
				}
				pdu, err := a.Append(nil)
				if err != nil {
					t.Fatal(err)
				}
				if up {
					o.heard = append(o.heard, heardThen{trial.now, a})
				}
				step(Input{Kind: Heard, Port: 1, Data: pdu, MAC: [6]byte{2, 5: byte(rapid.IntRange(7, 8).Draw(t, "mac"))}})
			}
			o.now = trial.now
			var want, got []string
			for _, r := range o.table() {
				want = append(want, fmt.Sprint(r.a))
			}
			for _, n := range trial.c.Neighbors(1) {
				got = append(got, fmt.Sprint(n.Announcement))
				if n.Loop != (n.Chassis.Value == "me") {
					t.Fatalf("%v is a loop: %v", n.Announcement, n.Loop)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("neighbours\n%v\nwant\n%v", got, want)
			}
		}
		checkPace(t, trial.c.interval, announced, all, up, trial.now)
	})
}

// checkPace: a port that is up announces itself in each interval, and no oftener in the
// long run than twice, or twice a second while it hears new neighbours.
func checkPace(t *rapid.T, interval time.Duration, announced, all []core.Time, up bool, now core.Time) {
	for i := 1; i < len(all); i++ {
		if gap := all[i].Sub(all[i-1]); gap > interval {
			t.Fatalf("%v between two announcements, want at most %v", gap, interval)
		}
	}
	if len(announced) == 0 {
		return
	}
	if last := now.Sub(all[len(all)-1]); up && last > interval {
		t.Fatalf("no announcement for %v, want one in %v", last, interval)
	}
	span := now.Sub(announced[0])
	if most := 2*int(span/min(interval, fastInterval)) + maxCredit + 2; len(announced) > most {
		t.Fatalf("%d announcements in %v, want at most %d", len(announced), span, most)
	}
}
