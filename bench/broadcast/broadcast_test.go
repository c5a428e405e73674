package broadcast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
)

// hosts returns hosts that reach each other, and their names.
func hosts(t testing.TB, n int) ([]*hostlib.Host, []string) {
	var mu sync.Mutex
	at := map[string]string{}
	var all []*hostlib.Host
	var names []string
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		host, err := hostlib.Join(t.Context(), hostlib.Config{Name: name, Resolve: func(_ context.Context, node string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			return at[node], nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := host.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		mu.Lock()
		at[name] = host.Addr()
		mu.Unlock()
		all, names = append(all, host), append(names, name)
	}
	return all, names
}

// member makes a node that takes part on a host.
func member(t testing.TB, host *hostlib.Host) *Member {
	t.Helper()
	m, err := On(host, scoll.Config{RoundTrip: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// crowd returns members on hosts of their own, and their names.
func crowd(t testing.TB, n int) (all []*Member, names []string) {
	t.Helper()
	places, names := hosts(t, n)
	for _, host := range places {
		all = append(all, member(t, host))
	}
	return all, names
}

// TestAwait: a host that has no services yet is waited for, one that is none of ours is not.
func TestAwait(t *testing.T) {
	places, names := hosts(t, 3)
	root := member(t, places[0])
	member(t, places[1])
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := root.Await(over, names); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "n2 (1 nodes) no service") {
		t.Errorf("%v; want to wait for n2 until the context ends", err)
	}
	member(t, places[2])
	if err := root.Await(t.Context(), names); err != nil {
		t.Error(err)
	}
	if err := root.Await(t.Context(), append(names, names[1])); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("%v; want an error for a node that is named twice", err)
	}
}

// TestEnd: all members are notified, once each has come.
func TestEnd(t *testing.T) {
	all, names := crowd(t, 4)
	if err := all[0].Await(t.Context(), names); err != nil {
		t.Fatal(err)
	}
	if err := all[0].End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range all[1:] {
		<-m.Notified()
	}
}

// TestMeasure: every broadcast that is begun is reported once, and a receipt is
// before the end.
func TestMeasure(t *testing.T) {
	all, names := crowd(t, 5)
	for _, name := range []string{"binomial", "3-nomial", "2-ary", "flat"} {
		tree, err := ParseTree(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, rate := range []float64{0, 500} {
			p := Plan{
				Tree: name, Kind: tree, Nodes: names, Payload: 8, Concurrency: 3, Rate: rate,
				Warm: 10, Lasting: 50 * time.Millisecond, Timed: rate == 0,
			}
			row, err := all[0].Measure(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			if row.Broadcasts == 0 || row.Rate <= 0 || row.Complete.Median <= 0 || row.Complete.Most < row.Complete.P99 {
				t.Errorf("%+v", row)
			}
			if p.Timed && (row.Reached.Median <= 0 || row.Reached.Most > row.Complete.Most) {
				t.Errorf("receipts %+v, ends %+v", row.Reached, row.Complete)
			}
			var text strings.Builder
			if err := WriteText(&text, []Row{row}); err != nil || !strings.Contains(text.String(), name) {
				t.Errorf("%v: %s", err, text.String())
			}
		}
	}
}

func TestParseTree(t *testing.T) {
	for name, want := range map[string]scoll.Tree{
		"binomial": scoll.Binomial(), "flat": scoll.Flat(), "4-nomial": scoll.KNomial(4), "3-ary": scoll.KAry(3),
	} {
		if got, err := ParseTree(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "1-nomial", "0-ary", "x-ary", "4", "4-", "-4-ary", "65536-ary"} {
		if got, err := ParseTree(name); !errors.Is(err, ErrTree) {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

func TestSpread(t *testing.T) {
	var all []time.Duration
	for i := range 1000 {
		all = append(all, time.Duration(1000-i))
	}
	if got, want := spread(all), (Spread{501, 991, 1000, 1000}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if spread(nil) != (Spread{}) {
		t.Error("of nothing")
	}
}

// BenchmarkBroadcast: 16 nodes in this process.
//
//	go test -C bench -run '^$' -bench Broadcast ./broadcast
func BenchmarkBroadcast(b *testing.B) {
	all, names := crowd(b, 16)
	for _, name := range []string{"binomial", "4-nomial", "4-ary", "flat"} {
		for _, concurrency := range []int{1, 64} {
			b.Run(fmt.Sprintf("tree=%s/concurrency=%d", name, concurrency), func(b *testing.B) {
				tree, err := ParseTree(name)
				if err != nil {
					b.Fatal(err)
				}
				row := Row{}
				for b.Loop() {
					p := Plan{Tree: name, Kind: tree, Nodes: names, Concurrency: concurrency, Warm: 1000, Lasting: time.Second}
					if row, err = all[0].Measure(b.Context(), p); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(row.Rate, "broadcasts/s")
				b.ReportMetric(float64(row.Complete.Median), "p50-ns")
				b.ReportMetric(float64(row.Complete.P99), "p99-ns")
			})
		}
	}
}
