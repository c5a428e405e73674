package gossip

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestID(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:7946"), netip.MustParseAddrPort("[fd00::1]:7946")
	id, err := MakeID("host-1", a, b)
	if err != nil || id != "host-1@10.0.0.1:7946,[fd00::1]:7946" {
		t.Fatalf("%q, %v", id, err)
	}
	if id.Name() != "host-1" || !slices.Equal(id.Endpoints(), []netip.AddrPort{a, b}) {
		t.Errorf("name %q, endpoints %v", id.Name(), id.Endpoints())
	}
	for _, bad := range []ID{"", "host", "host@", "@10.0.0.1:1", "h@10.0.0.1", "h@10.0.0.1:0", "h@10.0.0.1:1,", "h@[::0001]:1", ID(strings.Repeat("h", 250) + "@10.0.0.1:1")} {
		if err := bad.Validate(); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v, want ErrID", bad, err)
		}
	}
	if !ID("@10.0.0.1:1").Anonymous() || ID("h@10.0.0.1:1").Anonymous() || ID("@10.0.0.1").Anonymous() {
		t.Error("an ID is anonymous if it has endpoints and no name")
	}
}

// TestLife: the same node has another life with every start, and no two nodes
// have the same.
func TestLife(t *testing.T) {
	seen := map[Life]bool{}
	for _, id := range []ID{"a@10.0.0.1:1", "b@10.0.0.1:1", "a@10.0.0.2:1"} {
		for incarnation := range uint64(100) {
			life := id.Key().Life(incarnation)
			if seen[life] || life != id.Key().Life(incarnation) {
				t.Fatalf("life %x of %s %d", life, id, incarnation)
			}
			seen[life] = true
		}
	}
}

// TestVersionOrder: the incarnation counts before the minor.
func TestVersionOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Version{rapid.Uint64Max(3).Draw(t, "incarnation"), rapid.Uint32Max(3).Draw(t, "minor")}
		w := Version{rapid.Uint64Max(3).Draw(t, "incarnation"), rapid.Uint32Max(3).Draw(t, "minor")}
		plain := func(v Version) uint64 { return v.Incarnation*4 + uint64(v.Minor) }
		if v.Before(w) != (plain(v) < plain(w)) || v.Compare(w) != -w.Compare(v) {
			t.Errorf("%v, %v: Before %v, Compare %d", v, w, v.Before(w), v.Compare(w))
		}
	})
}
