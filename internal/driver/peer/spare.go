package peer

// spares are memory that waits to be used again.
type spares[T any] struct {
	all   []T
	least int // so many were there, at least, since the last rest
}

// take takes one, if there is one.
func (s *spares[T]) take() (one T, ok bool) {
	n := len(s.all) - 1
	if n < 0 {
		return one, false
	}
	var none T
	one, s.all[n] = s.all[n], none
	s.all, s.least = s.all[:n], min(s.least, n)
	return one, true
}

// put keeps one, unless there are so many.
func (s *spares[T]) put(one T, most int) {
	if len(s.all) < most {
		s.all = append(s.all, one)
	}
}

// rest gives up those that were not used since the last time.
func (s *spares[T]) rest() {
	clear(s.all[len(s.all)-s.least:])
	s.all = s.all[:len(s.all)-s.least]
	if len(s.all) == 0 {
		s.all = nil
	}
	s.least = len(s.all)
}

// Rest gives back the memory that the process did not need since the last time: to be
// called every now and then.
func (h *Host) Rest() {
	h.bursts.rest()
	for class := range buffers {
		p := &buffers[class]
		p.mu.Lock()
		p.free.rest()
		p.mu.Unlock()
	}
}
