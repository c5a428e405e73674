package broadcastmsg

import "github.com/tributary-fabric/tributary/internal/wire/cursor"

// reader reads the fields that messages share.
type reader struct{ cursor.Cursor }

// node returns the name of n bytes, which is known if it is the same.
func (r *reader) node(n int, known Node) Node {
	b := r.Take(n)
	if string(b) == string(known) {
		return known
	}
	return Node(b)
}

func (r *reader) zero(n int) {
	for _, b := range r.Take(n) {
		r.Bad = r.Bad || b != 0
	}
}

// creation reads a Creation. Memory is taken for what is there, not for what is
// announced.
func (r *reader) creation() *Creation {
	c := &Creation{Name: string(r.Take(int(r.Byte())))}
	count := int(r.Uint32())
	if len(c.Name) > MaxName || count == 0 || count > len(r.B)/(4+len(Tag{})) {
		r.Bad = true
		return nil
	}
	c.Targets = make([]Target, count)
	for i := range c.Targets {
		t := &c.Targets[i]
		t.Node = Node(r.Take(int(r.Byte())))
		tags := r.Take(int(r.Uint16()) * len(Tag{}))
		if r.Bad {
			return nil
		}
		t.Tags = make([]Tag, len(tags)/len(Tag{}))
		for j := range t.Tags {
			copy(t.Tags[j][:], tags[j*len(Tag{}):])
		}
		if ValidTarget(i, t) != nil {
			r.Bad = true
			return nil
		}
	}
	return c
}
