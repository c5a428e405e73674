package steiner

// heap is a binary heap of nodes by distance, the smaller node first among
// equals. A node may stand in it several times; who pops it knows by its
// distance which entry counts.
type heap []heapEntry

type heapEntry struct {
	dist float64
	node int32
}

func (a heapEntry) before(b heapEntry) bool {
	return a.dist < b.dist || a.dist == b.dist && a.node < b.node
}

func (h *heap) push(dist float64, node int32) {
	*h = append(*h, heapEntry{dist, node})
	s, i := *h, len(*h)-1
	added := s[i]
	for i > 0 {
		up := (i - 1) / 2
		if !added.before(s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = added
}

func (h *heap) pop() heapEntry {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
	return top
}
