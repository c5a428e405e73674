package hierarchy

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/cursor"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// zoneKey is what the attribute of a zone begins with, at a supervisor; the
// zone's number follows.
const zoneKey = "tributary.zone/"

func keyOf(zone wire.Zone) string { return zoneKey + strconv.FormatUint(uint64(zone), 10) }

// zoneOf returns the zone whose attribute a key is.
func zoneOf(key string) (wire.Zone, bool) {
	digits, is := strings.CutPrefix(key, zoneKey)
	n, err := strconv.ParseUint(digits, 10, 32)
	return wire.Zone(n), is && err == nil
}

// Summary is what a supervisor publishes of a zone.
type Summary struct {
	Delegates int    // that are connected to it
	Size      int    // of the view
	Digest    uint64 // exclusive or of the lives in the view
}

// publication is the attribute of a zone: what a supervisor says of it.
type publication struct {
	Summary
	heir attributes.Life // whom it hands the zone over to; nobody if it does not
}

// nobody is the life of none.
const nobody attributes.Life = 0

func (p publication) bytes() []byte {
	c := cursor.Cursor{Writes: true}
	p.fields(&c)
	return c.B
}

func readPublication(b []byte) (p publication, ok bool) {
	c := cursor.Cursor{B: b}
	p.fields(&c)
	return p, !c.Bad && len(c.B) == 0
}

func (p *publication) fields(c *cursor.Cursor) {
	cursor.Varint(c, &p.Delegates, MaxDelegates)
	cursor.Varint(c, &p.Size, 1<<31)
	cursor.Uint64(c, &p.Digest)
	if p.heir != nobody || !c.Writes && len(c.B) > 0 {
		cursor.Uint64(c, &p.heir)
	}
}

// holder is a node that says that it supervises a zone.
type holder struct {
	life attributes.Life
	publication
}

// holdings are the zones and who supervises them: the census, as the attributes
// of the management zone have it.
type holdings struct {
	zones map[wire.Zone][]holder  // by life, rising
	loads map[attributes.Life]int // zones that each supervises
}

func newHoldings() holdings {
	return holdings{map[wire.Zone][]holder{}, map[attributes.Life]int{}}
}

// put notes that a node supervises a zone, and reports whether that changes who
// does.
func (h *holdings) put(zone wire.Zone, life attributes.Life, p publication) bool {
	all := h.zones[zone]
	i, was := find(all, life)
	if was {
		was = all[i].heir == p.heir
		all[i].publication = p
		return !was
	}
	h.zones[zone] = slices.Insert(all, i, holder{life, p})
	h.loads[life]++
	return true
}

// drop notes that it does not, and reports whether it did.
func (h *holdings) drop(zone wire.Zone, life attributes.Life) bool {
	all := h.zones[zone]
	i, was := find(all, life)
	if !was {
		return false
	}
	if h.zones[zone] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(h.zones, zone)
	}
	if h.loads[life]--; h.loads[life] == 0 {
		delete(h.loads, life)
	}
	return true
}

// after returns who is to supervise a zone in the place of h: its heir while that
// is in the view, or itself.
func (h *holder) after(mesh Zone) attributes.Life {
	if _, in := mesh.Find(h.heir); h.heir != nobody && in {
		return h.heir
	}
	return h.life
}

// heirOf returns to whom a node is to hand over one of its zones, if to anybody,
// so that all have as many as each other, or one more. Everybody computes alike
// who gives to whom: of those with the most zones one after the other gives one
// to who has the fewest by then.
func (h *holdings) heirOf(giver attributes.Life, mesh Zone) (attributes.Life, bool) {
	ring := mesh.View()
	loads := make(map[attributes.Life]int, len(ring))
	for _, i := range ring {
		loads[mesh.Life(i)] = 0
	}
	for _, all := range h.zones {
		for k := range all {
			if to := all[k].after(mesh); to == all[k].life || !holds(all, to) {
				loads[to]++
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(loads), func(a, b attributes.Life) int {
		return cmp.Or(cmp.Compare(loads[a], loads[b]), cmp.Compare(a, b))
	})
	for k := len(order) - 1; k >= 0; k-- {
		least := order[0]
		for _, life := range order[:k] {
			if loads[life] < loads[least] {
				least = life
			}
		}
		switch {
		case loads[order[k]] < loads[least]+2:
			return nobody, false
		case order[k] == giver:
			return least, true
		}
		loads[least]++
	}
	return nobody, false
}

func holds(all []holder, life attributes.Life) bool {
	_, is := find(all, life)
	return is
}

func find(all []holder, life attributes.Life) (int, bool) {
	return slices.BinarySearchFunc(all, life, func(h holder, l attributes.Life) int { return cmp.Compare(h.life, l) })
}

// home returns the place on a ring of n nodes at which a zone is at home. The
// multiples of the golden ratio lie evenly in the unit interval (Knuth, The Art
// of Computer Programming 3, 6.4), so that zones numbered from 0 are spread to
// within one or two of their mean, however many there are.
func home(zone wire.Zone, n int) int {
	fraction := uint32(zone) * 2654435769 // 2^32 over the golden ratio
	return int(uint64(fraction) * uint64(n) >> 32)
}

// assigned returns the lives of those who are to supervise a zone, wanted or as
// many as there are, the lowest weight first. These are those who do already, or
// their heirs, and of too many those of the lowest weight. Places that are free go
// around: a zone has one at home and the others at equal distances around the ring,
// and what is there, or just behind, takes it.
func (h *holdings) assigned(zone wire.Zone, mesh Zone, wanted int) []attributes.Life {
	var chosen []attributes.Life
	for _, one := range h.zones[zone] {
		if life := one.after(mesh); !slices.Contains(chosen, life) {
			chosen = append(chosen, life)
		}
	}
	byWeight := func(a, b attributes.Life) int { return cmp.Compare(weight(zone, a), weight(zone, b)) }
	slices.SortFunc(chosen, byWeight)
	if len(chosen) >= wanted {
		return chosen[:wanted]
	}
	ring := mesh.View()
	wanted = min(wanted, len(ring))
	place := func(k int) int { return home(zone, len(ring)) + k*len(ring)/wanted }
	for k := 0; k < wanted && len(chosen) < wanted; k++ {
		one, next := mesh.Life(ring[place(k)%len(ring)]), mesh.Life(ring[(place(k)+1)%len(ring)])
		switch {
		case slices.Contains(chosen, one) || slices.Contains(chosen, next): // it is taken
		case h.loads[next]+2 <= h.loads[one]:
			chosen = append(chosen, next)
		default:
			chosen = append(chosen, one)
		}
	}
	for k := 0; len(chosen) < wanted; k++ {
		if life := mesh.Life(ring[(place(0)+k)%len(ring)]); !slices.Contains(chosen, life) {
			chosen = append(chosen, life)
		}
	}
	slices.SortFunc(chosen, byWeight)
	return chosen
}
