package schedule

// scanDoubling: each gets the reduction of the 1, 2, 4, ... ranks before it.
func scanDoubling(c *Call) Schedule {
	return Schedule{Temp: c.bytes(c.Count), Rounds: c.rounds(func(m *maker) {
		rank, size := c.Rank, c.Size
		if c.Collective == Exscan {
			rank, size = m.shift(Out), c.Size-1
			if rank < 0 {
				return
			}
		} else if !c.InPlace {
			m.copy(c.vector(Out), c.vector(In))
			m.end()
		}
		for bit := 1; bit < size; bit <<= 1 {
			if rank+bit < size {
				m.send(c.Rank+bit, c.vector(Out))
			}
			if rank >= bit {
				m.recv(c.Rank-bit, c.vector(Temp))
				m.reduce(c.vector(Out), c.vector(Temp), c.vector(Out))
			}
			m.end()
		}
	})}
}

// shift has each member get the vector of the rank before it: an exscan is the scan of these. It
// returns the member's rank among those that have one; -1: none. In place, what this member
// gives is overwritten, and goes by way of temporary memory.
func (m *maker) shift(to Buffer) int {
	own := m.input()
	if m.InPlace && m.Rank > 0 && m.Rank < m.Size-1 {
		m.copy(m.vector(Temp), own)
		m.end()
		own = m.vector(Temp)
	}
	if m.Rank < m.Size-1 {
		m.send(m.Rank+1, own)
	}
	if m.Rank > 0 {
		m.recv(m.Rank-1, m.vector(to))
	}
	m.end()
	return m.Rank - 1
}

// scanChain: segments go from rank to rank, each of which adds its own.
func scanChain(c *Call) Schedule {
	return Schedule{Temp: c.bytes(c.Count), Rounds: c.rounds(func(m *maker) {
		own := c.input()
		isExclusive := c.Collective == Exscan
		switch {
		case isExclusive && c.InPlace && c.Rank > 0 && c.Rank < c.Size-1:
			m.copy(c.vector(Temp), own)
			m.end()
			own = c.vector(Temp)
		case !isExclusive && c.Rank == 0 && !c.InPlace:
			m.copy(c.vector(Out), own)
		}
		at := func(p Part, s *span) Part {
			p.Offset, p.Size = p.Offset+c.bytes(s.from), c.bytes(s.to-s.from)
			return p
		}
		// What goes on is the inclusive reduction: in Out, or of an exscan in Temp.
		sum := c.vector(Out)
		if isExclusive {
			sum = c.vector(Temp)
		}
		if c.Rank == 0 {
			sum = own
		}
		m.chain(func(come, gone *span) {
			if gone != nil && c.Rank < c.Size-1 {
				m.send(c.Rank+1, at(sum, gone))
			}
			if come == nil || c.Rank == 0 {
				return
			}
			m.recv(c.Rank-1, at(c.vector(Out), come))
			switch {
			case !isExclusive && c.InPlace: // own is where the message would come
				m.Recvs[len(m.Recvs)-1].Part = at(c.vector(Temp), come)
				m.reduce(at(sum, come), at(c.vector(Temp), come), at(own, come))
			case !isExclusive || c.Rank < c.Size-1:
				m.reduce(at(sum, come), at(c.vector(Out), come), at(own, come))
			}
		})
	})}
}
