package schedule

// folded is a group whose first ranks are paired, so that a power of two is left: of ranks 2i and
// 2i+1 the first stands for both. That keeps the order of ranks.
type folded struct {
	power int // members that are left
	extra int // pairs
	rank  int // among those that are left; -1: another stands for this one
}

func (c *Call) fold() folded {
	f := folded{power: floorPower(c.Size)}
	f.extra = c.Size - f.power
	switch {
	case c.Rank >= 2*f.extra:
		f.rank = c.Rank - f.extra
	case c.Rank%2 == 0:
		f.rank = c.Rank / 2
	default:
		f.rank = -1
	}
	return f
}

// isPaired reports whether a rank is one of a pair.
func (f *folded) isPaired(rank int) bool { return rank < 2*f.extra }

// of returns the rank in the group of one that is left.
func (f *folded) of(rank int) int {
	if rank < f.extra {
		return 2 * rank
	}
	return rank + f.extra
}

// foldIn has one of each pair get the vector of the other, and reduce it. What the group
// reduces is in acc then; temp has room for a vector. It reports whether this member goes on.
func (m *maker) foldIn(f *folded, own, acc, temp Part) bool {
	switch {
	case f.rank < 0:
		m.send(m.Rank-1, own)
		m.end()
		return false
	case f.isPaired(m.Rank):
		m.recv(m.Rank+1, temp)
		m.reduce(acc, own, temp)
	case own != acc:
		m.copy(acc, own)
	}
	m.end()
	return true
}

// foldOut has the other of each pair get the result.
func (m *maker) foldOut(f *folded, result Part) {
	switch {
	case f.rank < 0:
		m.recv(m.Rank-1, result)
	case f.isPaired(m.Rank):
		m.send(m.Rank+1, result)
	}
	m.end()
}

// combine reduces what a partner has sent, in the order of ranks.
func (m *maker) combine(partner, own int, acc, theirs Part) {
	if partner < own {
		m.reduce(acc, theirs, acc)
	} else {
		m.reduce(acc, acc, theirs)
	}
}

// halve has each of those that are left reduce a span of the vector, with temp room for a
// vector: partners are 1 apart, then 2, 4, ... It returns the spans on the way, the last of
// which is this member's.
func (m *maker) halve(f *folded, acc, temp Buffer) []span {
	spans := []span{{0, m.Count}}
	for bit := 1; bit < f.power; bit <<= 1 {
		keep := spans[len(spans)-1]
		give := keep
		middle := keep.from + (keep.to-keep.from)/2
		if f.rank&bit == 0 {
			keep.to, give.from = middle, middle
		} else {
			keep.from, give.to = middle, middle
		}
		partner := f.rank ^ bit
		m.send(f.of(partner), m.part(acc, give))
		m.recv(f.of(partner), m.part(temp, keep))
		m.combine(partner, f.rank, m.part(acc, keep), m.part(temp, keep))
		m.end()
		spans = append(spans, keep)
	}
	return spans
}

// unhalve has those that are left give each other their spans again.
func (m *maker) unhalve(f *folded, acc Buffer, spans []span) {
	at := len(spans) - 1
	for bit := f.power >> 1; bit > 0; bit >>= 1 {
		own, both := spans[at], spans[at-1]
		theirs := span{both.from, own.from}
		if own.from == both.from {
			theirs = span{own.to, both.to}
		}
		partner := f.of(f.rank ^ bit)
		m.send(partner, m.part(acc, own))
		m.recv(partner, m.part(acc, theirs))
		m.end()
		at--
	}
}
