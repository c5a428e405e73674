package p4rt

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// The program of testdata/toy.p4.
var (
	//go:embed testdata/toy.p4info.txt
	toyInfo string
	//go:embed testdata/toy.json
	toyDevice []byte

	toy = Pipeline{P4Info: toyInfo, Device: toyDevice, Order: []uint32{routes, pairs, guards}}
)

// Ids of the program.
const (
	routes uint32 = 45698565
	pairs  uint32 = 45305406
	guards uint32 = 43398269
	kinds  uint32 = 42451480

	forward uint32 = 26512162
	copyTo  uint32 = 17985944
	drop    uint32 = 33281717
	nothing uint32 = 21257015

	seen uint32 = 306274745 // counter
)

// pairsRoom is the size of table pairs.
const pairsRoom = 4

// What p4c made is of the source as it is.
func TestToyIsCurrent(t *testing.T) {
	files := os.DirFS("testdata")
	sums, err := fs.ReadFile(files, "sums")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		b, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != sum {
			t.Errorf("%s has changed: compile toy.p4 again, as it reports", name)
		}
	}
	if n := strings.Count(string(sums), "\n"); n != 3 {
		t.Errorf("sums of %d files, want 3", n)
	}
}

func toySchema(t testing.TB) *Schema {
	t.Helper()
	s, err := toy.Schema()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// route is an entry of table routes that forwards to a port.
func route(prefix string, port byte) p4.Entry {
	p := netip.MustParsePrefix(prefix)
	e := p4.Entry{Table: routes, Action: forward, Params: [][]byte{{0, port}, {2, 0, 0, 0, 0, port}}}
	if p.Bits() > 0 {
		e.Match = []p4.Field{{ID: 1, Value: p.Addr().AsSlice(), Prefix: p.Bits()}}
	}
	return e
}

// pair is an entry of table pairs, for a label.
func pair(label byte) p4.Entry {
	return p4.Entry{
		Table: pairs, Action: forward, Params: [][]byte{{0, 1}, {2, 0, 0, 0, 0, label}},
		Match: []p4.Field{{ID: 1, Value: []byte{1, 0xfe}}, {ID: 2, Value: []byte{0, 0, label}}},
	}
}

// guard is an entry of table guards for a label on any port.
func guard(label byte, priority int) p4.Entry {
	return p4.Entry{Table: guards, Priority: priority, Action: nothing, Match: []p4.Field{{ID: 2, Value: []byte{0, 0, label}}}}
}

// someState has some of everything.
func someState() p4.Program {
	return p4.Program{
		Groups: []p4.Group{
			{ID: 1, Replicas: []p4.Replica{{Port: 1, Instance: 1}, {Port: 2, Instance: 2}}},
			{ID: 2, Replicas: []p4.Replica{{Port: 1, Instance: 7}}},
		},
		Entries: []p4.Entry{
			route("10.0.0.0/8", 1), route("10.1.0.0/16", 2),
			{Table: routes, Match: []p4.Field{{ID: 1, Value: []byte{224, 0, 0, 1}, Prefix: 32}}, Action: copyTo, Params: [][]byte{{0, 1}}},
			guard(5, 10), guard(6, 11), pair(5),
		},
	}
}

// target returns a fake target.
func target(t testing.TB) *p4rttest.Target {
	t.Helper()
	server, err := p4rttest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// configOf returns a configuration for a target that answers, sooner or later.
func configOf(address string) Config {
	return Config{
		Target: address, Election: Election{Low: 10}, Pipeline: toy,
		MinPause: time.Millisecond, MaxPause: 20 * time.Millisecond, Heartbeat: 50 * time.Millisecond,
		Deadline: patience / 2, // before that of the test's calls
	}
}

// dial returns a client, which the test closes.
func dial(t testing.TB, c Config) *owned {
	t.Helper()
	client, err := Dial(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &owned{Client: client, t: t}
}

// owned is a client whose test takes the events.
type owned struct {
	*Client
	t       testing.TB
	waiting []Event
}

// next returns the next event.
func (o *owned) next() Event {
	o.t.Helper()
	for len(o.waiting) == 0 {
		events, err := o.Events(testContext(o.t))
		if err != nil {
			o.t.Fatalf("waiting for an event: %v", err)
		}
		o.waiting = events
	}
	e := o.waiting[0]
	o.waiting = o.waiting[1:]
	return e
}

// await returns the next event of a kind, and drops those before it.
func (o *owned) await(kind Kind) Event {
	o.t.Helper()
	for {
		if e := o.next(); e.Kind == kind {
			return e
		}
	}
}

// primary dials and pushes.
func newPrimary(t testing.TB, c Config) *owned {
	t.Helper()
	o := dial(t, c)
	o.await(Primary)
	if _, err := o.Push(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return o
}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
