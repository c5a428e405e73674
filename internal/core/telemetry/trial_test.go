package telemetry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// short are names of leaves in trials, and their paths; X is an interface.
var short = []struct{ name, path string }{
	{"up", "/interfaces/interface[name=X]/state/oper-status"},
	{"mtu", "/interfaces/interface[name=X]/state/mtu"},
	{"in", "/interfaces/interface[name=X]/state/counters/in-octets"},
	{"out", "/interfaces/interface[name=X]/state/counters/out-octets"},
	{"host", "/system/state/hostname"},
	{"used", "/system/memory/state/used"},
}

// long returns the path of a leaf such as "up:eth0", or what is no such name.
func long(name string) string {
	kind, of, _ := strings.Cut(name, ":")
	for _, s := range short {
		if s.name == kind {
			return strings.Replace(s.path, "X", of, 1)
		}
	}
	return name
}

func brief(path string) string {
	for _, s := range short {
		before, after, of := strings.Cut(s.path, "X")
		if !of && path == s.path {
			return s.name
		}
		if of && strings.HasPrefix(path, before) && strings.HasSuffix(path, after) {
			return s.name + ":" + path[len(before):len(path)-len(after)]
		}
	}
	return path
}

// trial is a core under commands.
type trial struct {
	c   *Core
	now core.Time
	at  int64
	out Output
}

func newTrial(c Config) *trial { return &trial{c: New(c)} }

func (t *trial) step(in ...Input) string {
	t.out.Reset()
	t.c.Step(t.now, in, &t.out)
	return t.said()
}

// said is what the last step put out.
func (t *trial) said() string {
	var b strings.Builder
	for _, p := range t.out.Collect {
		fmt.Fprintf(&b, "collect %v\n", p)
	}
	for _, x := range t.out.Batches {
		fmt.Fprintf(&b, "%d:", x.Stream)
		for i := range x.Entries {
			b.WriteString(" " + entry(&x.Entries[i]))
		}
		b.WriteString("\n")
	}
	for _, e := range t.out.Ended {
		fmt.Fprintf(&b, "%d ends: %v\n", e.Stream, e.Err)
	}
	return b.String()
}

func entry(e *Entry) string {
	switch e.Kind {
	case Sync:
		return "sync"
	case Delete:
		return fmt.Sprintf("-%s@%d", brief(e.Name), e.At)
	}
	s := fmt.Sprintf("%s=%v@%d", brief(e.Name), e.Value, e.At)
	if e.Duplicates > 0 {
		s += fmt.Sprintf("+%d", e.Duplicates)
	}
	return s
}

// do runs commands:
//
//	events|interfaces|system LEAF=VALUE ...  a snapshot of the part; "failed": it could not be read
//	open N MODE [updates-only] SUBSCRIPTION, ...
//	poll N; ready N; close N
//	pass DURATION                            time passes, to the moment of every deadline
//
// A subscription is PATH [onchange|sample|target] [every=D] [beat=D] [suppress].
func (t *trial) do(commands ...string) string {
	var b strings.Builder
	for _, line := range commands {
		for _, command := range strings.Split(line, ";") {
			b.WriteString(t.one(strings.TrimSpace(command)))
		}
	}
	return b.String()
}

func (t *trial) one(command string) string {
	f := strings.Fields(command)
	if len(f) == 0 {
		return ""
	}
	number := func() uint64 {
		n, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			panic(err)
		}
		return n
	}
	switch f[0] {
	case "events", "interfaces", "system":
		t.at++
		in := Snapshot{Part: map[string]Part{"events": Events, "interfaces": Interfaces, "system": System}[f[0]], At: t.at}
		for _, x := range f[1:] {
			if x == "failed" {
				in.Failed = true
				continue
			}
			name, value, _ := strings.Cut(x, "=")
			in.Leaves = append(in.Leaves, Leaf{long(name), parseValue(value)})
		}
		return t.step(in)
	case "open":
		_, rest, _ := strings.Cut(command, f[2])
		return t.step(parseOpen(number(), f[2], rest))
	case "poll":
		return t.step(Poll{number()})
	case "ready":
		return t.step(Ready{number()})
	case "close":
		return t.step(Close{number()})
	case "pass":
		d, err := time.ParseDuration(f[1])
		if err != nil {
			panic(err)
		}
		var b strings.Builder
		for end := t.now.Add(d); ; {
			t.now = min(end, max(t.now, t.c.Deadline()))
			b.WriteString(t.step())
			if t.now == end && t.c.Deadline() > end {
				return b.String()
			}
		}
	}
	panic(command)
}

func parseValue(s string) openconfig.Value {
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return openconfig.Number(n)
	}
	return openconfig.Text(s)
}

func parseOpen(stream uint64, mode, rest string) Open {
	o := Open{Stream: stream, Mode: map[string]Mode{"stream": Streaming, "once": Once, "poll": Polled}[mode]}
	if after, ok := strings.CutPrefix(strings.TrimSpace(rest), "updates-only"); ok {
		o.UpdatesOnly, rest = true, after
	}
	for _, text := range strings.Split(rest, ",") {
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		p, err := openconfig.ParsePath(long(f[0]))
		if err != nil {
			panic(err)
		}
		s := Subscription{Path: p}
		for _, word := range f[1:] {
			name, value, _ := strings.Cut(word, "=")
			d, _ := time.ParseDuration(value) // zero for words without one
			switch name {
			case "onchange":
				s.Trigger = OnChange
			case "sample":
				s.Trigger = Sample
			case "every":
				s.Interval = d
			case "beat":
				s.Heartbeat = d
			case "suppress":
				s.Suppress = true
			}
		}
		o.Subscriptions = append(o.Subscriptions, s)
	}
	return o
}

// verify reports what must not be in a core.
func (c *Core) verify(t interface{ Fatalf(string, ...any) }) {
	for _, s := range c.streams {
		n := 0
		seen := map[string]bool{}
		for i := s.queue.next; i != &s.queue; i = i.next {
			n++
			if i == &s.mark {
				continue
			}
			if seen[i.leaf.name] {
				t.Fatalf("%s waits twice", i.leaf.name)
			}
			seen[i.leaf.name] = true
			if s.items[i.leaf.name] != i || i.state == idle {
				t.Fatalf("%s waits, and is not in its stream", i.leaf.name)
			}
			if (c.cache.leaves[i.leaf.name] == i.leaf) == (i.state == deleted) {
				t.Fatalf("%s waits in state %d, and is there: %v", i.leaf.name, i.state, i.state == deleted)
			}
		}
		if n != s.waiting {
			t.Fatalf("%d wait, %d are counted", n, s.waiting)
		}
		for name, i := range s.items {
			if i.state != deleted && (c.cache.leaves[name] != i.leaf || !slices.Contains(i.leaf.items, i)) {
				t.Fatalf("%s is in a stream, and not there", name)
			}
			if i.state == idle && s.Mode != Streaming {
				t.Fatalf("%s is left in a stream that has it sent", name)
			}
		}
	}
	for name, l := range c.cache.leaves {
		for _, i := range l.items {
			if i.of.items[name] != i || c.streamOf[i.of.Stream] != i.of {
				t.Fatalf("%s has an item of a stream that is not there", name)
			}
		}
	}
	if len(c.streams) != len(c.streamOf) {
		t.Fatalf("%d streams, %d numbers", len(c.streams), len(c.streamOf))
	}
}
