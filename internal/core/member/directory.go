package member

import (
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
	table   []Index // open addressing by key; empty: Nobody
	free    []Index
	fresh   []Index // added, held by nobody at the last Sweep
}

// entry is an ID; free if it is empty.
type entry struct {
	id   gossip.ID
	raw  []byte // the ID again, as packets have it
	key  gossip.Key
	held int32
}

// NewDirectory returns an empty directory.
func NewDirectory() *Directory {
	d := &Directory{}
	d.grow(64)
	return d
}

// Len returns a number that no Index reaches.
func (d *Directory) Len() int { return len(d.entries) }

// ID returns the ID of i.
func (d *Directory) ID(i Index) gossip.ID { return d.entries[i].id }

func (d *Directory) raw(i Index) []byte { return d.entries[i].raw }

// Key returns the place of i on the ring.
func (d *Directory) Key(i Index) gossip.Key { return d.entries[i].key }

// Find returns who has a key.
func (d *Directory) Find(key gossip.Key) (Index, bool) {
	for at := d.slot(key); ; at++ {
		i := d.table[at&(len(d.table)-1)]
		if i == Nobody {
			return Nobody, false
		}
		if d.entries[i].key == key {
			return i, true
		}
	}
}

// Add returns the number of id. It is forgotten at the next Sweep if nobody
// holds it by then.
func (d *Directory) Add(id gossip.ID) Index { return d.AddKeyed(id, id.Key()) }

// AddKeyed is Add for who knows the key already.
func (d *Directory) AddKeyed(id gossip.ID, key gossip.Key) Index {
	if i, ok := d.Find(key); ok {
		return i
	}
	if 2*(len(d.entries)-len(d.free)+1) > len(d.table) {
		d.grow(2 * len(d.table))
	}
	i := Index(len(d.entries))
	if n := len(d.free); n > 0 {
		i, d.free = d.free[n-1], d.free[:n-1]
	} else {
		d.entries = append(d.entries, entry{})
	}
	d.entries[i] = entry{id: id, raw: []byte(id), key: key}
	d.insert(i)
	d.fresh = append(d.fresh, i)
	return i
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
		if e := &d.entries[i]; e.held == 0 && e.id != "" {
			d.remove(i)
			*e = entry{}
			d.free = append(d.free, i)
		}
	}
	d.fresh = d.fresh[:0]
}

func (d *Directory) slot(key gossip.Key) int { return int(uint64(key) >> 1) }

func (d *Directory) insert(i Index) {
	at := d.slot(d.entries[i].key)
	for d.table[at&(len(d.table)-1)] != Nobody {
		at++
	}
	d.table[at&(len(d.table)-1)] = i
}

// remove takes i out of the table and moves up those that it was in the way of.
func (d *Directory) remove(i Index) {
	mask := len(d.table) - 1
	at := d.slot(d.entries[i].key) & mask
	for d.table[at] != i {
		at = (at + 1) & mask
	}
	d.table[at] = Nobody
	for at = (at + 1) & mask; d.table[at] != Nobody; at = (at + 1) & mask {
		moved := d.table[at]
		d.table[at] = Nobody
		d.insert(moved)
	}
}

func (d *Directory) grow(size int) {
	d.table = make([]Index, size)
	for at := range d.table {
		d.table[at] = Nobody
	}
	for i := range d.entries {
		if d.entries[i].id != "" {
			d.insert(Index(i))
		}
	}
}
