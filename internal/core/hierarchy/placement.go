package hierarchy

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
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

func (s Summary) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.Delegates))
	b = binary.AppendUvarint(b, uint64(s.Size))
	return binary.BigEndian.AppendUint64(b, s.Digest)
}

func readSummary(b []byte) (s Summary, ok bool) {
	delegates, n := binary.Uvarint(b)
	if n <= 0 || delegates > MaxDelegates {
		return s, false
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 || size > 1<<31 || len(b) != n+m+8 {
		return s, false
	}
	return Summary{int(delegates), int(size), binary.BigEndian.Uint64(b[n+m:])}, true
}

// holder is a node that says that it supervises a zone.
type holder struct {
	life attributes.Life
	Summary
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

// put notes that a node supervises a zone.
func (h *holdings) put(zone wire.Zone, life attributes.Life, s Summary) {
	all := h.zones[zone]
	i, was := find(all, life)
	if was {
		all[i].Summary = s
		return
	}
	h.zones[zone] = slices.Insert(all, i, holder{life, s})
	h.loads[life]++
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
// many as there are, the lowest weight first. These are those who do already, and of too many those of
// the lowest weight. Places that are free go around: a zone has one at home and
// the others at equal distances around the ring, and what is there, or just
// behind, takes it.
func (h *holdings) assigned(zone wire.Zone, mesh Zone, wanted int) []attributes.Life {
	var chosen []attributes.Life
	for _, one := range h.zones[zone] {
		chosen = append(chosen, one.life)
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
