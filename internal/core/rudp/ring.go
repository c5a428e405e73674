package rudp

// ring holds the bytes of a stream from offset first to end-1. Its memory is a power of
// two that grows as far as bytes need it.
type ring struct {
	b          []byte
	first, end uint64
}

const minRing = 4 << 10

func (r *ring) len() int { return int(r.end - r.first) }

// index returns where the byte at an offset is.
func (r *ring) index(at uint64) int { return int(at & uint64(len(r.b)-1)) }

// reserve has memory for the bytes from first to end-1.
func (r *ring) reserve(end uint64) {
	need := int(end - r.first)
	if need <= len(r.b) {
		return
	}
	size := max(minRing, len(r.b))
	for size < need {
		size *= 2
	}
	old := *r
	r.b = make([]byte, size)
	for at := old.first; at < old.end; {
		part := old.slice(at, old.end)
		r.copyIn(at, part)
		at += uint64(len(part))
	}
}

// copyIn writes bytes at an offset, for which there is memory.
func (r *ring) copyIn(at uint64, b []byte) {
	n := copy(r.b[r.index(at):], b)
	copy(r.b, b[n:])
}

// put writes bytes at an offset at or after first.
func (r *ring) put(at uint64, b []byte) {
	if len(b) == 0 {
		return
	}
	end := at + uint64(len(b))
	r.reserve(end)
	r.copyIn(at, b)
	r.end = max(r.end, end)
}

// slice returns bytes from one offset on, at most to another: as far as they lie in one
// piece.
func (r *ring) slice(from, to uint64) []byte {
	if from == to {
		return nil
	}
	i := r.index(from)
	return r.b[i:min(len(r.b), i+int(to-from))]
}

// drop forgets the bytes below an offset.
func (r *ring) drop(to uint64) { r.first = to }
