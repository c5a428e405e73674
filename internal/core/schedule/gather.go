package schedule

// piece returns a rank's piece of the whole result or input, in Out or In.
func (c *Call) piece(b Buffer, rank int) Part {
	rank = c.actual(rank)
	if c.Collective.HasCounts() {
		counts := c.Counts
		if c.Collective == Alltoallv && b == Out {
			counts = c.RecvCounts
		}
		return Part{Buffer: b, Piece: rank, Size: c.bytes(counts[rank])}
	}
	return Part{Buffer: b, Offset: c.bytes(rank * c.Count), Size: c.bytes(c.Count)}
}

// pieces returns those of some ranks that follow each other, where there are no counts.
func (c *Call) pieces(b Buffer, from, n int) Part {
	return Part{Buffer: b, Offset: c.bytes(from * c.Count), Size: c.bytes(n * c.Count)}
}

// alone returns this member's own piece, where it has that alone: In of Gather, Out of Scatter.
func (c *Call) alone(b Buffer) Part {
	n := c.Count
	if c.Collective.HasCounts() {
		n = c.Own
	}
	return Part{Buffer: b, Size: c.bytes(n)}
}

// gatherLinear: all send to the root.
func gatherLinear(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		if c.Rank != c.Root {
			m.send(c.Root, c.alone(In))
			return
		}
		for i := range c.Size {
			if rank := mod(c.Root+i, c.Size); i > 0 {
				m.recv(rank, c.piece(Out, rank))
			} else if !c.InPlace {
				m.copy(c.piece(Out, rank), c.alone(In))
			}
		}
	})}
}

// below returns how many ranks are below one in a binomial tree, with itself.
func below(rank, n int) int {
	if rank == 0 {
		return n
	}
	return min(rank&-rank, n-rank)
}

// gatherBinomial: pieces go up a binomial tree, more and more of them.
func gatherBinomial(c *Call) Schedule {
	rank := mod(c.Rank-c.Root, c.Size)
	temp := c.bytes(below(rank, c.Size) * c.Count)
	if below(rank, c.Size) == 1 || rank == 0 && c.Root == 0 {
		temp = 0
	}
	return Schedule{Temp: temp, Rounds: c.rounds(func(m *maker) {
		all, own := Temp, c.alone(In)
		if rank == 0 && c.Root == 0 {
			all = Out
		}
		if c.InPlace && rank == 0 {
			own = c.piece(Out, c.Root)
		}
		held := own
		if temp > 0 || all == Out {
			if held = c.pieces(all, 0, 1); held != own {
				m.copy(held, own)
				m.end()
			}
		}
		bit := 1
		for ; bit < c.Size && rank&bit == 0; bit <<= 1 {
			if child := rank + bit; child < c.Size {
				n := below(child, c.Size)
				m.recv(mod(child+c.Root, c.Size), c.pieces(all, bit, n))
				held.Size += c.bytes(n * c.Count)
			}
		}
		m.end()
		if rank != 0 {
			m.send(mod(rank-bit+c.Root, c.Size), held)
			return
		}
		if all == Temp && c.Size > 1 { // they begin with the root's
			m.copy(c.pieces(Out, c.Root, c.Size-c.Root), c.pieces(Temp, 0, c.Size-c.Root))
			m.copy(c.pieces(Out, 0, c.Root), c.pieces(Temp, c.Size-c.Root, c.Root))
		}
	})}
}

// scatterLinear: the root sends to all.
func scatterLinear(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		if c.Rank != c.Root {
			m.recv(c.Root, c.alone(Out))
			return
		}
		for i := range c.Size {
			if rank := mod(c.Root+i, c.Size); i > 0 {
				m.send(rank, c.piece(In, rank))
			} else if !c.InPlace {
				m.copy(c.alone(Out), c.piece(In, rank))
			}
		}
	})}
}

// scatterBinomial: pieces go down a binomial tree, fewer and fewer of them.
func scatterBinomial(c *Call) Schedule {
	rank := mod(c.Rank-c.Root, c.Size)
	n := below(rank, c.Size)
	temp := c.bytes(n * c.Count)
	if n == 1 || rank == 0 && c.Root == 0 {
		temp = 0
	}
	return Schedule{Temp: temp, Rounds: c.rounds(func(m *maker) {
		bit := 1
		for ; bit < c.Size && rank&bit == 0; bit <<= 1 {
		}
		held := Temp
		switch {
		case rank == 0 && c.Root == 0:
			held = In
		case rank == 0:
			m.copy(c.pieces(Temp, 0, n-c.Root), c.pieces(In, c.Root, n-c.Root))
			m.copy(c.pieces(Temp, n-c.Root, c.Root), c.pieces(In, 0, c.Root))
		case n == 1:
			m.recv(mod(rank-bit+c.Root, c.Size), c.alone(Out))
		default:
			m.recv(mod(rank-bit+c.Root, c.Size), c.pieces(Temp, 0, n))
		}
		m.end()
		for bit >>= 1; bit > 0; bit >>= 1 {
			if child := rank + bit; child < c.Size {
				m.hand(mod(child+c.Root, c.Size), c.pieces(held, bit, below(child, c.Size)))
			}
		}
		if (temp > 0 || held == In) && !(c.InPlace && rank == 0) {
			m.copy(c.alone(Out), c.pieces(held, 0, 1))
		}
	})}
}
