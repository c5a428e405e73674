package peer

// ahead are the segments of a connection from the first on that is not acknowledged.
type ahead struct {
	ring  []sent // of a length that is a power of two; a segment is at its number
	first uint64 // number of the first, less one
	n     int
	size  int // bytes
}

// sent is a segment.
type sent struct {
	size    int32
	isAcked bool
}

func (a *ahead) at(number uint64) *sent { return &a.ring[int(number)&(len(a.ring)-1)] }

// isFull reports that the next segment has to wait for the first one.
func (a *ahead) isFull() bool { return a.size >= aheadMost || a.n >= aheadSegments }

// push adds the next segment.
func (a *ahead) push(size int) {
	if a.n == len(a.ring) {
		old := *a
		a.ring = make([]sent, max(64, 2*a.n))
		for i := range uint64(a.n) {
			*a.at(a.first + 1 + i) = *old.at(a.first + 1 + i)
		}
	}
	a.n++
	a.size += size
	*a.at(a.first + uint64(a.n)) = sent{size: int32(size)}
}

// confirm takes that a segment is acknowledged.
func (a *ahead) confirm(number uint64) {
	a.at(number).isAcked = true
	for a.n > 0 && a.at(a.first+1).isAcked {
		a.first++
		a.n--
		a.size -= int(a.at(a.first).size)
	}
}
