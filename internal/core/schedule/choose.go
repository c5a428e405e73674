package schedule

// Where one algorithm overtakes another, in bytes of the whole vector, or of each member's piece:
// where messages begin to cost more than their number does, on hosts that are joined by TCP.
const (
	shortVector = 64 << 10
	shortPiece  = 4 << 10
	manyPieces  = 32 << 10
	longVector  = 512 << 10
)

// Choose returns the algorithm for a call. Members that call the same choose the same: it depends
// on nothing that they may not give alike.
func Choose(c *Call) Algorithm {
	possible := ways[c.Collective]
	vector := c.Count * c.Width
	var wish Algorithm
	switch c.Collective {
	case Allreduce:
		switch {
		case vector <= shortVector || c.Size == 2:
			wish = RecursiveDoubling
		case c.Count >= c.Size && !c.Ordered:
			wish = Ring
		default:
			wish = Rabenseifner
		}
	case Reduce:
		if wish = Binomial; vector > shortVector && c.Size > 2 && c.Count >= c.Size {
			wish = RingGather
		}
	case Broadcast:
		if wish = Binomial; vector > longVector && c.Size > 2 {
			wish = Chain
		}
	case Gather, Scatter:
		if wish = Binomial; vector > shortPiece {
			wish = Linear
		}
	case Allgather:
		if wish = Bruck; vector*c.Size > shortVector {
			wish = Ring
		}
	case Alltoall:
		switch wish = Pairwise; {
		case vector <= shortPiece/4 && c.Size > 8:
			wish = Bruck
		case vector <= manyPieces:
			wish = Linear
		}
	case ReduceScatter:
		switch wish = Pairwise; {
		case vector <= shortPiece/4:
			wish = Halving
		case vector*c.Size > shortVector && !c.Ordered:
			wish = Ring
		}
	case Scan, Exscan:
		if wish = RecursiveDoubling; vector > 2*shortPiece {
			wish = Chain
		}
	}
	for _, w := range possible {
		if w.algorithm == wish {
			if _, err := c.find(wish); err == nil {
				return wish
			}
		}
	}
	for _, w := range possible {
		if _, err := c.find(w.algorithm); err == nil {
			return w.algorithm
		}
	}
	return Auto
}
