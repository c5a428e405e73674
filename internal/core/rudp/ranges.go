package rudp

import "slices"

// span is the numbers from From to To-1.
type span struct{ from, to uint64 }

// ranges is a set of numbers, as spans in order, none of which touches another.
type ranges []span

// find returns the first span that ends at x or after it. Most questions are about the
// end.
func (r ranges) find(x uint64) int {
	low, high := 0, len(r)
	if high > 0 && r[high-1].to < x {
		return high
	}
	for low < high {
		if m := (low + high) / 2; r[m].to < x {
			low = m + 1
		} else {
			high = m
		}
	}
	return low
}

// add adds a span.
func (r *ranges) add(s span) {
	if s.from >= s.to {
		return
	}
	i := r.find(s.from)
	j := i
	for j < len(*r) && (*r)[j].from <= s.to {
		s.from, s.to = min(s.from, (*r)[j].from), max(s.to, (*r)[j].to)
		j++
	}
	if i == j {
		*r = slices.Insert(*r, i, s)
		return
	}
	(*r)[i] = s
	*r = slices.Delete(*r, i+1, j)
}

// remove takes out a span.
func (r *ranges) remove(s span) {
	if s.from >= s.to {
		return
	}
	i := r.find(s.from + 1)
	for i < len(*r) && (*r)[i].from < s.to {
		p := &(*r)[i]
		switch {
		case p.from < s.from && p.to > s.to:
			rest := span{s.to, p.to}
			p.to = s.from
			*r = slices.Insert(*r, i+1, rest)
			return
		case p.from < s.from:
			p.to = s.from
			i++
		case p.to > s.to:
			p.from = s.to
			return
		default:
			*r = slices.Delete(*r, i, i+1)
		}
	}
}

// has reports whether all of a span is in r.
func (r ranges) has(s span) bool {
	i := r.find(s.from + 1)
	return i < len(r) && r[i].from <= s.from && s.to <= r[i].to
}

// prune takes out all below x.
func (r *ranges) prune(x uint64) {
	i := 0
	for i < len(*r) && (*r)[i].to <= x {
		i++
	}
	if i > 0 {
		*r = slices.Delete(*r, 0, i)
	}
	if len(*r) > 0 {
		(*r)[0].from = max((*r)[0].from, x)
	}
}
