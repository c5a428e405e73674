package schedule

// held returns where the vector of a broadcast is.
func (c *Call) held() Buffer {
	if c.Rank == c.Root {
		return In
	}
	return Out
}

// broadcastBinomial: those that have the vector send it on, 2, 4, 8, ... of them.
func broadcastBinomial(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		rank := mod(c.Rank-c.Root, c.Size)
		bit := 1
		for ; bit < c.Size && rank&bit == 0; bit <<= 1 {
		}
		if rank != 0 {
			m.recv(mod(rank-bit+c.Root, c.Size), c.vector(Out))
			m.end()
		}
		for bit >>= 1; bit > 0; bit >>= 1 {
			if child := rank + bit; child < c.Size {
				m.hand(mod(child+c.Root, c.Size), c.vector(c.held()))
			}
		}
	})}
}

// broadcastScatter: blocks go down a binomial tree, and then around.
func broadcastScatter(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		n, rank := c.Size, mod(c.Rank-c.Root, c.Size)
		at := func(i int) int { return mod(i+c.Root, n) }
		blocks := func(from, to int) Part {
			return c.part(c.held(), span{c.block(from, n).from, c.block(min(to, n)-1, n).to})
		}
		bit := 1
		for ; bit < n && rank&bit == 0; bit <<= 1 {
		}
		if rank != 0 {
			m.recv(at(rank-bit), blocks(rank, rank+bit))
			m.end()
		}
		for bit >>= 1; bit > 0; bit >>= 1 {
			if child := rank + bit; child < n {
				m.hand(at(child), blocks(child, child+bit))
			}
		}
		m.end()
		for s := range n - 1 {
			// The root needs none of them, and who has got a block already does not get it again.
			if give := mod(rank-s, n); n > 1 && !scattered(mod(rank+1, n), give, n) {
				m.send(at(rank+1), blocks(give, give+1))
			}
			if take := mod(rank-s-1, n); !scattered(rank, take, n) {
				m.recv(at(rank-1), blocks(take, take+1))
			}
			m.end()
		}
	})}
}

// scattered reports whether a rank has got a block on its way down the binomial tree.
func scattered(rank, block, n int) bool {
	if rank == 0 {
		return true
	}
	return block >= rank && block < min(n, rank+rank&-rank)
}

// chain calls do for each segment of the vector, and once more: in round i segment i comes, and
// segment i-1 goes.
func (m *maker) chain(do func(come, gone *span)) {
	each := max(1, m.Segment/m.Width)
	segments := (m.Count + each - 1) / each
	at := func(i int) *span {
		if i < 0 || i >= segments {
			return nil
		}
		return &span{i * each, min((i+1)*each, m.Count)}
	}
	for i := range segments + 1 {
		do(at(i), at(i-1))
		if !m.end() {
			return
		}
	}
}

// broadcastChain: segments go from the root to the next rank, and so on.
func broadcastChain(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		rank := mod(c.Rank-c.Root, c.Size)
		m.chain(func(come, gone *span) {
			if come != nil && rank > 0 {
				m.recv(mod(c.Rank-1, c.Size), c.part(Out, *come))
			}
			if gone != nil && rank < c.Size-1 {
				m.send(mod(c.Rank+1, c.Size), c.part(c.held(), *gone))
			}
		})
	})}
}

// barrierDissemination: each hears of 1, 2, 4, ... others.
func barrierDissemination(c *Call) Schedule {
	return Schedule{Rounds: c.rounds(func(m *maker) {
		for bit := 1; bit < c.Size; bit <<= 1 {
			m.send(mod(c.Rank+bit, c.Size), Part{Buffer: Temp})
			m.recv(mod(c.Rank-bit, c.Size), Part{Buffer: Temp})
			m.end()
		}
	})}
}
