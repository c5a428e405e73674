package attribute

import (
	"math/bits"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// lifeSet is a set of lives, by open addressing: a map of Go's takes twice the
// memory of a thousand views. It grows by a quarter, as one of powers of two
// would at times be half as full. 0 is not in it.
type lifeSet struct {
	table []attributes.Life // at most three quarters full; 0 is free
	count int
}

func (s *lifeSet) has(l attributes.Life) bool {
	return l != 0 && len(s.table) > 0 && s.table[s.find(l)] == l
}

// find returns where l is, or would be.
func (s *lifeSet) find(l attributes.Life) int {
	home, _ := bits.Mul64(uint64(l)*golden, uint64(len(s.table)))
	at := int(home)
	for s.table[at] != 0 && s.table[at] != l {
		at = s.next(at)
	}
	return at
}

// golden is 2^64 over the golden ratio: Fibonacci hashing (Knuth, The Art of
// Computer Programming 3, 6.4).
const golden = 0x9e3779b97f4a7c15

func (s *lifeSet) next(at int) int {
	if at++; at < len(s.table) {
		return at
	}
	return 0
}

func (s *lifeSet) add(l attributes.Life) {
	if l == 0 || s.has(l) {
		return
	}
	if 4*(s.count+1) > 3*len(s.table) {
		old := s.table
		s.table = make([]attributes.Life, max(8, len(old)+len(old)/4))
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
	at := s.find(l)
	s.table[at] = 0
	s.count--
	for at = s.next(at); s.table[at] != 0; at = s.next(at) {
		k := s.table[at]
		s.table[at] = 0
		s.table[s.find(k)] = k
	}
}
