package openconfig

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// ErrValue is wrapped by the errors of Device.Set about a value.
var ErrValue = errors.New("wrong value")

// Leaves lists what the device has reported: paths as Path.String writes them, and
// values. The order is the same each time.
func (d *Device) Leaves() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) { d.list(false, yield) }
}

// list is Leaves, with aliases or without.
func (d *Device) list(aliases bool, yield func(string, Value) bool) {
	for _, list := range theTable.listers {
		if !list(d, aliases, yield) {
			return
		}
	}
}

// Set applies a leaf's value; None removes it. Of paths that are not in the schema it
// reports that they are not known, and changes nothing. An error wraps ErrValue, names the
// path, and leaves d as it was.
func (d *Device) Set(p Path, v Value) (known bool, err error) {
	r, keys := find(p)
	if r == nil {
		return false, nil
	}
	if v, err = r.take(v); err == nil {
		err = r.set(d, keys, v)
	}
	if err != nil {
		return true, fmt.Errorf("%w at %s: %w", ErrValue, p, err)
	}
	return true, nil
}

// Delete removes all leaves at a path, which may have wildcards, and below it. It returns
// how many leaves it has looked at, which is what it costs.
func (d *Device) Delete(p Path) (looked int) {
	if r, keys := find(p); r != nil && !slices.Contains(keys, AnyElem) {
		_ = r.set(d, keys, Value{}) // what has no such place is not there
		return 1
	}
	for i := range p {
		if name, ok := p[i].Get("name"); ok && p[i].Name == "interface" && name != AnyElem {
			return d.deleteWithin(name, p)
		}
	}
	return d.deleteAll(p)
}

// deleteWithin removes what a path selects that names one interface: no other is looked at.
func (d *Device) deleteWithin(name string, p Path) int {
	i := d.Interfaces[name]
	if i == nil {
		return 1
	}
	one := Device{Interfaces: map[string]*Interface{name: i}}
	looked := one.deleteAll(p)
	d.drop(name)
	return looked
}

func (d *Device) deleteAll(p Path) (looked int) {
	if !slices.ContainsFunc(theTable.schema, func(r *rule) bool { return SelectsLeaf(p, &r.Leaf) }) {
		return 1
	}
	var gone []Path
	d.list(true, func(at string, _ Value) bool {
		looked++
		if q, err := ParsePath(at); err == nil && p.Covers(q) {
			gone = append(gone, q)
		}
		return true
	})
	for _, q := range gone {
		if r, keys := find(q); r != nil {
			_ = r.set(d, keys, Value{}) // as above
		}
	}
	return looked
}

// find returns the rule of a leaf's path, and the values of its keys; nil if there is
// none.
func find(p Path) (*rule, []string) {
	r := theTable.rules[names(p)]
	if r == nil {
		return nil, nil
	}
	keys, ok := r.keys(p)
	if !ok {
		return nil, nil
	}
	return r, keys
}

// Find returns the schema's leaf at a path without wildcards; false if there is
// none.
func Find(p Path) (*Leaf, bool) {
	if r, _ := find(p); r != nil {
		return &r.Leaf, true
	}
	return nil, false
}

// ListKeys returns the names of the keys of the list that a path is of whose last element has
// none; nil: it is of no list of the schema.
func ListKeys(p Path) []Key {
	if len(p) == 0 || len(p[len(p)-1].Keys) > 0 {
		return nil
	}
	return theTable.lists[names(p)]
}

// Schema lists the leaves that there can be.
func Schema() iter.Seq[*Leaf] {
	return func(yield func(*Leaf) bool) {
		for _, r := range theTable.schema {
			if !yield(&r.Leaf) {
				return
			}
		}
	}
}

// Selects reports whether a path that may have wildcards selects a leaf of the schema, or
// what such leaves are in, whatever keys there are.
func Selects(p Path) bool {
	q := AnyKeys(p)
	for l := range Schema() {
		if !l.Alias && q.Covers(l.Path) {
			return true
		}
	}
	return false
}

// SelectsLeaf reports whether p selects leaves of this place in the schema.
func SelectsLeaf(p Path, l *Leaf) bool { return AnyKeys(p).Covers(l.Path) }

// AnyKeys returns p with any values of its keys.
func AnyKeys(p Path) Path {
	q := make(Path, len(p))
	for i, e := range p {
		q[i].Name = e.Name
		for _, k := range e.Keys {
			q[i].Keys = append(q[i].Keys, Key{k.Name, AnyElem})
		}
	}
	return q
}
