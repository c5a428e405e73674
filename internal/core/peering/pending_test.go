package peering

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// crowd is the slow oracle of strangers: lists, sorted anew each time.
type crowd struct {
	total, each int
	all         []member
}

type member struct {
	id     ID
	source int
	stage  stage
}

func (o *crowd) count(source int) (n int) {
	for _, m := range o.all {
		if m.source == source {
			n++
		}
	}
	return n
}

// admit returns who has to go; 0: nobody.
func (o *crowd) admit(id ID, source int) (gone ID) {
	from := -1
	if o.count(source) == o.each {
		from = source
	} else if len(o.all) == o.total {
		sources := []int{}
		for _, m := range o.all {
			sources = append(sources, m.source)
		}
		with := func(s int) int {
			if s == source {
				return o.count(s) + 1
			}
			return o.count(s)
		}
		slices.SortStableFunc(sources, func(a, b int) int { return with(b) - with(a) })
		from = sources[0]
	}
	if from >= 0 {
		own := slices.DeleteFunc(slices.Clone(o.all), func(m member) bool { return m.source != from })
		slices.SortStableFunc(own, func(a, b member) int { return int(a.stage) - int(b.stage) })
		gone = own[0].id
		o.remove(gone)
	}
	o.all = append(o.all, member{id: id, source: source})
	return gone
}

func (o *crowd) remove(id ID) {
	o.all = slices.DeleteFunc(o.all, func(m member) bool { return m.id == id })
}

func prefix(source int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(source)}), 32)
}

// TestStrangersAgainstOracle: who goes for whom. Beside the oracle's word: the
// newcomer stays; limits hold; who has no more than its share of the room loses
// nothing to other sources.
func TestStrangersAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := crowd{total: rapid.IntRange(1, 12).Draw(t, "total"), each: rapid.IntRange(1, 6).Draw(t, "each")}
		sources := rapid.IntRange(1, 5).Draw(t, "sources")
		trial := newTrial(func(c *Config) { c.Pending, c.PendingOfSource = o.total, o.each })
		next := ID(0)
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 6 || len(o.all) == 0:
				next++
				source := rapid.IntRange(1, sources).Draw(t, "source")
				before := map[int]int{}
				for s := 1; s <= sources; s++ {
					before[s] = o.count(s)
				}
				want := ""
				if gone := o.admit(next, source); gone != 0 {
					want = fmt.Sprintf("close %v: %v\n", gone, ErrEvicted)
				}
				if got := trial.step(Input{Kind: Arrived, ID: next, Source: prefix(source)}); got != want {
					t.Fatalf("%d of source %d: got %q, want %q", next, source, got, want)
				}
				for s, n := range before {
					if s != source && o.count(s) < n && n <= o.total/sources {
						t.Fatalf("source %d had %d of %d among %d sources, and lost one to source %d", s, n, o.total, sources, source)
					}
				}
			default:
				at := rapid.IntRange(0, len(o.all)-1).Draw(t, "which")
				id := o.all[at].id
				switch {
				case what < 8:
					to := stage(rapid.IntRange(1, 2).Draw(t, "stage"))
					o.all[at].stage = max(o.all[at].stage, to)
					trial.step(Input{Kind: map[stage]Kind{spoken: Spoke, verified: Verified}[to], ID: id})
				case what < 9:
					o.remove(id)
					trial.step(Input{Kind: Ended, ID: id})
				default:
					o.remove(id)
					trial.step(Input{Kind: Greeted, ID: id, Err: ErrMalformed})
				}
			}
			if n := trial.c.Counters().Pending; n != len(o.all) || n > o.total {
				t.Fatalf("%d are pending, want %d of at most %d", n, len(o.all), o.total)
			}
			trial.c.check(t)
		}
	})
}

// TestFloodKeepsNobodyOut: 100,000 callers of one source that say nothing hold a
// bounded number of places, and one of another source, or one of the same that says
// something, keeps its place.
func TestFloodKeepsNobodyOut(t *testing.T) {
	trial := newTrial(nil)
	trial.do("arrive 1 10.0.0.1", "arrive 2 10.0.0.2; spoke 2")
	for id := ID(10); id < 100_010; id++ {
		trial.step(Input{Kind: Arrived, ID: id, Source: prefix(2)})
	}
	k := trial.c.Counters()
	if k.Pending != 1+64 || k.Evicted != 100_000+2-65 {
		t.Errorf("%+v", k)
	}
	if got, want := trial.do("greet 1 from=b; greet 2 from=c"), "accept 1 b/0 inc=5\naccept 2 c/0 inc=5\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	trial.pass(time.Minute)
	if k := trial.c.Counters(); k.Pending != 0 {
		t.Errorf("%+v", k)
	}
}

// TestNamesAreForgotten: what callers without certificates say of themselves takes a
// bounded amount of memory.
func TestNamesAreForgotten(t *testing.T) {
	trial := newTrial(func(c *Config) { c.Remember = 100 })
	for id := ID(1); id <= 10_000; id++ {
		trial.do(fmt.Sprintf("arrive %d 10.0.0.1; greet %d from=x%d inc=18446744073709551615; end %d", id, id, id, id))
		if n := trial.c.Counters().Peers; n > 100 {
			t.Fatalf("%d hosts are remembered", n)
		}
	}
	trial.pass(11 * time.Second)
	if k := trial.c.Counters(); k.Peers != 0 || k.Connections != 0 {
		t.Errorf("%+v", k)
	}
	trial.c.check(t)
}
