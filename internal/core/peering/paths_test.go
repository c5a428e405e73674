package peering

import (
	"fmt"
	"strings"
	"testing"
)

// add has host b add a path, and returns what comes of it.
func (t *trial) add(id, call, path, joins int) string {
	return t.do(fmt.Sprintf("arrive %d 10.0.0.1; greet %d call=%d path=%d joins=%d", id, id, call, path, joins))
}

// TestPathsTakeConnections: paths that others have added count with what they may make, and are
// closed alone where they have too many.
func TestPathsTakeConnections(t *testing.T) {
	w := newTrial(func(c *Config) { c.Connections = 4 })
	w.do("arrive 1 10.0.0.1; greet 1 call=1")
	for i := 2; i <= 4; i++ {
		if got, want := w.add(i, i, i, 1), fmt.Sprintf("accept %d path %d of 1 inc=5\n", i, i); got != want {
			t.Fatal(got)
		}
	}
	if got := w.add(5, 5, 5, 1); !strings.HasPrefix(got, "refuse 5 busy") {
		t.Errorf("a fifth one: %s", got)
	}
	got := w.do("arrive 6 10.0.0.2; greet 6 from=c")
	if !strings.Contains(got, "accept 6 c/0") || !strings.Contains(got, "close path 4 of 1: busy") {
		t.Errorf("another host's: %s", got)
	}
	if got := w.add(7, 7, 4, 1); !strings.HasPrefix(got, "refuse 7 busy") {
		t.Errorf("once more: %s", got)
	}
	if n := w.c.Counters(); n.Connections != 2 || n.Paths != 2 || n.Displaced != 1 || n.Joined != 3 {
		t.Errorf("%+v", n)
	}
	// The first path counts until it has ended.
	w.do("end 1")
	if got := w.add(8, 8, 4, 1); !strings.HasPrefix(got, "accept 8 path 4 of 1") {
		t.Errorf("in the place of the first one: %s", got)
	}
	w.c.check(t)
}

// TestLastPathIsDisplaced: its connection gives way with it, and is dialled again if it is held.
func TestLastPathIsDisplaced(t *testing.T) {
	w := newTrial(func(c *Config) { c.Connections = 2 })
	w.do("hold b 0; end d1; arrive 1 10.0.0.1; greet 1 call=1 class=1; arrive 2 10.0.0.1; greet 2 call=2")
	w.c.cfg.Connections = 3
	w.add(3, 3, 2, 2)
	w.do("end 2")
	w.c.cfg.Connections = 2
	got := w.do("arrive 4 10.0.0.2; greet 4 from=c")
	if !strings.Contains(got, "accept 4 c/0") || !strings.Contains(got, "close 2: busy") || !strings.Contains(got, "dial d2 b/0") {
		t.Error(got)
	}
	w.c.check(t)
}

// TestPathOfAnotherHost: it is refused, by its certificate or since it has no such connection.
func TestPathOfAnotherHost(t *testing.T) {
	w := newTrial(func(c *Config) { c.Certified = true })
	w.do("arrive 1 10.0.0.1; greet 1 call=1")
	for command, want := range map[string]string{
		"greet 2 call=2 path=2 joins=1 cert=c":          "refuse 2 for good: the certificate is another host's",
		"greet 2 call=2 path=2 joins=1 from=c":          "refuse 2 ended",
		"greet 2 call=2 path=2 joins=1 from=b#2 cert=b": "refuse 2 ended",
		"greet 2 call=2 path=2 joins=1 to=x":            "refuse 2 for good: another host is wanted",
		"greet 2 call=2 path=2 joins=1 from=a":          "refuse 2 taken",
		"greet 2 call=2 path=9 joins=1":                 "refuse 2 for good: there is no such path: 9 of a connection of class 0",
		"greet 2 call=2 path=255 joins=1":               "refuse 2 for good: there is no such path",
		"greet 2 call=2 path=2 joins=1 inc=6":           "refuse 2 ended",
		"greet 2 call=2 path=2 joins=1 inc=4":           "refuse 2 outdated",
		"greet 2 call=1 path=2 joins=1":                 "refuse 2 duplicate",
		"greet 2 call=2 path=2 joins=1 class=1":         "refuse 2 ended",
		"greet 2 call=2 path=2 joins=1 known=11":        "refuse 2 former",
		"greet 2 call=2 path=2 joins=1 inc=0 first":     "refuse 2 for good",
	} {
		if got := w.do("arrive 2 10.0.0.2", command); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
		w.c.check(t)
	}
	if n := w.c.Counters(); n.Paths != 0 || n.Connections != 1 || n.Peers != 1 {
		t.Errorf("%+v", n)
	}
}

// TestPathIsAddedAtOnce: it may come with the greeting of the call, before anything is known of
// the rails.
func TestPathIsAddedAtOnce(t *testing.T) {
	w := newTrial(nil)
	w.do("arrive 1 10.0.0.1; arrive 2 10.0.0.1")
	first, second := greet(1, "b", 0, 1), greet(2, "b", 0, 2)
	second.Greeting.Path, second.Greeting.Joins = 2, 1
	if got, want := w.step(first, second), "accept 1 b/0 inc=1\naccept 2 path 2 of 1 inc=1\n"; got != want {
		t.Error(got)
	}
	// A second call of the same caller replaces the connection with its paths.
	w.do("arrive 3 10.0.0.1")
	third := greet(3, "b", 0, 3)
	if got := w.step(third); !strings.HasPrefix(got, "drain 1") || !strings.Contains(got, "accept 3") {
		t.Error(got)
	}
	if got := w.do("finished 1"); got != "close 1: both sides are done with it\n" {
		t.Error(got)
	}
	if n := w.c.Counters(); n.Connections != 1 || n.Paths != 0 {
		t.Errorf("%+v", n)
	}
	w.c.check(t)
}

// TestPathsAreFew: a host that adds paths, and calls, again and again holds as many places as
// there are pairs, and drained connections.
func TestPathsAreFew(t *testing.T) {
	w := newTrial(nil)
	for i := 1; i <= 200; i++ {
		w.do(fmt.Sprintf("arrive %d 10.0.0.1; greet %d call=%d", 100*i, 100*i, 100*i))
		for j := 1; j <= 30; j++ {
			w.add(100*i+j, 100*i+j, 1+j%8, 100*i)
		}
		w.c.check(t)
		if n := w.c.Counters(); n.Connections > drainMost+1 || n.Paths > 8*n.Connections {
			t.Fatalf("%+v", n)
		}
	}
}
