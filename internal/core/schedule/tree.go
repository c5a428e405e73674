package schedule

import (
	"fmt"
	"math"
	"math/bits"
)

// Form is how the packets of a communicator's tree carry a call of pieces.
type Form uint8

// The forms.
const (
	// Copied: each packet has elements of one member's piece, or in a scatter of the root's
	// vector. That member alone contributes it, the others contribute nothing.
	Copied Form = iota
	// United: a member's vector is that of all pieces, with zeros in place of those that it does
	// not have; they are reduced by bitwise or. So a packet has pieces of several members.
	United
	// Reduced: a reduce-scatter, in which each member gets the packets of its own part.
	Reduced
)

// Tree is how a communicator's tree of switches, or of hosts, carries a call. It is the same for all
// members that call the same.
type Tree struct {
	Form     Form
	Width    int   // bytes of an element of the packets, of which each piece has a whole number
	Elements int   // of the vector
	Each     int   // of every piece, if they are equal
	Ends     []int // otherwise: up to the end of each piece
	Chunks   int   // packets that every member sends, and gets

	call *Call
	per  int // elements of a packet
}

// Load is packets, and the bytes of their payloads.
type Load struct{ Packets, Bytes int }

// unitedPieces is how many pieces, at least, a packet must have room for to be united: contributions
// have the bytes of all pieces then.
const unitedPieces = 4

// IsShort reports whether a vector of the pieces of n members is short enough for packets of at most so
// many bytes to unite them.
func IsShort(bytes, n, chunkBytes int) bool { return bytes <= n*chunkBytes/unitedPieces }

// mostUnited is how many chunks an alltoall may have, which is always united.
const mostUnited = 64

// OverTree returns how a tree whose packets have at most so many bytes carries a call. The error
// says why it cannot.
func OverTree(c *Call, chunkBytes int) (Tree, error) {
	t := Tree{call: c, Width: c.Width}
	switch n := c.Size; c.Collective {
	case Gather, Allgather, Allgatherv:
		if IsShort(c.bytes(c.Elements()), n, chunkBytes) {
			t.unite()
			break
		}
		t.Width = max(c.Width, 2) // packets have no elements of one byte
	case Scatter:
		if t.Width = max(c.Width, 2); c.Count == 0 {
			t.unite()
		}
	case ReduceScatter, ReduceScatterv:
		t.Form = Reduced
	case Alltoall:
		if most := uint64(mostUnited * chunkBytes); uint64(c.Count) > most || uint64(c.bytes(c.Count))*uint64(n)*uint64(n) > most {
			packets := divide(c.bytes(c.Count), chunkBytes)
			return Tree{}, fmt.Errorf("the piece of each pair takes packets of its own, to which all %d members contribute: %d packets of each member instead of %d",
				n, n*(n-1)*packets, (n-1)*packets)
		}
		t.unite()
	case Gatherv, Scatterv:
		return Tree{}, fmt.Errorf("only the root knows the lengths of all pieces")
	default:
		return Tree{}, fmt.Errorf("no form for %s", c.Collective)
	}
	if c.Size == 1 {
		return Tree{}, fmt.Errorf("a group of one sends nothing")
	}
	t.layOut(chunkBytes)
	if most := max(t.Elements, c.Elements()); most > math.MaxUint32 {
		return Tree{}, fmt.Errorf("%d elements, and packets count up to %d", most, uint32(math.MaxUint32))
	}
	return t, nil
}

func divide(a, b int) int { return (a + b - 1) / b }

func (t *Tree) unite() { t.Form, t.Width = United, max(t.call.Width, 4) }

// layOut says where pieces lie, and counts chunks.
func (t *Tree) layOut(chunkBytes int) {
	c, per := t.call, min(chunkBytes/t.Width, math.MaxUint16)
	t.per = per
	switch {
	case t.Form == United && c.Collective == Alltoall: // a row for each receiver
		t.Each = divide(c.Size*c.bytes(c.Count), t.Width)
		t.Elements = c.Size * t.Each
	case t.Form == United:
		t.Elements = divide(c.bytes(c.Elements()), t.Width)
	case c.Counts != nil:
		for _, n := range c.Counts {
			t.Elements += divide(c.bytes(n), t.Width)
			t.Ends = append(t.Ends, t.Elements)
		}
	default:
		t.Each = divide(c.bytes(c.Count), t.Width)
		t.Elements = c.Size * t.Each
	}
	switch cuts := t.Form == Copied && c.Collective != Scatter; {
	case cuts && t.Ends != nil:
		for rank := range c.Size {
			from, to := t.Piece(rank)
			t.Chunks += divide(to-from, per)
		}
	case cuts:
		t.Chunks = (c.Size - t.skipped()) * divide(t.Each, per)
	case c.Collective == Scatter && t.Form == Copied:
		t.Chunks = divide(c.Root*t.Each, per) + divide((c.Size-1-c.Root)*t.Each, per)
	default:
		t.Chunks = divide(t.Elements, per)
	}
	t.Chunks = max(t.Chunks, 1)
}

