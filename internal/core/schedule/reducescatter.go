package schedule

// slices returns the part of In that each rank gets the reduction of, and the size of the largest.
func (c *Call) slices() (at func(rank int) Part, most int) {
	if c.Collective == ReduceScatter {
		return func(rank int) Part { return c.pieces(In, c.actual(rank), 1) }, c.bytes(c.Count)
	}
	starts := make([]int, c.Size+1)
	for i, n := range c.Counts {
		starts[i+1] = starts[i] + n
		most = max(most, c.bytes(n))
	}
	return func(rank int) Part {
		rank = c.actual(rank)
		return c.part(In, span{starts[rank], starts[rank+1]})
	}, most
}

// outcome returns where the result of a reduce-scatter goes.
func (c *Call) outcome(own Part) Part {
	if c.InPlace {
		return own
	}
	return Part{Buffer: Out, Size: own.Size}
}

// reduceScatterRing: blocks go around to be reduced.
func reduceScatterRing(c *Call) Schedule {
	at, most := c.slices()
	return Schedule{Temp: 2 * most, Rounds: c.rounds(func(m *maker) {
		to := c.outcome(at(c.Rank))
		m.ringReduce(func(i int) Part { return at(mod(i, c.Size)) }, most, to)
		if c.Size == 1 && !c.InPlace {
			m.copy(to, at(0))
		}
	})}
}

// reduceScatterPairwise: each sends every other one its block.
func reduceScatterPairwise(c *Call) Schedule {
	at, _ := c.slices()
	own := at(c.Rank)
	return Schedule{Temp: own.Size, Rounds: c.rounds(func(m *maker) {
		to, acc := c.outcome(own), own
		for i := 1; i < c.Size; i++ {
			theirs := Part{Buffer: Temp, Size: own.Size}
			m.send(mod(c.Rank+i, c.Size), at(mod(c.Rank+i, c.Size)))
			m.recv(mod(c.Rank-i, c.Size), theirs)
			m.reduce(to, acc, theirs)
			m.end()
			acc = to
		}
		if acc != to {
			m.copy(to, acc)
		}
	})}
}

// reduceScatterHalving, of a power of two: partners 1, 2, 4, ... apart reduce half of what is left
// for each other. So that each ends with its own block, the blocks are taken in the order of
// their ranks' bits reversed.
func reduceScatterHalving(c *Call) Schedule {
	at, _ := c.slices()
	n := c.Size
	// acc has room for each rank's block, in the reversed order, without gaps.
	order := make([]int, n)
	starts := make([]int, n+1)
	levels := floorLog(n)
	for i := range n {
		order[i] = reversed(i, levels)
		starts[i+1] = starts[i] + at(order[i]).Size
	}
	acc := func(s span, half int) Part {
		return Part{Buffer: Temp, Offset: half*starts[n] + starts[s.from], Size: starts[s.to] - starts[s.from]}
	}
	return Schedule{Temp: 2 * starts[n], Rounds: c.rounds(func(m *maker) {
		to := c.outcome(at(c.Rank))
		if n == 1 {
			if !c.InPlace {
				m.copy(to, at(0))
			}
			return
		}
		for i, rank := range order {
			m.copy(acc(span{i, i + 1}, 0), at(rank))
		}
		m.end()
		keep := span{0, n}
		for bit := 1; bit < n; bit <<= 1 {
			give, middle := keep, (keep.from+keep.to)/2
			if c.Rank&bit == 0 {
				keep.to, give.from = middle, middle
			} else {
				keep.from, give.to = middle, middle
			}
			partner := c.Rank ^ bit
			m.send(partner, acc(give, 0))
			m.recv(partner, acc(keep, 1))
			m.combine(partner, c.Rank, acc(keep, 0), acc(keep, 1))
			m.end()
		}
		m.copy(to, acc(keep, 0))
	})}
}

func floorLog(n int) (levels int) {
	for n > 1 {
		n >>= 1
		levels++
	}
	return levels
}

// reversed returns the lowest bits of i in reversed order.
func reversed(i, bits int) (r int) {
	for range bits {
		r, i = r<<1|i&1, i>>1
	}
	return r
}

// reduceScatterLinear: each sends every other one its block, and reduces all that have come in the
// order of ranks.
func reduceScatterLinear(c *Call) Schedule {
	at, _ := c.slices()
	own := at(c.Rank)
	return Schedule{Temp: c.Size * own.Size, Rounds: c.rounds(func(m *maker) {
		from := func(rank int) Part {
			if rank == c.Rank {
				return own
			}
			return Part{Buffer: Temp, Offset: rank * own.Size, Size: own.Size}
		}
		for i := 1; i < c.Size; i++ {
			m.send(mod(c.Rank+i, c.Size), at(mod(c.Rank+i, c.Size)))
			m.recv(mod(c.Rank-i, c.Size), from(mod(c.Rank-i, c.Size)))
		}
		acc := from(0)
		for rank := 1; rank < c.Size; rank++ {
			to := Part{Buffer: Temp, Size: own.Size} // rank 0's, which is not needed any more
			m.reduce(to, acc, from(rank))
			acc = to
		}
		if to := c.outcome(own); acc != to {
			m.copy(to, acc)
		}
	})}
}
