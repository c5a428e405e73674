package peer

import "testing"

// TestSpares: what is used again and again is kept, and what is not is given up.
func TestSpares(t *testing.T) {
	var s spares[int]
	for i := range 5 {
		s.put(i, 4)
	}
	if len(s.all) != 4 {
		t.Fatalf("%v", s.all)
	}
	s.rest()
	for range 3 { // two at a time
		a, _ := s.take()
		b, _ := s.take()
		s.put(b, 4)
		s.put(a, 4)
		s.rest()
		if len(s.all) != 2 {
			t.Fatalf("%v", s.all)
		}
	}
	s.rest()
	if _, ok := s.take(); ok || s.all != nil {
		t.Errorf("%v", s.all)
	}
}
