package hierarchy

import (
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestReadContacts: what is not valid ends the list.
func TestReadContacts(t *testing.T) {
	c := contacts{known: []gossip.ID{"s1@10.0.0.1:1", "s2@10.0.0.2:1"}}
	b := c.append(nil)
	for _, test := range []struct {
		b    []byte
		want int
	}{{nil, 0}, {b, 2}, {b[:len(b)-1], 1}, {b[:1], 0}, {[]byte{0}, 0}, {append(slices.Clone(b), 3, 'a', '@', 'b'), 2}, {[]byte{255, 1}, 0}, {slices.Repeat(b, maxContacts), maxContacts}} {
		if got := readContacts(test.b); len(got) != test.want {
			t.Errorf("%q: %v, want %d", test.b, got, test.want)
		}
	}
	var other contacts
	other.reported(slices.Repeat(c.known, maxContacts))
	other.reported(nil)
	if len(other.known) != maxContacts {
		t.Errorf("it knows %d, want %d", len(other.known), maxContacts)
	}
}
