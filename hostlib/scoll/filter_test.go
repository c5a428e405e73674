package scoll_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/aggregate"
	"github.com/tributary-fabric/tributary/reduce"
)

// TestFilters: a broadcast to some of a group's members, with the root among them
// or not, over groups of all kinds, and to those of them who live.
func TestFilters(t *testing.T) {
	news := make([]scoll.News, 8)
	c := start(t, 8, func(i int, cfg *config) { cfg.Liveness = &news[i] })
	c.rolls()
	for _, delayed := range []bool{false, true} {
		g := c.group(2, scoll.GroupSpec{Name: "all", Delayed: delayed})
		for _, tt := range []struct {
			b    scoll.Broadcast
			want string
		}{
			{scoll.Broadcast{Except: []string{"n2"}}, "n0 n1 n3 n4 n5 n6 n7"},
			{scoll.Broadcast{Only: []string{"n5", "n2"}}, "n2 n5"},
			{scoll.Broadcast{Only: []string{"n7"}, Bulk: [][]byte{{1, 2}}}, "n7"},
			{scoll.Broadcast{Only: []string{"n1", "n3", "n6"}, Except: []string{"n3"}}, "n1 n6"},
			{scoll.Broadcast{}, sorted(8)},
		} {
			r, err := call(t, g, tt.b)
			if err != nil || heard(r) != tt.want {
				t.Errorf("only %v except %v: %v, of %s", tt.b.Only, tt.b.Except, err, heard(r))
				continue
			}
			want := strings.Fields(tt.want)
			o := r.Outcome()
			if o.Nodes != len(want) || o.Ran != len(want) || (len(r.Target().Tags) > 0) != slices.Contains(want, "n2") {
				t.Errorf("%s: %+v, %v", tt.want, o, r.Target())
			}
		}
		for name, b := range map[string]scoll.Broadcast{
			"a stranger": {Only: []string{"n9"}}, "nobody": {Only: []string{}}, "without a stranger": {Except: []string{""}},
		} {
			if _, err := g.NewRequest(b); !errors.Is(err, scoll.ErrFilter) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := g.Destroy(background(t)); err != nil {
			t.Error(err)
		}
	}
	g := c.group(2, scoll.GroupSpec{Name: "all"})
	alive, err := g.Alive()
	if err != nil {
		t.Fatal(err)
	}
	for i := range news {
		news[i].Down("n4")
	}
	r, err := call(t, alive, scoll.Broadcast{Except: []string{"n2", "n0"}})
	if err != nil || heard(r) != "n1 n3 n5 n6 n7" {
		t.Errorf("of the living: %v, %s", err, heard(r))
	}
}

// TestFilterOfAnAggregation: ready-made aggregations do without the root's part.
func TestFilterOfAnAggregation(t *testing.T) {
	c := start(t, 5, nil)
	sum := make(chan []byte, 1)
	c.register(func(i int) scoll.Callbacks {
		return scoll.Aggregation{
			New: func(*scoll.Request) (aggregate.Aggregator, error) {
				return aggregate.NewVector(reduce.Sum, reduce.Float64, 1)
			},
			Size: func(*scoll.Request, scoll.Child) int { return 8 },
			Run: func(*scoll.Request) (func(aggregate.Aggregator) error, error) {
				one := []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f} // 1.0
				return func(a aggregate.Aggregator) error { return a.(*aggregate.Vector).Put(one) }, nil
			},
			Done: func(_ *scoll.Request, a aggregate.Aggregator) { sum <- a.(*aggregate.Vector).AppendTo(nil) },
		}.Callbacks()
	})
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	if _, err := call(t, g, scoll.Broadcast{Except: []string{"n0"}}); err != nil {
		t.Fatal(err)
	}
	if got := <-sum; string(got) != "\x00\x00\x00\x00\x00\x00\x10\x40" { // 4.0
		t.Errorf("the sum of four is %x", got)
	}
}

// TestTimeoutByDefault: who sets no timeout gives members a minute.
func TestTimeoutByDefault(t *testing.T) {
	c := start(t, 1, func(_ int, cfg *config) { cfg.Timeout = 0 })
	c.rolls()
	g := c.group(0, scoll.GroupSpec{Name: "all"})
	r, err := g.NewRequest(scoll.Broadcast{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Timeout(); got != time.Minute {
		t.Errorf("P of %v", got)
	}
	r.Abort()
	if r, err = call(t, g, scoll.Broadcast{Timeout: time.Nanosecond}); err != nil || r.Timeout() != time.Nanosecond {
		t.Errorf("%v, %v", err, r.Timeout())
	}
}
