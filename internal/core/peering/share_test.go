package peering

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// connect has a host connect, and returns what comes of it.
func (t *trial) connect(id int, from string, class uint8) string {
	t.step(Input{Kind: Arrived, ID: ID(id), Source: prefix(id)})
	return t.step(greet(ID(id), from, class, uint64(id)))
}

// TestProcessesOfOneHostLeaveRoom: a host that has taken all connections, as many processes,
// keeps nobody out: each newcomer has the place of its latest one, until all have the same.
func TestProcessesOfOneHostLeaveRoom(t *testing.T) {
	const most = 1024
	w := newTrial(func(c *Config) { c.Connections, c.Certified = most, true })
	for i := 1; i <= most; i++ {
		if got, want := w.connect(i, fmt.Sprintf("evil#%d", i), 0), fmt.Sprintf("accept %d evil#%d/0 inc=1\n", i, i); got != want {
			t.Fatal(got)
		}
	}
	if got := w.connect(most+1, "evil#more", 0); !strings.HasPrefix(got, fmt.Sprintf("refuse %d busy", most+1)) {
		t.Errorf("the host that has most: %s", got)
	}
	for i := 1; i <= most/2; i++ {
		id := most + 1 + i
		got := w.connect(id, fmt.Sprintf("host#%d", i), 0)
		want := fmt.Sprintf("accept %d host#%d/0 inc=1\nclose %d: busy: %d connections in all, and the processes of \"evil\" have most, %d\n", id, i, most+1-i, most+1, most+1-i)
		if got != want {
			t.Fatalf("%d: %s, want %s", i, got, want)
		}
		w.c.check(t)
	}
	if got := w.connect(2*most, "host#last", 0); !strings.HasPrefix(got, fmt.Sprintf("refuse %d busy", 2*most)) {
		t.Errorf("the two would take turns: %s", got)
	}
	if n := w.c.Counters(); n.Displaced != most/2 || n.Connections != most {
		t.Errorf("%+v", n)
	}
}

// TestRefusedDisplaceNobody: who is refused, as a duplicate say, has no place to be made for.
func TestRefusedDisplaceNobody(t *testing.T) {
	w := newTrial(func(c *Config) { c.Connections = 5 })
	for i := 1; i <= 4; i++ {
		w.connect(i, fmt.Sprintf("evil#%d", i), 0)
	}
	w.connect(5, "host", 0)
	w.step(Input{Kind: Arrived, ID: 6, Source: prefix(6)})
	if got := w.step(greet(6, "host", 0, 4)); !strings.HasPrefix(got, "refuse 6 duplicate") || w.c.Counters().Displaced != 0 {
		t.Errorf("%s %+v", got, w.c.Counters())
	}
	if got := w.connect(7, "other", 0); !strings.Contains(got, "accept 7") || !strings.Contains(got, "close 4") {
		t.Errorf("one that is accepted: %s", got)
	}
}

// TestDisplacedInAllStates: whatever the connection that gives way is about.
func TestDisplacedInAllStates(t *testing.T) {
	for says, last := range map[string]string{
		"close 4":        "arrive 4 10.0.0.1; greet 4 from=evil#4",
		"refuse 4 busy":  "want evil#4 0; arrive 4 10.0.0.1; greet 4 from=evil#4",
		"refuse 5 busy":  "arrive 4 10.0.0.1; greet 4 from=evil#1 class=1; arrive 5 10.0.0.1; greet 5 from=evil#1 inc=6",
		"dial d2 evil#4": "hold evil#4 0; end d1; arrive 4 10.0.0.1; greet 4 from=evil#4",
		"close 5: busy":  "arrive 4 10.0.0.1; greet 4 from=evil#1 class=1; arrive 5 10.0.0.1; greet 5 from=evil#1 class=2",
	} {
		w := newTrial(nil)
		for i := 1; i <= 3; i++ {
			w.do(fmt.Sprintf("arrive %d 10.0.0.1; greet %d from=evil#%d", i, i, i))
		}
		w.do(last)
		w.c.cfg.Connections = w.c.taken
		got := w.do("arrive 9 10.0.0.9; greet 9 from=other")
		if !strings.Contains(got, says) || !strings.Contains(got, "accept 9") {
			t.Errorf("%s: %s", says, got)
		}
		w.c.check(t)
	}
}

// TestProcessesShareLimits: claims are those of a host.
func TestProcessesShareLimits(t *testing.T) {
	w := newTrial(nil)
	claims := 0
	for i := range 2 * claimMostOfHost {
		name := fmt.Sprintf("b#%d", i)
		w.connect(100+2*i, name, 0)
		in := Input{Kind: Greeted, ID: ID(101 + 2*i), Greeting: greeting.Greeting{From: name, Incarnation: 2, To: "a", Call: 1}}
		w.step(Input{Kind: Arrived, ID: in.ID, Source: prefix(i)})
		if got := w.step(in); strings.HasPrefix(got, "check") {
			claims++
		} else if !strings.Contains(got, "busy") {
			t.Error(got)
		}
	}
	if claims != claimMostOfHost {
		t.Errorf("%d claims of one host", claims)
	}
}

// TestProcessesOfOneHostAreForgottenFirst: a host that connects under more names than are
// remembered makes this one forget half of the others at most, also with certificates.
func TestProcessesOfOneHostAreForgottenFirst(t *testing.T) {
	const most = 64
	w := newTrial(func(c *Config) { c.Remember, c.Certified = most, true })
	id, forgotten := 0, map[bool]int{}
	meet := func(name string) {
		id++
		w.connect(id, name, 0)
		for line := range strings.Lines(w.do(fmt.Sprintf("end %d", id))) {
			if name, ok := strings.CutPrefix(line, "forgot "); ok {
				forgotten[strings.HasPrefix(name, "evil#")]++
			}
		}
		w.c.check(t)
	}
	for i := range most {
		meet(fmt.Sprintf("host-%d", i))
	}
	for i := range 10 * most {
		meet(fmt.Sprintf("evil#%d", i))
	}
	if forgotten[false] != most/2 || forgotten[true] != 10*most-most/2 {
		t.Errorf("%d hosts and %d processes of one are forgotten", forgotten[false], forgotten[true])
	}
}
