package schedule

// allreduceDoubling: each exchanges all with partners 1, 2, 4, ... apart.
func allreduceDoubling(c *Call) Schedule {
	return Schedule{Temp: c.bytes(c.Count), Rounds: c.rounds(func(m *maker) {
		f := c.fold()
		if m.foldIn(&f, c.input(), c.vector(Out), c.vector(Temp)) {
			for bit := 1; bit < f.power; bit <<= 1 {
				partner := f.rank ^ bit
				m.send(f.of(partner), c.vector(Out))
				m.recv(f.of(partner), c.vector(Temp))
				m.combine(partner, f.rank, c.vector(Out), c.vector(Temp))
				m.end()
			}
		}
		m.foldOut(&f, c.vector(Out))
	})}
}

// allreduceRabenseifner: reduce-scatter by halving, then allgather by doubling.
func allreduceRabenseifner(c *Call) Schedule {
	return Schedule{Temp: c.bytes(c.Count), Rounds: c.rounds(func(m *maker) {
		f := c.fold()
		if m.foldIn(&f, c.input(), c.vector(Out), c.vector(Temp)) {
			m.unhalve(&f, Out, m.halve(&f, Out, Temp))
		}
		m.foldOut(&f, c.vector(Out))
	})}
}

// allreduceLinear: rank 0 reduces the vectors of all others, one after the other, and sends them the
// result. A barrier, too, with vectors of no size.
func allreduceLinear(c *Call) Schedule {
	temp := 0
	if c.Rank == 0 {
		temp = c.bytes(c.Count)
	}
	return Schedule{Temp: temp, Rounds: c.rounds(func(m *maker) {
		own := c.input()
		if c.Rank > 0 {
			m.send(0, own)
			m.end()
			m.recv(0, c.vector(Out))
			return
		}
		for child := 1; child < c.Size; child++ {
			own = m.take(child, own)
		}
		if own != c.vector(Out) {
			m.copy(c.vector(Out), own)
		}
		for child := 1; child < c.Size; child++ {
			m.send(child, c.vector(Out))
		}
	})}
}

// allreduceBinomial: vectors go up a binomial tree to rank 0, and the result down. A barrier, too.
func allreduceBinomial(c *Call) Schedule {
	return Schedule{Temp: c.bytes(c.Count), Rounds: c.rounds(func(m *maker) {
		own := c.input()
		bit := 1
		for ; bit < c.Size && c.Rank&bit == 0; bit <<= 1 {
			if child := c.Rank + bit; child < c.Size {
				own = m.take(child, own)
			}
		}
		switch {
		case c.Rank > 0:
			m.send(c.Rank-bit, own)
			m.end()
			m.recv(c.Rank-bit, c.vector(Out))
			m.end()
		case own != c.vector(Out):
			m.copy(c.vector(Out), own)
		}
		for bit >>= 1; bit > 0; bit >>= 1 {
			if child := c.Rank + bit; child < c.Size {
				m.hand(child, c.vector(Out))
			}
		}
	})}
}

// take reduces the vector of a higher rank with what is there, which it returns the place of.
func (m *maker) take(from int, own Part) Part {
	m.recv(from, m.vector(Temp))
	m.reduce(m.vector(Out), own, m.vector(Temp))
	m.end()
	return m.vector(Out)
}

// allreduceRing: blocks go around once to be reduced, and once more to be copied.
func allreduceRing(c *Call) Schedule {
	n := c.Size
	return Schedule{Temp: c.bytes((c.Count + n - 1) / n), Rounds: c.rounds(func(m *maker) {
		if n == 1 {
			if !c.InPlace {
				m.copy(c.vector(Out), c.vector(In))
			}
			return
		}
		left, right := mod(c.Rank-1, n), mod(c.Rank+1, n)
		own := Out
		if !c.InPlace {
			own = In
		}
		for s := range n - 1 {
			give, take := c.block(mod(c.Rank-s, n), n), c.block(mod(c.Rank-s-1, n), n)
			from := Out
			if s == 0 {
				from = own
			}
			m.send(right, c.part(from, give))
			m.recv(left, Part{Buffer: Temp, Size: c.bytes(take.to - take.from)})
			m.reduce(c.part(Out, take), Part{Buffer: Temp, Size: c.bytes(take.to - take.from)}, c.part(own, take))
			m.end()
		}
		for s := range n - 1 {
			m.send(right, c.part(Out, c.block(mod(c.Rank+1-s, n), n)))
			m.recv(left, c.part(Out, c.block(mod(c.Rank-s, n), n)))
			m.end()
		}
	})}
}
