package schedule

// allgatherOwn puts this member's piece into its place in Out.
func (m *maker) allgatherOwn() {
	if !m.InPlace {
		own := m.piece(Out, m.Rank)
		m.copy(own, Part{Buffer: In, Size: own.Size})
		m.end()
	}
}

// allgatherRing: pieces go around.
func allgatherRing(c *Call) Schedule {
	n := c.Size
	return Schedule{Rounds: c.rounds(func(m *maker) {
		m.allgatherOwn()
		for s := range n - 1 {
			m.send(mod(c.Rank+1, n), c.piece(Out, mod(c.Rank-s, n)))
			m.recv(mod(c.Rank-1, n), c.piece(Out, mod(c.Rank-s-1, n)))
			m.end()
		}
	})}
}

// allgatherLinear: each sends its piece to all others at once.
func allgatherLinear(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		m.allgatherOwn()
		for i := 1; i < c.Size; i++ {
			to, from := mod(c.Rank+i, c.Size), mod(c.Rank-i, c.Size)
			m.send(to, c.piece(Out, c.Rank))
			m.recv(from, c.piece(Out, from))
		}
	})}
}

// allgatherBruck: each gets the pieces of the 1, 2, 4, ... ranks behind it.
func allgatherBruck(c *Call) Schedule {
	n := c.Size
	temp := c.bytes(n * c.Count)
	if c.Rank == 0 || n == 1 {
		temp = 0
	}
	return Schedule{Temp: temp, Rounds: c.rounds(func(m *maker) {
		all := Temp
		own := Part{Buffer: In, Size: c.bytes(c.Count)}
		if c.InPlace {
			own = c.piece(Out, c.Rank)
		}
		if temp == 0 {
			all = Out
		}
		if first := c.pieces(all, 0, 1); first != own {
			m.copy(first, own)
			m.end()
		}
		for have := 1; have < n; have *= 2 {
			more := min(have, n-have)
			m.send(mod(c.Rank-have, n), c.pieces(all, 0, more))
			m.recv(mod(c.Rank+have, n), c.pieces(all, have, more))
			m.end()
		}
		if temp > 0 { // they begin with this rank's
			m.copy(c.pieces(Out, c.Rank, n-c.Rank), c.pieces(Temp, 0, n-c.Rank))
			m.copy(c.pieces(Out, 0, c.Rank), c.pieces(Temp, n-c.Rank, c.Rank))
		}
	})}
}

// allgatherDoubling, of a power of two: partners 1, 2, 4, ... apart exchange what they have.
func allgatherDoubling(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		m.allgatherOwn()
		for bit := 1; bit < c.Size; bit <<= 1 {
			partner := c.Rank ^ bit
			m.send(partner, c.pieces(Out, c.Rank&^(bit-1), bit))
			m.recv(partner, c.pieces(Out, partner&^(bit-1), bit))
			m.end()
		}
	})}
}
