package broadcastmsg

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// Filter chooses some of a group's members, by their ranks. It begins with its
// form, and has the shorter of two; of equal length, the runs.
//
//	0, runs   how many are left out, how many are chosen, how many are left out,
//	          and so on, as varints; what follows the last run is its opposite
//	1, bits   one for each rank, the first byte's highest for rank 0; then zeros
//
// A filter chooses somebody, and leaves somebody out: all are chosen by none.
type Filter []byte

// The forms.
const (
	runs   = 0
	bitmap = 1
)

// MakeFilter returns the filter of those ranks below n for which in reports
// true: some, and not all.
func MakeFilter(n int, in func(rank int) bool) Filter {
	f := Filter{runs}
	was, since := false, 0
	for rank := range n {
		if in(rank) != was {
			f = binary.AppendUvarint(f, uint64(rank-since))
			was, since = !was, rank
		}
	}
	if size := 1 + (n+7)/8; size < len(f) {
		f = append(f[:0], bitmap)
		f = append(f, make([]byte, size-1)...)
		for rank := range n {
			if in(rank) {
				f[1+rank/8] |= 128 >> (rank % 8)
			}
		}
	}
	return f
}

// valid reports whether f is a filter of a group of some size.
func (f Filter) valid() bool {
	switch {
	case len(f) < 2:
		return false
	case f[0] == bitmap:
		return true
	case f[0] != runs:
		return false
	}
	sum := uint64(0)
	for rest, first := f[1:], true; len(rest) > 0; first = false {
		run, size := binary.Uvarint(rest)
		if size <= 0 || size > 1 && rest[size-1] == 0 || run == 0 && !first {
			return false
		}
		if sum += run; run > 1<<32 || sum > 1<<32 {
			return false
		}
		rest = rest[size:]
	}
	return sum > 0
}

// Chosen returns the ranks that f chooses of n, in rising order, as ranges from
// the first rank to the one behind the last; ok is false where f is no filter of
// a group of n.
func (f Filter) Chosen(n int) (ranges iter.Seq2[int, int], ok bool) {
	if !f.valid() {
		return nil, false
	}
	if f[0] == bitmap {
		return f.bits(n), f.fits(n)
	}
	last := 0
	for rest := f[1:]; len(rest) > 0; {
		run, size := binary.Uvarint(rest)
		last += int(run)
		rest = rest[size:]
	}
	return f.runs(n), last < n
}

// Has reports whether f chooses a rank of n.
func (f Filter) Has(n, rank int) bool {
	ranges, ok := f.Chosen(n)
	if !ok {
		return false
	}
	for from, to := range ranges {
		if from <= rank && rank < to {
			return true
		}
	}
	return false
}

func (f Filter) runs(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		at, in := 0, false
		for rest := f[1:]; len(rest) > 0; in = !in {
			run, size := binary.Uvarint(rest)
			rest = rest[size:]
			if in && !yield(at, at+int(run)) {
				return
			}
			at += int(run)
		}
		if in {
			yield(at, n)
		}
	}
}

// fits reports whether a bitmap is one of n ranks, of which it chooses some and
// not all.
func (f Filter) fits(n int) bool {
	if len(f) != 1+(n+7)/8 || n%8 != 0 && f[len(f)-1]<<(n%8) != 0 {
		return false
	}
	chosen := 0
	for _, b := range f[1:] {
		chosen += bits.OnesCount8(b)
	}
	return chosen > 0 && chosen < n
}

func (f Filter) bits(n int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for rank := range n {
			if f[1+rank/8]&(128>>(rank%8)) != 0 && !yield(rank, rank+1) {
				return
			}
		}
	}
}
