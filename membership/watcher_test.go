package membership

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

func of(name string, incarnation uint64, deaths uint32) Member {
	return Member{Name: name, Version: Version{Incarnation: incarnation, Minor: 1}, Deaths: deaths}
}

func joined(m Member) Notice { return Notice{Kind: Joined, Member: m} }

func left(m Member, c Cause) Notice { return Notice{Kind: Left, Member: m, Cause: c} }

// read takes all that waits for a watcher; nothing if nothing does.
func read(t *testing.T, w *Watcher) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	all, err := w.Next(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var out []string
	for _, n := range all {
		out = append(out, n.String())
	}
	return out
}

// TestSlowReader reports what a reader finds who slept through several notices.
func TestSlowReader(t *testing.T) {
	a, b := of("a", 1, 0), of("b", 1, 0)
	again, alarm := of("a", 2, 1), of("a", 1, 1)
	for name, test := range map[string]struct {
		read, slept []Notice
		want        []string
	}{
		"in order":             {nil, []Notice{joined(b), joined(a)}, []string{"b joined", "a joined"}},
		"came and went":        {nil, []Notice{joined(a), left(a, Failed)}, nil},
		"left":                 {[]Notice{joined(a)}, []Notice{left(a, Departed)}, []string{"a left (departed)"}},
		"restarted":            {[]Notice{joined(a)}, []Notice{left(a, Replaced), joined(again)}, []string{"a left (replaced)", "a joined"}},
		"restarted and gone":   {[]Notice{joined(a)}, []Notice{left(a, Replaced), joined(again), left(again, Failed)}, []string{"a left (failed)"}},
		"false alarm":          {[]Notice{joined(a)}, []Notice{left(a, Failed), joined(alarm)}, []string{"a left (failed)", "a joined"}},
		"the last change last": {nil, []Notice{joined(a), joined(b), left(a, Failed), joined(alarm)}, []string{"b joined", "a joined"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher(&Node{})
			for _, n := range test.read {
				w.take(n)
			}
			read(t, w)
			for _, n := range test.slept {
				w.take(n)
			}
			if got := read(t, w); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestSlowReaderIsNeverWrong lets nodes come, go and restart at random while a
// reader reads now and then: what it was given always adds up to a state that was,
// it has never more than two notices a node to take, and at the end it knows all.
func TestSlowReaderIsNeverWrong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const nodes = 40
	w := newWatcher(&Node{})
	is, reported := map[string]Member{}, map[string]Member{}
	lives := map[string]uint64{}
	take := func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		all, _ := w.Next(ctx)
		seen := map[string]int{}
		for _, n := range all {
			name := n.Member.Name
			if seen[name]++; seen[name] > 2 {
				t.Fatalf("more than two notices about %s at once: %v", name, all)
			}
			if _, there := reported[name]; there == (n.Kind == Joined) {
				t.Fatalf("%v, but the reader had been notified %v", n, there)
			}
			if n.Kind == Joined {
				reported[name] = n.Member
			} else {
				delete(reported, name)
			}
		}
		if fmt.Sprint(reported) != fmt.Sprint(is) {
			t.Fatalf("the reader knows %v, and there are %v", reported, is)
		}
		if waits := len(w.news.order); waits > 0 {
			t.Fatalf("%d places left", waits)
		}
	}
	for range 20_000 {
		name := fmt.Sprintf("n%02d", random.IntN(nodes))
		if m, there := is[name]; there {
			w.take(left(m, Failed))
			delete(is, name)
		} else {
			lives[name]++
			is[name] = of(name, lives[name], uint32(lives[name]))
			w.take(joined(is[name]))
		}
		if places := len(w.news.order); places > 2*nodes+16 {
			t.Fatalf("%d places for %d nodes: it does not compact", places, nodes)
		}
		if random.IntN(50) == 0 {
			take()
		}
	}
	take()
}

// TestWatcherEnds reports that what waits is read before the end is.
func TestWatcherEnds(t *testing.T) {
	w := newWatcher(&Node{})
	w.take(joined(of("a", 1, 0)))
	w.news.end(ErrClosed)
	if got := read(t, w); len(got) != 1 {
		t.Fatalf("%q before the end", got)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
