package hierarchy

import (
	"errors"
	"reflect"
	"testing"
	"time"

	roles "github.com/tributary-fabric/tributary/internal/core/hierarchy"
)

// small is a hierarchy that a test can afford.
func small(seed uint64) Config {
	c := Million(seed)
	c.Zones, c.Size, c.Supervisors = 12, 64, 16
	return c
}

// TestMillionSmall (20, 21) runs all that the row of a million does on a few hundred
// nodes, twice: it holds what the row has to, in the same order each time, and
// the same seed gives the same times.
func TestMillionSmall(t *testing.T) {
	run := func() MillionResult {
		r, err := RunMillion(small(1), 6, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run()
	if again := run(); !reflect.DeepEqual(r, again) {
		t.Errorf("two runs of one seed:\n%+v\n%+v", r, again)
	}
	if r.Nodes != 12*64 || r.Base == 0 || r.Elected < r.Base || r.Boot < r.Elected || r.Boot > 10*time.Second {
		t.Errorf("boot %+v", r.BootResult)
	}
	if r.Load[1] > 2*12/16+2 {
		t.Errorf("a supervisor has %d of %d places in 12 zones", r.Load[1], 2*12)
	}
	tau := small(1).Zone.Settings.Tau
	for _, l := range r.Leaves {
		if l.Delegate <= 0 || l.Supervisors < l.Delegate || l.Everywhere < l.Supervisors {
			t.Errorf("%+v: notices do not climb", l)
		}
		if l.How != Silent && l.Everywhere > 700*time.Millisecond || l.Everywhere-l.Supervisors > 4*tau {
			t.Errorf("%+v: it takes too long", l)
		}
	}
	if len(r.Leaves) != 6 || len(r.Replaced) != 3 {
		t.Errorf("%d leaves, %d replacements", len(r.Leaves), len(r.Replaced))
	}
}

// TestStubsPlayWhatWasMeasured: a stub zone's delegates are elected when those of
// a measured zone were, and its view comes whole.
func TestStubsPlayWhatWasMeasured(t *testing.T) {
	cfg := small(3)
	cfg.Stubs, cfg.Zones = true, 1
	late := 3 * time.Second
	cfg.Base = []Measured{{Stable: time.Second, Elected: []time.Duration{2 * time.Second, late}}}
	w, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	seen := func(n int) time.Duration {
		if _, err := w.await("delegates", func() bool {
			summary, by := w.supervisors[0].Summary(0)
			return by > 0 && summary.Delegates == n && summary.Size == cfg.Size
		}); err != nil {
			t.Fatal(err)
		}
		return time.Duration(w.Now())
	}
	if first := seen(1); first < 2*time.Second || first > 2*time.Second+500*time.Millisecond {
		t.Errorf("the first is seen at %v", first)
	}
	if both := seen(2); both < late || both > late+500*time.Millisecond {
		t.Errorf("both are seen at %v", both)
	}
}

// TestManagementSmall (21): as many supervisors as zones of a single node.
func TestManagementSmall(t *testing.T) {
	cfg := Management(2)
	cfg.Zones, cfg.Supervisors = 48, 48
	r, err := Boot(cfg)
	if err != nil || r.Boot > 10*time.Second || r.Base != 0 || r.Load[1] > 4 {
		t.Errorf("%+v: %v", r, err)
	}
}

// TestSupervisorIsReplaced (20), and the zone's view is fetched from the one that took
// its place.
func TestSupervisorIsReplaced(t *testing.T) {
	cfg := small(4)
	cfg.Base = []Measured{{}}
	w, _, err := start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.replace("all supervisors of a zone"); err != nil {
		t.Fatal(err)
	}
	var at *roles.Supervisor
	for i, s := range w.supervisors {
		if w.mesh.Up(i) && len(s.Held()) == 0 {
			at = s
		}
	}
	if at == nil {
		t.Fatal("every supervisor has zones")
	}
	var got []roles.View
	w.views = func(s *roles.Supervisor, views []roles.View) {
		if s == at {
			got = append(got, views...)
		}
	}
	at.Fetch(0, false)
	if _, err := w.await("fetching", func() bool { return len(got) > 0 }); err != nil {
		t.Fatal(err)
	}
	if len(got[0].Members) != cfg.Size || got[0].Err != nil {
		t.Errorf("%d members, %v", len(got[0].Members), got[0].Err)
	}
}

// TestZonesAreSpreadEvenlyAgain (20): of eight supervisors two fail and come back, and
// each has its share of the zones again; meanwhile no zone is without a supervisor
// that has its view.
func TestZonesAreSpreadEvenlyAgain(t *testing.T) {
	cfg := small(5)
	cfg.Stubs, cfg.Zones, cfg.Supervisors, cfg.Roles.Balance = true, 24, 8, 5*time.Second
	w, _, err := start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	spread := func() (least, most int) {
		least = cfg.Zones
		for _, s := range w.supervisors {
			n := len(s.Held())
			least, most = min(least, n), max(most, n)
		}
		return least, most
	}
	for _, i := range []int{2, 5} {
		w.mesh.Kill(i)
		w.net.end(w.posts[i], w.Now())
	}
	w.RunFor(calm)
	for _, i := range []int{2, 5} {
		w.mesh.Start(i)
	}
	w.RunFor(time.Second)
	if least, most := spread(); least > 0 || most < 8 {
		t.Fatalf("%d to %d zones a supervisor before: the test shows nothing", least, most)
	}
	complete := func(wanted bool) func(*roles.Supervisor) bool {
		return func(s *roles.Supervisor) bool {
			for _, z := range w.stubs {
				summary, by := s.Summary(z.number)
				if summary.Digest != z.digest() || by < cfg.Roles.Supervisors || wanted && !w.complete(s, z.number, z.digest(), cfg.Size) {
					return false
				}
			}
			return true
		}
	}
	for range 120 {
		if w.RunFor(500 * time.Millisecond); !w.everywhere(complete(false)) {
			t.Fatalf("at %v a zone is not supervised as it should be", time.Duration(w.Now()))
		}
	}
	if least, most := spread(); most-least > 1 || !w.everywhere(complete(true)) {
		t.Errorf("%d to %d zones a supervisor, the census is complete: %v", least, most, w.everywhere(complete(true)))
	}
}

// TestSilentHostIsKnownEverywhere (21): to every supervisor within what the paper
// gives for a leave, whatever the moment at which the host falls silent between
// two of its heartbeats.
func TestSilentHostIsKnownEverywhere(t *testing.T) {
	cfg := small(6)
	cfg.Base = []Measured{{}}
	w, _, err := start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	beat := cfg.Zone.Settings.Heartbeat / time.Duration(cfg.Zone.Settings.Ks+cfg.Zone.Settings.Kr)
	var slowest time.Duration
	for k := range 16 {
		w.RunFor(calm + time.Duration(k)*beat/16)
		l, err := w.leave(Silent)
		if err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, l.Everywhere)
	}
	if slowest > 700*time.Millisecond || slowest < cfg.Zone.Settings.Grace {
		t.Errorf("known everywhere after up to %v, want 700 ms at most", slowest)
	}
	t.Logf("up to %v", slowest)
}

func TestConfig(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"zones":       func(c *Config) { c.Zones = 0 },
		"size":        func(c *Config) { c.Size = 0 },
		"supervisors": func(c *Config) { c.Supervisors = 0 },
		"contacts":    func(c *Config) { c.Contacts = 0 },
		"delay":       func(c *Config) { c.Zone.Delay = 0 },
	} {
		c := small(1)
		change(&c)
		if _, err := New(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
