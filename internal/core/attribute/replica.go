package attribute

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// Errors of Set and Delete, to be tested with errors.Is.
var (
	ErrKey    = errors.New("attribute: invalid key")
	ErrValue  = errors.New("attribute: the value is too long")
	ErrFull   = errors.New("attribute: the map is full")
	ErrAbsent = errors.New("attribute: no such key")
)

// replica is what is held of one life's map: M(p) of the paper.
type replica struct {
	life    attributes.Life
	version uint64          // of the map: that of the last entry; 0 if it is empty
	sent    uint64          // reported to all neighbours, at most version
	pending uint64          // asked for from target, above version; 0: nothing is
	target  attributes.Life // a neighbour, while pending
	floor   uint64          // tombstones up to this version were thrown away
	entries []attributes.Entry
	bytes   int  // of entries
	listed  bool // in Core.changed
}

// find returns the place of a key's entry; -1 if it has none. Maps are small,
// and entries in the order of versions are what replies are cut from.
func (r *replica) find(key string) int {
	return slices.IndexFunc(r.entries, func(e attributes.Entry) bool { return e.Key == key })
}

// above returns the entries of versions above base.
func (r *replica) above(base uint64) []attributes.Entry {
	i, _ := slices.BinarySearchFunc(r.entries, base+1, func(e attributes.Entry, v uint64) int { return cmp.Compare(e.Version, v) })
	return r.entries[i:]
}

// put takes an entry, which is newer than all others, in place of its key's.
// Entries are never changed in place: messages share them.
func (r *replica) put(e attributes.Entry) {
	if i := r.find(e.Key); i >= 0 {
		r.bytes -= r.entries[i].Size()
		r.entries = slices.Concat(r.entries[:i], r.entries[i+1:])
	}
	r.entries = append(r.entries, e)
	r.bytes += e.Size()
	r.version = e.Version
}

// dropTombstones throws away the tombstones of versions up to floor, except for the
// newest entry, whose version is the map's.
func (r *replica) dropTombstones(floor uint64) {
	r.floor = max(r.floor, floor)
	kept := make([]attributes.Entry, 0, len(r.entries))
	for i, e := range r.entries {
		if e.Deleted && e.Version <= r.floor && i < len(r.entries)-1 {
			r.bytes -= e.Size()
			continue
		}
		kept = append(kept, e)
	}
	r.entries = kept
}

// gone returns the keys of old, tombstones aside, that r does not have.
func (r *replica) gone(old []attributes.Entry) []string {
	var keys []string
	for i := range old {
		if !old[i].Deleted && r.find(old[i].Key) < 0 {
			keys = append(keys, old[i].Key)
		}
	}
	return keys
}

// Set writes a key of the core's own map. The value is copied. Deadline then
// reports when the next Step is due, which sends it.
func (c *Core) Set(key string, value []byte) error {
	switch {
	case len(key) == 0 || len(key) > attributes.MaxKey:
		return fmt.Errorf("%w: %d bytes, want 1 to %d", ErrKey, len(key), attributes.MaxKey)
	case len(value) > attributes.MaxValue:
		return fmt.Errorf("%w: %d bytes of %q, want at most %d", ErrValue, len(value), key, attributes.MaxValue)
	}
	return c.write(attributes.Entry{Key: key, Value: slices.Clone(value)})
}

// Delete deletes a key of the core's own map, as Set writes one.
func (c *Core) Delete(key string) error {
	if _, ok := c.Get(c.cfg.Self, key); !ok {
		return fmt.Errorf("%w: %q", ErrAbsent, key)
	}
	return c.write(attributes.Entry{Key: key, Deleted: true})
}

// tombstones is how many of them a map keeps before the older half of them goes.
const tombstones = 64

func (c *Core) write(e attributes.Entry) error {
	own := &c.replicas[0]
	if size := own.sizeWith(&e); size > attributes.MaxMap {
		own.dropTombstones(own.version)
		if size = own.sizeWith(&e); size > attributes.MaxMap {
			return fmt.Errorf("%w: %d bytes with %q, want at most %d", ErrFull, size, e.Key, attributes.MaxMap)
		}
	}
	e.Version = own.version + 1
	own.put(e)
	own.trim()
	c.touch(0)
	return nil
}

// sizeWith returns the bytes of the map after a write.
func (r *replica) sizeWith(e *attributes.Entry) int {
	size := r.bytes + e.Size()
	if i := r.find(e.Key); i >= 0 {
		size -= r.entries[i].Size()
	}
	return size
}

// trim throws the older half of the tombstones away when they are too many.
func (r *replica) trim() {
	var dead []uint64
	for i := range r.entries {
		if r.entries[i].Deleted {
			dead = append(dead, r.entries[i].Version)
		}
	}
	if len(dead) > tombstones {
		r.dropTombstones(dead[len(dead)/2])
	}
}

// Get returns the value of a member's key, and whether it has one. The value
// must not be changed.
func (c *Core) Get(life attributes.Life, key string) ([]byte, bool) {
	r := c.replica(life)
	if r == nil {
		return nil, false
	}
	i := r.find(key)
	if i < 0 || r.entries[i].Deleted {
		return nil, false
	}
	return r.entries[i].Value, true
}

// All returns the keys and values of a member's map, in the order of their
// versions. The values must not be changed.
func (c *Core) All(life attributes.Life) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		r := c.replica(life)
		if r == nil {
			return
		}
		for _, e := range r.entries {
			if !e.Deleted && !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Version returns the version of a member's map as it is known here; 0 is the
// empty one.
func (c *Core) Version(life attributes.Life) uint64 {
	if r := c.replica(life); r != nil {
		return r.version
	}
	return 0
}

// Has reports whether a life is in the view.
func (c *Core) Has(life attributes.Life) bool {
	_, in := c.view.Find(numberOf(life), numberOf)
	return in
}

// numberOf is what lives are found by: times 2^64 over the golden ratio, so that those
// near each other are apart (Knuth, The Art of Computer Programming 3, 6.4).
func numberOf(life attributes.Life) uint64 { return uint64(life) * 0x9e3779b97f4a7c15 }
