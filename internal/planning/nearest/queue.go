// Package nearest has the queue of searches for shortest paths.
package nearest

// Queue is a binary heap of nodes by distance, the smaller node first among
// equals. A node may stand in it several times; who pops it knows by its
// distance which entry counts.
type Queue []Entry

// Entry is a node at a distance.
type Entry struct {
	Dist float64
	Node int32
}

func (a Entry) before(b Entry) bool {
	return a.Dist < b.Dist || a.Dist == b.Dist && a.Node < b.Node
}

// Push adds a node at a distance.
func (q *Queue) Push(dist float64, node int32) {
	*q = append(*q, Entry{dist, node})
	s, i := *q, len(*q)-1
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

// Pop takes the nearest node, of which there must be one.
func (q *Queue) Pop() Entry {
	s := *q
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*q = s
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
