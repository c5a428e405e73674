package collect

import "encoding/binary"

// reader takes fields off the front of b; once it is bad all are zero.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	taken := r.b[:n:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) u8() uint8 {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) zero(n int) {
	for _, b := range r.take(n) {
		r.bad = r.bad || b != 0
	}
}

// creation reads a Creation. Memory is taken for what is there, not for what is
// announced.
func (r *reader) creation() *Creation {
	c := &Creation{Name: string(r.take(int(r.u8())))}
	count := int(r.u32())
	if len(c.Name) > MaxName || count == 0 || count > len(r.b)/(4+len(Tag{})) {
		r.bad = true
		return nil
	}
	c.Targets = make([]Target, count)
	for i := range c.Targets {
		t := &c.Targets[i]
		t.Node = Node(r.take(int(r.u8())))
		tags := r.take(int(r.u16()) * len(Tag{}))
		if r.bad {
			return nil
		}
		t.Tags = make([]Tag, len(tags)/len(Tag{}))
		for j := range t.Tags {
			copy(t.Tags[j][:], tags[j*len(Tag{}):])
		}
		if ValidTarget(i, t) != nil {
			r.bad = true
			return nil
		}
	}
	return c
}
