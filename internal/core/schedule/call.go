package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/tributary-fabric/tributary/pathsel"
)

// Collective is a collective operation. Its values are part of what members compare, and never
// change.
type Collective uint8

// The collectives. In those with counts (a v in MPI), the members' pieces differ in size.
const (
	Allreduce Collective = 1 + iota
	Reduce
	Broadcast
	Barrier
	Gather
	Gatherv
	Scatter
	Scatterv
	Allgather
	Allgatherv
	Alltoall
	Alltoallv
	ReduceScatter
	ReduceScatterv
	Scan
	Exscan
	Collectives
)

var collectiveNames = [Collectives]string{
	"", "allreduce", "reduce", "broadcast", "barrier", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv",
	"alltoall", "alltoallv", "reduce-scatter", "reduce-scatterv", "scan", "exscan",
}

// String returns the name.
func (c Collective) String() string {
	if c == 0 || c >= Collectives {
		return fmt.Sprintf("collective(%d)", uint8(c))
	}
	return collectiveNames[c]
}

// Reduces reports whether the collective reduces.
func (c Collective) Reduces() bool {
	switch c {
	case Allreduce, Reduce, ReduceScatter, ReduceScatterv, Scan, Exscan:
		return true
	}
	return false
}

// Family returns the collective's family, which its costs are by.
func (c Collective) Family() pathsel.Family {
	switch c {
	case Reduce:
		return pathsel.OfReduce
	case Broadcast:
		return pathsel.OfBroadcast
	case Barrier:
		return pathsel.OfBarrier
	case Gather, Gatherv:
		return pathsel.OfGather
	case Scatter, Scatterv:
		return pathsel.OfScatter
	case Allgather, Allgatherv:
		return pathsel.OfAllgather
	case Alltoall, Alltoallv:
		return pathsel.OfAlltoall
	case ReduceScatter, ReduceScatterv:
		return pathsel.OfReduceScatter
	case Scan, Exscan:
		return pathsel.OfScan
	}
	return pathsel.OfAllreduce
}

// IsRooted reports whether one member's part differs from that of all others.
func (c Collective) IsRooted() bool {
	switch c {
	case Reduce, Broadcast, Gather, Gatherv, Scatter, Scatterv:
		return true
	}
	return false
}

// HasCounts reports whether pieces differ in size.
func (c Collective) HasCounts() bool {
	switch c {
	case Gatherv, Scatterv, Allgatherv, Alltoallv, ReduceScatterv:
		return true
	}
	return false
}

// Call is an operation as one member calls it. What all have to give alike: Collective, Size,
// Root, Width, Count (not in those with counts), Counts (in Allgatherv and ReduceScatterv), Ordered
// and Segment.
type Call struct {
	Collective Collective
	Rank, Size int
	Root       int // of rooted ones
	Width      int // bytes of an element

	// Count is how many elements there are: in the vector of Allreduce, Reduce, Broadcast, Scan
	// and Exscan; in each member's piece of the others. 0 in a Barrier and in those with counts.
	Count int
	// Counts are the elements of each rank's piece: at the root of Gatherv and Scatterv, at
	// all members of Allgatherv and ReduceScatterv; of Alltoallv those that this member sends
	// to each, and RecvCounts those that it receives. Own is this member's own piece in Gatherv and
	// Scatterv.
	Counts, RecvCounts []int
	Own                int

	// InPlace: what this member contributes lies in Out already, where its own result will be:
	// its vector, its piece, or of Alltoall all. Of ReduceScatter, its result goes where its own
	// piece of In lies, and Out is not used.
	InPlace bool

	// Ordered: the function does not commute. Vectors are reduced in the order of ranks.
	Ordered bool

	// Segment is the size in bytes of what a chain sends at once.
	Segment int

	// Order has the ranks in the order in which algorithms arrange them (see InOrder); nil: that of
	// ranks. All give the same.
	Order []int
}

// ErrCall is wrapped by the errors of Validate.
var ErrCall = errors.New("schedule: invalid call")

// SegmentBytes is what a chain of members sends at once, where nothing else is known.
const SegmentBytes = 64 << 10

