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
