package member

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Index stands for an ID in a Directory.
type Index int32

// Nobody is the Index of none.
const Nobody Index = -1

// Directory numbers IDs densely and knows their places on the ring. A core
// holds the IDs that it knows; an ID that nobody holds is forgotten by Sweep, and
// its number given to another. The driver sweeps when it has done what an Output
// wants, which may be about those that the core does not hold. The cores of a
// simulated zone share a directory.
type Directory struct {
	entries []entry
	text    []byte            // the IDs, each after its length; what is written is not changed
	used    int               // bytes of text that are of entries
	keys    core.Table[Index] // of entries that are not free
	free    []Index
	fresh   []Index // added, held by nobody at the last Sweep
}

// entry is an ID; 16 bytes.
type entry struct {
	key  gossip.Key
	at   uint32 // in text
	held int32  // vacant: the entry is free
}

const vacant = -1

// NewDirectory returns an empty directory.
func NewDirectory() *Directory { return &Directory{keys: core.Table[Index]{Free: Nobody}} }

// Len returns a number that no Index reaches.
func (d *Directory) Len() int { return len(d.entries) }

// ID returns the ID of i. It is a copy.
func (d *Directory) ID(i Index) gossip.ID { return gossip.ID(d.raw(i)) }

// raw returns the ID of i as packets have it. It must not be changed.
func (d *Directory) raw(i Index) []byte {
	e := &d.entries[i]
	if e.held == vacant {
		return nil
	}
	first := int(e.at) + 1
	end := first + int(d.text[e.at])
	return d.text[first:end:end]
}

// Key returns the place of i on the ring.
func (d *Directory) Key(i Index) gossip.Key { return d.entries[i].key }

// Find returns who has a key.
func (d *Directory) Find(key gossip.Key) (Index, bool) { return d.keys.Find(uint64(key), d.number) }

func (d *Directory) number(i Index) uint64 { return uint64(d.entries[i].key) }

// Add returns the number of id, which has gossip.MaxID bytes at most. It is
// forgotten at the next Sweep if nobody holds it by then.
func (d *Directory) Add(id gossip.ID) Index { return d.AddKeyed(id, id.Key()) }

// AddKeyed is Add for who knows the key already.
func (d *Directory) AddKeyed(id gossip.ID, key gossip.Key) Index {
	if i, ok := d.Find(key); ok {
		return i
	}
	i := Index(len(d.entries))
	if n := len(d.free); n > 0 {
		i, d.free = d.free[n-1], d.free[:n-1]
	} else {
		if len(d.entries) == cap(d.entries) { // not by as much as append would
			d.entries = append(make([]entry, 0, len(d.entries)*17/16+16), d.entries...)
		}
		d.entries = append(d.entries, entry{held: vacant})
	}
	d.entries[i] = entry{key: key, at: d.write(string(id))}
	d.keys.Add(i, d.number)
	d.fresh = append(d.fresh, i)
	return i
}

// write stores an ID and returns where. Where there is no room, what is of
// entries moves to a larger text, and what was forgotten stays behind.
func (d *Directory) write(id string) uint32 {
	size := 1 + len(id)
	if len(d.text)+size > cap(d.text) {
		text := make([]byte, 0, d.used+d.used/16+size+gossip.MaxID)
		for i := range d.entries {
			if e := &d.entries[i]; e.held != vacant {
				end := int(e.at) + 1 + int(d.text[e.at])
				at := uint32(len(text))
				text = append(text, d.text[e.at:end]...)
				e.at = at
			}
		}
		d.text = text
	}
	at := uint32(len(d.text))
	d.text = append(append(d.text, byte(len(id))), id...)
	d.used += size
	return at
}

// Hold keeps i until it is released as often.
func (d *Directory) Hold(i Index) { d.entries[i].held++ }

// Release undoes a Hold.
func (d *Directory) Release(i Index) {
	if d.entries[i].held--; d.entries[i].held == 0 {
		d.fresh = append(d.fresh, i)
	}
}

// Sweep forgets what nobody holds.
func (d *Directory) Sweep() {
	for _, i := range d.fresh {
		if e := &d.entries[i]; e.held == 0 {
			d.keys.Remove(i, d.number)
			d.used -= 1 + len(d.raw(i))
			*e = entry{held: vacant}
			d.free = append(d.free, i)
		}
	}
	if d.fresh = d.fresh[:0]; cap(d.fresh) > keptFresh {
		d.fresh = nil
	}
}

// keptFresh is how long a list of what was added is kept for the next one.
const keptFresh = 64
