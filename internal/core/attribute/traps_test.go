package attribute

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// expect runs lines and compares what comes of the last one.
func (t *trial) expect(tt *testing.T, want string, lines ...string) {
	tt.Helper()
	var got string
	for _, line := range lines {
		got = strings.ReplaceAll(strings.TrimSpace(t.do(line)), "\n", "; ")
	}
	if got != want {
		tt.Errorf("%s:\ngot  %s\nwant %s", lines[len(lines)-1], got, want)
	}
}

func ring() *trial {
	t := newTrial()
	t.do("join b; join c; join p; join q; up b; up c")
	return t
}

// TestNothingChangedNoTraffic (15, trap) is the trap of the update stage: only what is
// newer than was sent is reported, once, and a core at rest wants no step.
func TestNothingChangedNoTraffic(t *testing.T) {
	trial := ring()
	trial.expect(t, "to b: digest a:1; to c: digest a:1", "set color red")
	trial.expect(t, "", "pass 24h")
	if due := trial.c.Deadline(); due != core.Never {
		t.Errorf("it waits for %v", due)
	}
	// What is written again within the period goes out once.
	trial.do("set color blue", "set color green", "set size 1")
	trial.expect(t, "to b: digest a:4; to c: digest a:4", "pass 1h")
}

// TestBurst (15): after a quiet time so many digests go at once, and then one in a
// period.
func TestBurst(t *testing.T) {
	trial := ring()
	trial.c.cfg.Burst = 3
	trial.do("pass 1h")
	for range 3 {
		trial.expect(t, fmt.Sprintf("to b: digest a:%[1]d; to c: digest a:%[1]d", trial.c.Version(life("a"))+1), "set color red")
	}
	trial.expect(t, "", "set color red", "pass 199ms")
	trial.expect(t, "to b: digest a:4; to c: digest a:4", "pass 1ms")
	trial.expect(t, "", "set color red", "pass 199ms")
	trial.do("pass 1h")
	trial.expect(t, "to b: digest a:6; to c: digest a:6", "set color red")
}

// TestPendingSuppressesDuplicates (14, 16, trap) is the trap of the request stage: all
// neighbours offer the same, one is asked.
func TestPendingSuppressesDuplicates(t *testing.T) {
	trial := ring()
	trial.expect(t, "to b: request p:0", "from b digest p:5; from c digest p:5")
	trial.expect(t, "", "from c digest p:5")
	trial.do("from b reply p:0..5 k=v@5")
	trial.expect(t, "", "from c digest p:5; from b digest p:4")
}

// TestEmptyAnswerIsAskedOfAll (17): who was asked has nothing, unlike one whose offer
// was suppressed meanwhile.
func TestEmptyAnswerIsAskedOfAll(t *testing.T) {
	trial := ring()
	trial.do("from b digest p:5", "from c digest p:5")
	trial.expect(t, "to b: push p:0; to c: push p:0", "from b reply p:none")
	trial.expect(t, "to b: digest p:5; to c: digest p:5; notice p 0..5 k", "from c reply p:0..5 k=v@5")
	trial.expect(t, "", "from b push p:5 q:0") // an empty answer to a push is none
}

// TestLostNeighboursRequestsGoToAll (18, trap) is the trap of a lost neighbour: what is
// pending there, and nothing else, is asked of all that are left.
func TestLostNeighboursRequestsGoToAll(t *testing.T) {
	trial := ring()
	trial.do("up d", "from b digest p:5", "from c digest q:5")
	trial.expect(t, "to c: push p:0; to d: push p:0", "down b")
	trial.expect(t, "", "pass 1h")
	trial.expect(t, "to d: push q:0", "down c")
}

// TestNewNeighbourGetsTheFullDigest (18), also of what was reported to others before.
func TestNewNeighbourGetsTheFullDigest(t *testing.T) {
	trial := ring()
	trial.do("set color red", "from b digest p:5", "from b reply p:0..5 k=v@5", "pass 1s")
	trial.expect(t, "to d: digest a:1 p:5", "up d")
}

// TestLeaveDeletesTheReplica (19), and who joins begins empty; so does a new life of
// the same member, whose versions begin at 1 again.
func TestLeaveDeletesTheReplica(t *testing.T) {
	trial := ring()
	trial.do("from b digest p:5", "from b reply p:0..5 k=v@5", "left p")
	if _, ok := trial.c.Get(life("p"), "k"); ok || trial.c.Version(life("p")) != 0 || trial.c.Has(life("p")) {
		t.Error("a replica of one that has left")
	}
	trial.do("pass 1h", "join p")
	if v := trial.c.Version(life("p")); v != 0 {
		t.Errorf("it begins at version %d", v)
	}
}

// TestDigestBeforeItsOwnerJoins: digests are not held up by a period, views are,
// and a digest comes but once.
func TestDigestBeforeItsOwnerJoins(t *testing.T) {
	trial := ring()
	trial.expect(t, "", "from b digest r:3")
	trial.expect(t, "to b: request r:0", "join r")
}

