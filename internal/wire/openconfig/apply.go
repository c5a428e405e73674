package openconfig

import (
	"errors"
	"fmt"
	"iter"
)

// ErrValue is wrapped by the errors of Device.Set about a value.
var ErrValue = errors.New("wrong value")

// Leaves lists what the device has reported: paths as Path.String writes them, and
// values. The order is the same each time.
func (d *Device) Leaves() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for _, list := range theTable.listers {
			if !list(d, yield) {
				return
			}
		}
	}
}

// Set applies a leaf's value; None removes it. Of paths that are not in the schema it
// reports that they are not known, and changes nothing. An error wraps ErrPath or
// ErrValue, names the path, and leaves d as it was.
func (d *Device) Set(path string, v Value) (known bool, err error) {
	p, err := ParsePath(path)
	if err != nil {
		return false, err
	}
	return d.SetAt(p, v)
}

// SetAt is Set for a path that is parsed.
func (d *Device) SetAt(p Path, v Value) (known bool, err error) {
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

// Delete removes all leaves at a path and below it. The path may have wildcards.
func (d *Device) Delete(path string) error {
	p, err := ParsePath(path)
	if err != nil {
		return err
	}
	d.DeleteAt(p)
	return nil
}

// DeleteAt is Delete for a path that is parsed.
func (d *Device) DeleteAt(p Path) {
	if r, keys := find(p); r != nil {
		_ = r.set(d, keys, Value{}) // what has no such place is not there
		return
	}
	var gone []Path
	for at := range d.Leaves() {
		q, err := ParsePath(at)
		if err == nil && p.Covers(q) {
			gone = append(gone, q)
		}
	}
	for _, q := range gone {
		if r, keys := find(q); r != nil {
			_ = r.set(d, keys, Value{}) // as above
		}
	}
	d.deleteAliases(p)
}

// deleteAliases removes what Leaves does not list.
func (d *Device) deleteAliases(p Path) {
	eachInterface(d, func(i *Interface) bool {
		var old []string
		for _, n := range i.Neighbors {
			if n.OldManagement != "" {
				old = append(old, n.ID)
			}
		}
		for _, id := range old {
			q := Path{{Name: "lldp"}, {Name: "interfaces"}, {Name: "interface", Keys: []Key{{"name", i.Name}}}, {Name: "neighbors"},
				{Name: "neighbor", Keys: []Key{{"id", id}}}, {Name: "state"}, {Name: "management-address"}}
			if p.Covers(q) {
				_, _ = d.SetAt(q, Value{}) // it is there
			}
		}
		return true
	})
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
	q := anyKeys(p)
	for l := range Schema() {
		if !l.Alias && q.Covers(l.Path) {
			return true
		}
	}
	return false
}

// SelectsLeaf reports whether p selects leaves of this place in the schema.
func SelectsLeaf(p Path, l *Leaf) bool { return anyKeys(p).Covers(l.Path) }

// anyKeys returns p with any values of its keys.
func anyKeys(p Path) Path {
	q := make(Path, len(p))
	for i, e := range p {
		q[i].Name = e.Name
		for _, k := range e.Keys {
			q[i].Keys = append(q[i].Keys, Key{k.Name, AnyElem})
		}
	}
	return q
}
