package member

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// oracle is Algorithm 1 of the paper, line by line, with maps.
type oracle struct {
	self    string
	version Version
	theta   int
	view    map[string]Version
	history map[string]Version
	s       map[string]map[string]Version // suspect, reporter
	notices []string
}

func (o *oracle) notify(format string, args ...any) {
	o.notices = append(o.notices, fmt.Sprintf(format, args...))
}

func (o *oracle) alive(p string, v Version) {
	if p == o.self {
		if v.Incarnation == o.version.Incarnation && o.version.Before(v) {
			o.version.Minor = v.Minor + 1
		}
		return
	}
	now, in := o.view[p]
	was, gone := o.history[p]
	if !in && (!gone || was.Before(v)) {
		o.view[p] = v
		delete(o.history, p)
		o.notify("join %s %v", p, v)
	} else if in && now.Before(v) {
		for r, at := range o.s[p] {
			if at.Before(v) {
				delete(o.s[p], r)
			}
		}
		o.view[p] = v
		if now.Incarnation != v.Incarnation {
			o.notify("leave %s %v restarted", p, now)
			o.notify("join %s %v", p, v)
		}
	}
}

func (o *oracle) leave(p string, v Version) {
	if p == o.self {
		o.refute(v)
		return
	}
	now, in := o.view[p]
	was, gone := o.history[p]
	if in && !v.Before(now) {
		o.remove(p, v, "departed")
	} else if !in && gone && was.Before(v) {
		o.history[p] = v
	}
}

func (o *oracle) refute(v Version) {
	if v.Incarnation == o.version.Incarnation && !v.Before(o.version) {
		o.version.Minor = v.Minor + 1
	}
}

func (o *oracle) suspicion(r, s string, v Version) {
	if s == o.self {
		o.refute(v)
		return
	}
	now, in := o.view[s]
	if !in || v.Before(now) {
		return
	}
	if at, ok := o.s[s][r]; ok && !at.Before(v) {
		return
	}
	if o.s[s] == nil {
		o.s[s] = map[string]Version{}
	}
	o.s[s][r] = v
	o.convict()
}

// convict removes who is suspected by enough, those with the most reporters
// first.
func (o *oracle) convict() {
	for {
		suspects, worst := 0, ""
		for _, s := range slices.SortedFunc(maps.Keys(o.s), byPlace) {
			if len(o.s[s]) == 0 {
				continue
			}
			suspects++
			if len(o.s[s]) > len(o.s[worst]) {
				worst = s
			}
		}
		if worst == "" || len(o.s[worst]) < max(1, min(o.theta, len(o.view)+1-suspects)) {
			return
		}
		newest := Version{}
		for _, v := range o.s[worst] {
			if newest.Before(v) {
				newest = v
			}
		}
		o.remove(worst, newest, "suspected")
	}
}

// byPlace orders names as the directory of a rig numbers them.
func byPlace(a, b string) int { return strings.Compare(a, b) }

func (o *oracle) remove(p string, v Version, why string) {
	delete(o.view, p)
	delete(o.s, p)
	o.history[p] = v
	o.notify("leave %s %v %s", p, v, why)
	if why == "departed" && o.theta > 1 {
		o.convict()
	}
}

// TestProcessingAgainstOracle: of any messages, the core makes what Algorithm 1
// does: the same view, history and notices, in the same order.
func TestProcessingAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		theta := rapid.IntRange(1, 3).Draw(t, "theta")
		r := newRigOf(t, theta)
		o := &oracle{self: "a", version: ver(5, 1), theta: theta, view: map[string]Version{}, history: map[string]Version{}, s: map[string]map[string]Version{}}
		names := []string{"a", "b", "c", "d", "e"}
		name := func(what string) string { return rapid.SampledFrom(names).Draw(t, what) }
		version := func(of string) Version {
			if of == "a" {
				return ver(5, rapid.Uint32Range(1, 4).Draw(t, "minor"))
			}
			return ver(rapid.Uint64Range(1, 2).Draw(t, "incarnation"), rapid.Uint32Range(1, 3).Draw(t, "minor"))
		}
		for range rapid.IntRange(1, 40).Draw(t, "messages") {
			var m Message
			for range rapid.IntRange(0, 2).Draw(t, "leaves") {
				p := name("leaves")
				v := version(p)
				m.Leaves = append(m.Leaves, Departure{Node: r.index(p), Version: v})
				o.leave(p, v)
			}
			for range rapid.IntRange(0, 3).Draw(t, "alives") {
				p := name("alive")
				v := version(p)
				m.Alives = append(m.Alives, Entry{r.index(p), v, nil})
				o.alive(p, v)
			}
			for range rapid.IntRange(0, 2).Draw(t, "suspicions") {
				p, reporter := name("suspect"), name("reporter")
				v := version(p)
				m.Suspicions = append(m.Suspicions, Suspicion{idOf(reporter).Key(), r.index(p), v, nil})
				o.suspicion(reporter, p, v)
			}
			r.take()
			r.inform(m)
			var notices []string
			for _, line := range r.take() {
				if strings.HasPrefix(line, "join ") || strings.HasPrefix(line, "leave ") {
					notices = append(notices, line)
				}
			}
			if !slices.Equal(notices, o.notices) {
				t.Fatalf("notices %q, want %q", notices, o.notices)
			}
			o.notices = nil
			o.compare(t, r)
		}
	})
}

func newRigOf(t *rapid.T, theta int) *rig {
	return newRig(t, func(c *Config) { c.Theta, c.Ks = theta, theta })
}

func (o *oracle) compare(t *rapid.T, r *rig) {
	view, history, digest := map[string]Version{}, map[string]Version{}, uint64(0)
	for _, i := range r.View() {
		if i != r.self {
			view[r.name(i)] = r.Version(i)
		}
		life := r.dir.Key(i).Life(r.Version(i).Incarnation)
		digest ^= uint64(gossip.Key(life).Life(uint64(r.Version(i).Minor)))
		if at, ok := r.FindLife(r.Life(i)); !ok || at != i {
			t.Fatalf("the life of %s is %v's", r.name(i), at)
		}
	}
	for _, h := range r.History(nil) {
		history[r.name(h.Node)] = h.Version
	}
	if !maps.Equal(view, o.view) || !maps.Equal(history, o.history) || r.Self().Version != o.version || r.Digest() != digest {
		t.Fatalf("view %v, history %v, own %v, digest %x; want %v, %v, %v, %x", view, history, r.Self().Version, r.Digest(), o.view, o.history, o.version, digest)
	}
	suspicions := 0
	for _, of := range o.s {
		suspicions += len(of)
	}
	if n := len(r.Suspicions()); n != suspicions {
		t.Fatalf("%d suspicions, want %d", n, suspicions)
	}
	keys := slices.Collect(func(yield func(gossip.Key) bool) {
		for _, i := range r.View() {
			if !yield(r.dir.Key(i)) {
				return
			}
		}
	})
	if !slices.IsSorted(keys) {
		t.Fatal("the view is not in the order of the ring")
	}
}
