package aggregate

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// Bounds of a Failure.
const (
	MaxSource = 255 // bytes of a node's name
	MaxText   = 120 // bytes of what it says
)

// DefaultNamed is how many failures are named where nothing else is set.
const DefaultNamed = 32

// A Failure is a node that failed, or a subtree that did not answer.
type Failure struct {
	Node  string // the node, or the subtree's root: 1 to MaxSource bytes
	Nodes uint32 // 1, or how many nodes are in the subtree
	Code  uint32 // the service's own
	Text  string // the same in words, cut off after MaxText bytes; may be empty
}

// Statuses counts the nodes that succeeded, and names those that failed: the
// first ones by their names, while the others are counted, so that its size is
// bounded. In bytes it is the number of nodes that succeeded (4), of those that
// failed and are not named (4), of the failures that follow (2), and for each of
// them its nodes (4), code (4), the length of its name (1) and the name, the
// length of its text (1) and the text. Its zero value is empty, and names up to
// DefaultNamed.
type Statuses struct {
	Named int // most failures that are named; 0: DefaultNamed

	succeeded uint64
	unnamed   uint64
	failures  []Failure // by name, each once
}

const (
	statusesHead = 4 + 4 + 2
	failureHead  = 4 + 4 + 1 + 1
)

// StatusesSize returns the most bytes that the Statuses of a subtree of so many
// nodes take, of which so many are named (0: DefaultNamed), whose names have at
// most nameBytes: what a reply buffer for it must have.
func StatusesSize(nodes, named, nameBytes int) int {
	return statusesHead + min(nodes, bound(named))*(failureHead+nameBytes+MaxText)
}

func bound(named int) int {
	if named <= 0 {
		return DefaultNamed
	}
	return min(named, math.MaxUint16)
}

// Succeed adds a node that succeeded.
func (s *Statuses) Succeed() { s.succeeded++ }

// Fail adds a node, or a subtree, that failed. It panics where the name is not
// of 1 to MaxSource bytes, or there are no nodes. If the name is there already
// the nodes are added, and the first code and text stay.
func (s *Statuses) Fail(f Failure) {
	if f.Node == "" || len(f.Node) > MaxSource || f.Nodes == 0 {
		panic("aggregate: a failure without a name or nodes")
	}
	f.Text = strings.Clone(f.Text[:min(len(f.Text), MaxText)])
	s.insert(f)
}

// insert keeps the first by name and counts the others.
func (s *Statuses) insert(f Failure) {
	i, twice := slices.BinarySearchFunc(s.failures, f.Node, func(f Failure, node string) int { return cmp.Compare(f.Node, node) })
	if twice {
		s.failures[i].Nodes += f.Nodes
		return
	}
	s.failures = slices.Insert(s.failures, i, f)
	if last := len(s.failures) - 1; last >= bound(s.Named) {
		s.unnamed += uint64(s.failures[last].Nodes)
		s.failures[last] = Failure{}
		s.failures = s.failures[:last]
	}
}

// Succeeded returns how many nodes succeeded.
func (s *Statuses) Succeeded() int { return int(s.succeeded) }

// Failed returns how many nodes failed or did not answer, named or not.
func (s *Statuses) Failed() int {
	n := s.unnamed
	for i := range s.failures {
		n += uint64(s.failures[i].Nodes)
	}
	return int(n)
}

// Failures returns those that are named, ordered by name; the slice is the
// Statuses' own.
func (s *Statuses) Failures() []Failure { return s.failures }

// Unnamed returns how many nodes failed and are not named.
func (s *Statuses) Unnamed() int { return int(s.unnamed) }

// Add implements Aggregator. The child's number does not matter.
func (s *Statuses) Add(_ int, body []byte) error {
	count, err := checkStatuses(body)
	if err != nil {
		return err
	}
	s.succeeded += uint64(binary.BigEndian.Uint32(body))
	s.unnamed += uint64(binary.BigEndian.Uint32(body[4:]))
	body = body[statusesHead:]
	for range count {
		var f Failure
		f, body = cutFailure(body)
		s.insert(f)
	}
	return nil
}

// checkStatuses returns how many failures body names.
func checkStatuses(body []byte) (int, error) {
	if len(body) < statusesHead {
		return 0, wrong("%d bytes are no statuses", len(body))
	}
	count := int(binary.BigEndian.Uint16(body[8:]))
	body = body[statusesHead:]
	before := []byte(nil)
	for i := range count {
		size := failureSize(body)
		if size < 0 {
			return 0, wrong("statuses are cut off in failure %d of %d", i, count)
		}
		name := body[9 : 9+int(body[8])]
		switch {
		case len(name) == 0 || string(name) <= string(before):
			return 0, wrong("failure %d has no name, or is out of order", i)
		case binary.BigEndian.Uint32(body) == 0 || size-failureHead-len(name) > MaxText:
			return 0, wrong("failure %d is of no nodes, or has too long a text", i)
		}
		before, body = name, body[size:]
	}
	if len(body) > 0 {
		return 0, wrong("%d bytes follow the statuses", len(body))
	}
	return count, nil
}

// failureSize returns the bytes of the failure at the front of b, -1 if it is
// cut off.
func failureSize(b []byte) int {
	if len(b) < failureHead {
		return -1
	}
	text := 9 + int(b[8])
	if text >= len(b) || text+1+int(b[text]) > len(b) {
		return -1
	}
	return text + 1 + int(b[text])
}

// cutFailure takes the failure, which is valid, off the front of b.
func cutFailure(b []byte) (Failure, []byte) {
	size, text := failureSize(b), 9+int(b[8])
	return Failure{
		Nodes: binary.BigEndian.Uint32(b), Code: binary.BigEndian.Uint32(b[4:]),
		Node: string(b[9:text]), Text: string(b[text+1 : size]),
	}, b[size:]
}

// AppendTo implements Aggregator.
func (s *Statuses) AppendTo(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, clamp(s.succeeded))
	dst = binary.BigEndian.AppendUint32(dst, clamp(s.unnamed))
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s.failures)))
	for i := range s.failures {
		f := &s.failures[i]
		dst = binary.BigEndian.AppendUint32(dst, f.Nodes)
		dst = binary.BigEndian.AppendUint32(dst, f.Code)
		dst = append(append(dst, byte(len(f.Node))), f.Node...)
		dst = append(append(dst, byte(len(f.Text))), f.Text...)
	}
	return dst
}

// clamp: more nodes than a count can hold are there only if somebody lies.
func clamp(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
