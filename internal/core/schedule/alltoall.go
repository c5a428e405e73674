package schedule

// given returns what this member gives, by rank; and the temporary memory that it takes, where
// that lies in Out.
func (c *Call) given() (at func(rank int) Part, temp int) {
	if !c.InPlace {
		return func(rank int) Part { return c.piece(In, rank) }, 0
	}
	if !c.Collective.HasCounts() {
		return func(rank int) Part { return c.pieces(Temp, rank, 1) }, c.bytes(c.Size * c.Count)
	}
	starts := make([]int, c.Size+1)
	for i, n := range c.RecvCounts {
		starts[i+1] = starts[i] + c.bytes(n)
	}
	return func(rank int) Part {
		return Part{Buffer: Temp, Offset: starts[rank], Size: c.bytes(c.RecvCounts[rank])}
	}, starts[c.Size]
}

// setAside copies what this member gives out of the way of what it gets.
func (m *maker) setAside(given func(rank int) Part) {
	for i := range m.Size {
		if m.InPlace {
			m.copy(given(i), m.piece(Out, i))
		}
	}
	m.end()
}

// alltoallPairwise: in each round each sends to one member, and receives from another.
func alltoallPairwise(c *Call) Schedule {
	given, temp := c.given()
	return Schedule{Temp: temp, Rounds: c.rounds(func(m *maker) {
		m.setAside(given)
		m.copy(c.piece(Out, c.Rank), given(c.Rank))
		for i := 1; i < c.Size; i++ {
			to, from := mod(c.Rank+i, c.Size), mod(c.Rank-i, c.Size)
			m.send(to, given(to))
			m.recv(from, c.piece(Out, from))
			m.end()
		}
	})}
}

// linearAtOnce is how many members each sends to at once, and receives from.
const linearAtOnce = 32

// alltoallLinear: each sends to many members at once.
func alltoallLinear(c *Call) Schedule {
	given, temp := c.given()
	return Schedule{Temp: temp, Rounds: c.rounds(func(m *maker) {
		m.setAside(given)
		m.copy(c.piece(Out, c.Rank), given(c.Rank))
		for i := 1; i < c.Size; i++ {
			to, from := mod(c.Rank+i, c.Size), mod(c.Rank-i, c.Size)
			m.send(to, given(to))
			m.recv(from, c.piece(Out, from))
			if i%linearAtOnce == 0 {
				m.end()
			}
		}
	})}
}

// alltoallBruck: what is to go d ranks on goes 1, 2, 4, ... of them, as the bits of d say, with
// all else that goes so.
func alltoallBruck(c *Call) Schedule {
	n := c.Size
	// Temporary memory: pieces by how far they are to go, what is sent, and what has come.
	return Schedule{Temp: c.bytes(2 * n * c.Count), Rounds: c.rounds(func(m *maker) {
		from := In
		if c.InPlace {
			from = Out
		}
		for d := range n {
			m.copy(c.pieces(Temp, d, 1), c.pieces(from, mod(c.Rank+d, n), 1))
		}
		m.end()
		for bit := 1; bit < n; bit <<= 1 {
			k := 0
			for d := range n {
				if d&bit != 0 {
					m.copy(c.pieces(Temp, n+k, 1), c.pieces(Temp, d, 1))
					k++
				}
			}
			m.end()
			m.send(mod(c.Rank+bit, n), c.pieces(Temp, n, k))
			m.recv(mod(c.Rank-bit, n), c.pieces(Temp, n+k, k))
			k, got := 0, k
			for d := range n {
				if d&bit != 0 {
					m.copy(c.pieces(Temp, d, 1), c.pieces(Temp, n+got+k, 1))
					k++
				}
			}
			m.end()
		}
		for d := range n {
			m.copy(c.pieces(Out, mod(c.Rank-d, n), 1), c.pieces(Temp, d, 1))
		}
	})}
}