// maxBytes are the bytes of a vector, at most.
const maxBytes = math.MaxInt >> 1

// Validate reports what is wrong with a call.
func (c *Call) Validate() error {
	switch {
	case c.Collective == 0 || c.Collective >= Collectives:
		return fmt.Errorf("%w: %s", ErrCall, c.Collective)
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return fmt.Errorf("%w: rank %d of %d", ErrCall, c.Rank, c.Size)
	case c.Root < 0 || c.Root >= c.Size || c.Root != 0 && !c.Collective.IsRooted():
		return fmt.Errorf("%w: root %d in a group of %d", ErrCall, c.Root, c.Size)
	case c.Width < 1 && c.Collective != Barrier:
		return fmt.Errorf("%w: elements of %d bytes", ErrCall, c.Width)
	case c.Count < 0 || c.Own < 0:
		return fmt.Errorf("%w: a negative number of elements", ErrCall)
	}
	if c.Collective == Barrier {
		return nil
	}
	if hi, lo := bits.Mul64(uint64(c.Count), uint64(c.Width)*uint64(c.Size)); hi != 0 || lo > maxBytes {
		return fmt.Errorf("%w: %d elements of %d bytes of each of %d members are more than memory can have", ErrCall, c.Count, c.Width, c.Size)
	}
	needsCounts := c.Collective == Allgatherv || c.Collective == ReduceScatterv || c.Collective == Alltoallv ||
		(c.Collective == Gatherv || c.Collective == Scatterv) && c.Rank == c.Root
	if needsCounts && len(c.Counts) != c.Size || c.Collective == Alltoallv && len(c.RecvCounts) != c.Size {
		return fmt.Errorf("%w: %d and %d counts for %d members", ErrCall, len(c.Counts), len(c.RecvCounts), c.Size)
	}
	sum := uint64(c.Own)
	for _, counts := range [...][]int{c.Counts, c.RecvCounts} {
		for _, n := range counts {
			if n < 0 {
				return fmt.Errorf("%w: a negative number of elements", ErrCall)
			}
			if sum += uint64(n); sum > maxBytes/uint64(c.Width) {
				return fmt.Errorf("%w: the counts are more than memory can have", ErrCall)
			}
		}
	}
	if needsCounts && c.Collective != Alltoallv && c.Collective != Allgatherv && c.Collective != ReduceScatterv && c.Counts[c.Rank] != c.Own {
		return fmt.Errorf("%w: the root's own piece has %d elements, its count is %d", ErrCall, c.Own, c.Counts[c.Rank])
	}
	return nil
}

// Elements returns those of all pieces together, of an alltoall those of every pair, as far as this
// member knows them.
func (c *Call) Elements() int {
	switch {
	case c.Collective == Alltoall:
		return c.Size * c.Size * c.Count
	case c.Counts == nil:
		return c.Size * c.Count
	}
	sum := 0
	for _, n := range c.Counts {
		sum += n
	}
	return sum
}

// bytes returns the size of n elements.
func (c *Call) bytes(n int) int { return n * c.Width }

// vector returns the whole vector in a buffer.
func (c *Call) vector(b Buffer) Part { return Part{Buffer: b, Size: c.bytes(c.Count)} }

// input returns where this member's own vector is.
func (c *Call) input() Part {
	if c.InPlace {
		return c.vector(Out)
	}
	return c.vector(In)
}

// span is a range of elements.
type span struct{ from, to int }

// part returns a span of a buffer's piece 0.
func (c *Call) part(b Buffer, s span) Part {
	return Part{Buffer: b, Offset: c.bytes(s.from), Size: c.bytes(s.to - s.from)}
}

// block returns the i-th of n spans of the vector that are as equal as can be.
func (c *Call) block(i, n int) span { return span{i * c.Count / n, (i + 1) * c.Count / n} }

// mod returns a mod n, which is not negative.
func mod(a, n int) int {
	if a %= n; a < 0 {
		a += n
	}
	return a
}

// floorPower returns the largest power of two that is not above n.
func floorPower(n int) int { return 1 << (bits.Len(uint(n)) - 1) }