// skipped returns how many pieces no packet has: that of the root, which it keeps.
func (t *Tree) skipped() int {
	if t.Form == Copied && t.call.Collective.IsRooted() {
		return 1
	}
	return 0
}

// Piece returns the elements of a rank's piece; where they are united, of an alltoall alone.
func (t *Tree) Piece(rank int) (from, to int) {
	if t.Ends == nil {
		return rank * t.Each, (rank + 1) * t.Each
	}
	if rank > 0 {
		from = t.Ends[rank-1]
	}
	return from, t.Ends[rank]
}

// Link returns what a link to the ranks from from up to to carries, up and down.
func (t *Tree) Link(from, to int) (up, down Load) {
	c := t.call
	up.Packets, down.Packets = t.Chunks, t.Chunks
	first, _ := t.part(from)
	_, last := t.part(to - 1)
	beneath, all := t.without(first, last), t.without(0, t.Elements)
	hasRoot := from <= c.Root && c.Root < to
	switch {
	case t.Form == Reduced, t.Form == United && c.Collective == Alltoall:
		up.Bytes, down.Bytes = all, t.meets(0, t.Elements, first, last)
	case t.Form == United:
		if up.Bytes = all; c.Collective != Gather || hasRoot {
			down.Bytes = all
		}
	case c.Collective == Scatter:
		if hasRoot {
			up.Bytes = all
		}
		if !hasRoot || to-from > 1 {
			skip, behind := t.Piece(c.Root)
			down.Bytes = t.meets(0, skip, first, last) + t.meets(behind, t.Elements, first, last)
		}
	case c.Collective == Gather:
		if up.Bytes = beneath; hasRoot {
			down.Bytes = all
		}
	default:
		up.Bytes = beneath
		if down.Bytes = all; to-from == 1 {
			down.Bytes -= beneath
		}
	}
	return up, down
}

// part is Piece, also where pieces are united.
func (t *Tree) part(rank int) (from, to int) {
	if t.Each == 0 && t.Ends == nil {
		return 0, t.Elements
	}
	return t.Piece(rank)
}

// without returns the bytes of elements that packets have.
func (t *Tree) without(from, to int) int {
	if t.skipped() > 0 {
		skip, behind := t.Piece(t.call.Root)
		return (max(0, min(to, skip)-from) + max(0, to-max(from, behind))) * t.Width
	}
	return (to - from) * t.Width
}

// meets returns the bytes of the packets, of those that lie one after the other between two
// elements, that have one of others.
func (t *Tree) meets(start, end, from, to int) int {
	if from, to = max(from, start), min(to, end); from >= to {
		return 0
	}
	from = start + (from-start)/t.per*t.per
	return (min(end, start+divide(to-start, t.per)*t.per) - from) * t.Width
}

// Gains reports whether the tree is expected to be better than an algorithm of hosts where its nodes
// are switches, and why not. An allgather and a reduce-scatter spare every member the bytes of one
// direction. In the others the busiest link has as many bytes by hosts, and what remains is that
// packets do not wait for each other as rounds do.
func (t *Tree) Gains() (bool, string) {
	n := t.call.Size
	switch t.call.Collective {
	case Gather, Scatter, Alltoall:
		if rounds := bits.Len(uint(n - 1)); t.Chunks > rounds {
			return false, fmt.Sprintf("the busiest link would carry no fewer bytes, and every member would send and get %d packets, where hosts take %d messages in %d rounds or as many at once",
				t.Chunks, n-1, rounds)
		}
	}
	if n == 2 {
		return false, "switches spare two members nothing"
	}
	return true, ""
}
