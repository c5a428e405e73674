package attribute

import "github.com/tributary-fabric/tributary/internal/wire/attributes"

// lifeSet is a set of lives, by open addressing: lives are random numbers
// already, and a map of Go's takes twice the memory of a thousand views. 0 is
// not in it.
type lifeSet struct {
	table []attributes.Life // of a power of two, at most three quarters full; 0 is free
	count int
}

func (s *lifeSet) has(l attributes.Life) bool {
	return l != 0 && len(s.table) > 0 && s.table[s.find(l)] == l
}

// find returns where l is, or would be.
func (s *lifeSet) find(l attributes.Life) int {
	mask := len(s.table) - 1
	at := int(l) & mask
	for s.table[at] != 0 && s.table[at] != l {
		at = (at + 1) & mask
	}
	return at
}

func (s *lifeSet) add(l attributes.Life) {
	if l == 0 || s.has(l) {
		return
	}
	if 4*(s.count+1) > 3*len(s.table) {
		old := s.table
		s.table = make([]attributes.Life, max(8, 2*len(old)))
		for _, k := range old {
			if k != 0 {
				s.table[s.find(k)] = k
			}
		}
	}
	s.table[s.find(l)] = l
	s.count++
}

// remove takes l out and moves up those that it was in the way of.
func (s *lifeSet) remove(l attributes.Life) {
	if !s.has(l) {
		return
	}
	mask := len(s.table) - 1
	at := s.find(l)
	s.table[at] = 0
	s.count--
	for at = (at + 1) & mask; s.table[at] != 0; at = (at + 1) & mask {
		k := s.table[at]
		s.table[at] = 0
		s.table[s.find(k)] = k
	}
}

// each calls do for all lives, in no particular order.
func (s *lifeSet) each(do func(attributes.Life)) {
	for _, l := range s.table {
		if l != 0 {
			do(l)
		}
	}
}
