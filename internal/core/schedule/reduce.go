package schedule

// reduceBinomial: each gets the vectors of children 1, 2, 4, ... ranks behind it. Without order
// the tree begins at the root; with it, at rank 0, which gives the root the result.
func reduceBinomial(c *Call) Schedule {
	return Schedule{Temp: reduceTemp(c), Rounds: c.rounds(func(m *maker) {
		first := c.Root
		if c.Ordered {
			first = 0
		}
		rank := mod(c.Rank-first, c.Size)
		own, acc := c.input(), c.vector(Temp)
		if c.Rank == c.Root {
			acc = c.vector(Out)
		} else if c.InPlace {
			own = c.vector(In)
		}
		theirs := Part{Buffer: Temp, Size: c.bytes(c.Count)}
		if c.Rank != c.Root {
			theirs.Offset = theirs.Size
		}
		bit := 1
		for ; bit < c.Size && rank&bit == 0; bit <<= 1 {
			if child := rank + bit; child < c.Size {
				m.recv(mod(child+first, c.Size), theirs)
				m.reduce(acc, own, theirs)
				m.end()
				own = acc
			}
		}
		if rank != 0 {
			m.send(mod(rank-bit+first, c.Size), own)
			m.end()
		}
		switch {
		case c.Rank == c.Root && first != c.Root:
			m.recv(first, c.vector(Out))
		case rank == 0 && first != c.Root:
			m.send(c.Root, own)
		case rank == 0 && own != c.vector(Out):
			m.copy(c.vector(Out), own)
		}
	})}
}

// reduceTemp returns what a member needs for vectors that come, and for what it has reduced.
func reduceTemp(c *Call) int {
	first := c.Root
	if c.Ordered {
		first = 0
	}
	switch rank := mod(c.Rank-first, c.Size); {
	case rank&1 != 0 || rank == c.Size-1: // it has no children
		return 0
	case c.Rank == c.Root:
		return c.bytes(c.Count)
	}
	return 2 * c.bytes(c.Count)
}

// reduceRingGather: blocks go around to be reduced, and then to the root.
func reduceRingGather(c *Call) Schedule {
	n := c.Size
	most := c.bytes((c.Count + n - 1) / n)
	return Schedule{Temp: 2 * most, Rounds: c.rounds(func(m *maker) {
		in := In
		if c.InPlace && c.Rank == c.Root {
			in = Out
		}
		block := func(i int) Part { return c.part(in, c.block(mod(i, n), n)) }
		result := m.ringReduce(block, most, NoPart)
		if n == 1 {
			result = block(0)
		}
		at := func(rank int) Part { return c.part(Out, c.block(rank, n)) }
		if c.Rank != c.Root {
			m.send(c.Root, result)
			return
		}
		if result != at(c.Root) {
			m.copy(at(c.Root), result)
		}
		m.end()
		for i := range n {
			if i != c.Root {
				m.recv(i, at(i))
			}
		}
	})}
}

// ringReduce has each member reduce the block of its rank, as it goes around: into to, or into
// temporary memory, twice the size of the largest block. It returns where the result is.
func (m *maker) ringReduce(block func(i int) Part, most int, to Part) Part {
	n := m.Size
	left, right := mod(m.Rank-1, n), mod(m.Rank+1, n)
	give := block(m.Rank - 1)
	for s := range n - 1 {
		own := block(m.Rank - s - 2)
		take := Part{Buffer: Temp, Offset: s % 2 * most, Size: own.Size}
		m.send(right, give)
		m.recv(left, take)
		give = take
		if s == n-2 && to != NoPart {
			give = to
		}
		m.reduce(give, take, own)
		m.end()
	}
	return give
}