// TestFalseLeaveIsMadeGood: who was taken for dead here alone comes back, and its
// map, which nobody will offer again, is asked for.
func TestFalseLeaveIsMadeGood(t *testing.T) {
	trial := ring()
	trial.do("from b digest p:5", "from b reply p:0..5 k=v@5", "left p")
	trial.expect(t, "to b: push p:0; to c: push p:0", "join p")
}

// TestForgottenOffersAskOfAll: beyond the bound of what is remembered, whoever
// joins is asked about, as long as one of the forgotten could come back.
func TestForgottenOffersAskOfAll(t *testing.T) {
	trial := ring()
	trial.c.pending.limit = 2
	trial.do("from b digest r:1", "from b digest s:1", "from b digest t:1")
	trial.expect(t, "to b: push r:0; to c: push r:0", "join r")
	trial.expect(t, "to b: request s:0", "join s")
	trial.do("pass 11m")
	trial.expect(t, "", "join u")
}

// TestOwnerAloneWrites (13): nobody's word changes one's own map.
func TestOwnerAloneWrites(t *testing.T) {
	trial := ring()
	trial.do("set color red", "from b digest a:9", "from b reply a:0..9 color=blue@9")
	if v, _ := trial.c.Get(life("a"), "color"); string(v) != "red" {
		t.Errorf("color %s", v)
	}
}

// TestTombstones (13, 19): a deleted key has the map's next version, and stays deleted
// where an older value comes after it. Tombstones that have been thrown away are
// made good by a whole map.
func TestTombstones(t *testing.T) {
	trial := ring()
	trial.do("set k v", "set j w", "delete k")
	trial.expect(t, "to b: reply a:1..3 j=w@2 -k@3", "from b request a:1")
	trial.do("from b digest p:3", "from b reply p:0..3 -k@3", "from c reply p:0..2 k=v@2")
	if _, ok := trial.c.Get(life("p"), "k"); ok {
		t.Error("a deleted key came back")
	}
	for i := range 2 * tombstones {
		trial.do(fmt.Sprintf("set x%d 1", i), fmt.Sprintf("delete x%d", i))
	}
	r := &trial.c.replicas[0]
	dead := 0
	for _, e := range r.entries {
		if e.Deleted {
			dead++
		}
	}
	if dead == 0 || dead > tombstones || r.floor == 0 {
		t.Errorf("%d tombstones, those up to %d are gone", dead, r.floor)
	}
	s := trial.c.section(attributes.Map{Life: life("a"), Version: 1})
	if s.Base != 0 || s.Floor != r.floor || s.Entries[0].Key != "j" {
		t.Errorf("section %+v", s)
	}
	trial.expect(t, "notice p 3..4 j; notice p 4..9 j l", "from c reply p:3..4 j=w@4; from c reply p:0..9^8 l=u@9")
}

// TestLimits: errors name what is too long, and how long it may be.
func TestLimits(t *testing.T) {
	c := newTrial().c
	long := strings.Repeat("k", attributes.MaxKey+1)
	for _, test := range []struct {
		err, want error
	}{
		{c.Set("", nil), ErrKey},
		{c.Set(long, nil), ErrKey},
		{c.Set(long[1:], nil), nil},
		{c.Set("k", make([]byte, attributes.MaxValue+1)), ErrValue},
		{c.Set("k", make([]byte, attributes.MaxValue)), nil},
		{c.Delete("j"), ErrAbsent},
		{c.Delete("k"), nil},
		{c.Delete("k"), ErrAbsent},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%v, want %v", test.err, test.want)
		}
	}
	var err error
	for i := 0; err == nil; i++ {
		err = c.Set(fmt.Sprint(i), make([]byte, attributes.MaxValue))
	}
	before := c.Version(c.cfg.Self)
	if !errors.Is(err, ErrFull) || c.replicas[0].bytes > attributes.MaxMap {
		t.Errorf("%v with %d bytes", err, c.replicas[0].bytes)
	}
	if err := c.Set("0", []byte("short")); err != nil || c.Version(c.cfg.Self) != before+1 {
		t.Errorf("a shorter value: %v, version %d after %d", err, c.Version(c.cfg.Self), before)
	}
}

// TestConfig: the default is valid, and what is wrong is named.
func TestConfig(t *testing.T) {
	if err := DefaultConfig(1).Validate(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"no life":        func(c *Config) { c.Self = 0 },
		"period":         func(c *Config) { c.Period = 0 },
		"burst":          func(c *Config) { c.Burst = 0 },
		"messages":       func(c *Config) { c.MessageBytes = MinMessageBytes - 1 },
		"pending offers": func(c *Config) { c.PendingOffers = 0 },
		"memory":         func(c *Config) { c.Memory = -time.Second },
	} {
		c := DefaultConfig(1)
		change(&c)
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
