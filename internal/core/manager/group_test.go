package manager

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestCreateRefuses(t *testing.T) {
	good := func() Create {
		return Create{Name: "x", Members: []string{"h0", "h1"}, ChunkBytes: 1024, Window: 8, Secret: [32]byte{1}}
	}
	for _, c := range []struct {
		name   string
		change func(*Create)
		want   error
	}{
		{"good", func(*Create) {}, nil},
		{"no name", func(c *Create) { c.Name = "" }, ErrRequest},
		{"long name", func(c *Create) { c.Name = strings.Repeat("x", 256) }, ErrRequest},
		{"chunk too small", func(c *Create) { c.ChunkBytes = 15 }, ErrRequest},
		{"chunk too large", func(c *Create) { c.ChunkBytes = 1 << 16 }, ErrRequest},
		{"window not a power of two", func(c *Create) { c.Window = 6 }, ErrRequest},
		{"window too large", func(c *Create) { c.Window = 128 }, ErrRequest},
		{"unknown function", func(c *Create) { c.Functions = 1 << 31 }, ErrRequest},
		{"no secret", func(c *Create) { c.Secret = [32]byte{} }, ErrRequest},
		{"nobody", func(c *Create) { c.Members = nil }, ErrTooFew},
		{"alone", func(c *Create) { c.Members = c.Members[:1] }, ErrTooFew},
		{"too many", func(c *Create) { c.Members = []string{"h0", "h1", "h2", "h3", "h4"} }, ErrTooMany},
		{"twice", func(c *Create) { c.Members = []string{"h0", "h1", "h0"} }, ErrDuplicate},
		{"no name of a host", func(c *Create) { c.Members = []string{"h0", "\x1b[2J"} }, ErrUnknownHost},
		{"a switch", func(c *Create) { c.Members = []string{"h0", "leaf-0"} }, ErrUnknownHost},
		{"other members", func(c *Create) { c.Name = "g" }, ErrExists},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(smallFabric(), Config{MaxWindow: 64, MaxMembers: 4}, 100)
			w.create("g", 8, 0, 3)
			in := good()
			c.change(&in)
			if r := w.ask(in); !errors.Is(r.Err, c.want) || (r.Err == nil) != (r.Group == 2) || w.fault != nil {
				t.Fatalf("%+v, want %v; %v", r, c.want, w.fault)
			}
		})
	}
}

func TestCreateAgain(t *testing.T) {
	w := newWorld(smallFabric(), Config{MaxGroups: 2}, 100)
	first := w.create("g", 8, 0, 3)
	if again := w.create("g", 8, 0, 3); again.Group != first.Group || !again.Found || first.Found {
		t.Fatalf("%+v, then %+v", first, again)
	}
	w.create("h", 8, 0, 3)
	if r := w.create("i", 8, 0, 3); !errors.Is(r.Err, ErrTooManyGroups) {
		t.Fatalf("a third group: %+v", r)
	}
	// Numbers are not used again, names are.
	w.ask(Release{Group: first.Group})
	w.run(time.Minute)
	if r := w.create("g", 8, 0, 3); r.Group != 3 || r.Found || w.fault != nil {
		t.Fatalf("%+v; %v", r, w.fault)
	}
	if id, ok := w.core.Find("g"); !ok || id != 3 {
		t.Fatalf("g is group %d", id)
	}
}

func TestUnknown(t *testing.T) {
	w := connected(100)
	w.create("g", 8, 0, 3)
	if r := w.ask(Release{Group: 9}); !errors.Is(r.Err, ErrUnknownGroup) {
		t.Errorf("release: %+v", r)
	}
	if r := w.ask(Drain{Switch: "h0"}); !errors.Is(r.Err, ErrUnknownSwitch) {
		t.Errorf("drain of a host: %+v", r)
	}
	for _, c := range []struct {
		in   Watch
		want error
	}{
		{Watch{Group: 9, DataAddr: netip.MustParseAddrPort("10.0.0.1:1")}, ErrUnknownGroup},
		{Watch{Group: 1, Rank: 2, DataAddr: netip.MustParseAddrPort("10.0.0.1:1")}, ErrUnknownRank},
		{Watch{Group: 1, Rank: 1}, ErrRequest},
		{Watch{Group: 1, Rank: 1, DataAddr: netip.MustParseAddrPort("10.0.0.1:0")}, ErrRequest},
	} {
		w.step(c.in)
		if n := w.out.Notices; len(n) != 1 || !n[0].End || !errors.Is(n[0].Err, c.want) {
			t.Errorf("%+v: %+v, want %v", c.in, n, c.want)
		}
	}
	if _, ok := w.core.Group(9); ok || w.fault != nil {
		t.Errorf("group 9 is known; %v", w.fault)
	}
}

// A second stream of a member ends the first, and only the second's end counts.
func TestWatchReplaced(t *testing.T) {
	w := running(t)
	first := w.members[[2]uint32{1, 0}].stream
	w.watch(1, 0)
	if n := w.out.Notices; len(n) != 1 || n[0].Stream != first || !errors.Is(n[0].Err, ErrReplaced) {
		t.Fatalf("%+v", n)
	}
	if o := w.out.Offers; len(o) != 1 || o[0].Stream == first || o[0].Epoch != 2 {
		t.Fatalf("%+v", o)
	}
	w.step(Unwatch{Group: 1, Rank: 0, Stream: first})
	if s := w.core.Groups()[0]; s.Watching != 3 {
		t.Fatalf("%d watch", s.Watching)
	}
}

// TestHostThatIsASwitch: the error about a switch without an agent, as a host with lldpd may
// be, says what makes it one.
func TestHostThatIsASwitch(t *testing.T) {
	w := newWorld(smallFabric(), Config{}, 100)
	w.core.named("leaf-0").unattended = true
	in := Create{Name: "x", Members: []string{"h0", "leaf-0"}, ChunkBytes: 1024, Window: 8, Secret: [32]byte{1}}
	if r := w.ask(in); !errors.Is(r.Err, ErrUnknownHost) || !strings.Contains(r.Err.Error(), "lldpd") || !strings.Contains(r.Err.Error(), "station") {
		t.Errorf("%v", r.Err)
	}
}
