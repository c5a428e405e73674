package revoke

import (
	"iter"
	"math/bits"
)

// Neighbours returns the neighbours of a vertex of the binomial graph of n, each once: those at
// 2^k above it and below it around the ring, for each 2^k < n. The length of link to begin with is
// a power of two; shorter ones follow, and then the longer ones, from the longest. 0: from that on.
func Neighbours(n int, v uint32, first int) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		longest := longestLink(n)
		length := min(first, longest)
		for range logarithm(n) {
			if length == 0 {
				length = longest
			}
			if !yield(around(n, v, length)) {
				return
			}
			if down := n - length; !isLength(down) && !yield(around(n, v, down)) { // else it is one above
				return
			}
			length >>= 1
		}
	}
}

// Degree returns the number of neighbours of every vertex of the binomial graph of n: two for each
// power of two below n, less where one above is one below, too.
func Degree(n int) int {
	switch all := 2 * logarithm(n); {
	case n == 1:
		return 0
	case bits.OnesCount(uint(n)) == 1: // n/2 above is n/2 below
		return all - 1
	case bits.OnesCount(uint(n)) == 2: // with n = 2^a + 2^b, 2^a above is 2^b below, and the reverse
		return all - 2
	default:
		return all
	}
}

// AreNeighbours reports whether there is a link between two vertices of the binomial graph of n.
func AreNeighbours(n int, v, w uint32) bool {
	up := above(n, v, w)
	return isLength(up) || up != 0 && isLength(n-up)
}

// Diameter returns a bound of the distance between two vertices of the binomial graph of n: the
// digits that are not zero of a number of up to n/2, as a sum and difference of powers of two of
// which no two follow each other.
func Diameter(n int) int { return (logarithm(n) + 1) / 2 }

// logarithm returns that of n to base 2, rounded up.
func logarithm(n int) int { return bits.Len(uint(n - 1)) }

// longestLink returns the length of the longest link: the largest power of two below n; 0: there is
// none.
func longestLink(n int) int { return 1 << logarithm(n) >> 1 }

// isLength reports whether d, which is below n, is a power of two, as the lengths of links are.
func isLength(d int) bool { return bits.OnesCount(uint(d)) == 1 }

// around returns the vertex d above another one.
func around(n int, v uint32, d int) uint32 { return uint32((int(v) + d) % n) }

// above returns how far w is above v, of 0 to n-1.
func above(n int, v, w uint32) int { return (int(w) - int(v) + n) % n }

// lengthOf returns the length of the link between neighbours.
func lengthOf(n int, v, w uint32) int {
	if up := above(n, v, w); isLength(up) {
		return up
	}
	return above(n, w, v)
}
