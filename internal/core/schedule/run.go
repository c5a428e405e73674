package schedule

import "iter"

// Run is a member's part in an operation, on its memory. Who drives it begins the transfers of a round,
// the receives before the sends, waits until all are done, and has it compute what is local; after the
// last round it finishes alone. Follow and Next do so where nothing but the transfers is the driver's.
type Run struct {
	Call
	In, Out [][]byte // the caller's, by piece
	Temp    []byte   // Schedule.Temp bytes, or more
	Tag     uint64   // of every message

	// Reduce stores a op b in to; where b is nil, what the function makes of a alone. Nil: nothing
	// is reduced.
	Reduce func(to, a, b []byte)

	next  func() (*Round, bool)
	stop  func()
	round *Round
}

// Follow has r carry out a schedule of its Call. Stop has to be called, or Next until it reports false.
func (r *Run) Follow(s Schedule) { r.next, r.stop = iter.Pull(s.Rounds) }

// Stop ends r before the end.
func (r *Run) Stop() { r.stop() }

// Next does what is local in the round whose transfers are done, if there was one, and returns the
// next. It reports false when the operation is done.
func (r *Run) Next() (round *Round, ok bool) {
	if r.round != nil {
		for i := range r.round.Locals {
			r.Compute(&r.round.Locals[i])
		}
	}
	if r.round, ok = r.next(); !ok {
		r.FinishAlone()
	}
	return r.round, ok
}

// At returns a part of the memory.
func (r *Run) At(p Part) []byte {
	if p.Size == 0 {
		return nil
	}
	var b []byte
	switch p.Buffer {
	case In:
		b = r.In[p.Piece]
	case Out:
		b = r.Out[p.Piece]
	default:
		b = r.Temp
	}
	return b[p.Offset : p.Offset+p.Size : p.Offset+p.Size]
}

// Awaits reports whether a message is the one that a receive is for. Otherwise its sender has called
// another operation.
func (r *Run) Awaits(t *Transfer, tag uint64, bytes int) bool { return tag == r.Tag && bytes == t.Size }

// Compute does what is local.
func (r *Run) Compute(l *Local) {
	switch to := r.At(l.To); {
	case len(to) == 0:
	case l.IsCopy():
		copy(to, r.At(l.A))
	default:
		r.Reduce(to, r.At(l.A), r.At(l.B))
	}
}

// FinishAlone makes a result of a vector that is the only one in it, as the function's results
// are: with canonical NaNs, say.
func (r *Run) FinishAlone() {
	isAlone := r.Size == 1 || r.Collective == Scan && r.Rank == 0 || r.Collective == Exscan && r.Rank == 1
	if !isAlone || r.Reduce == nil || r.Collective == Exscan && r.Rank == 0 {
		return
	}
	out := r.Out
	if len(out) == 0 { // of a reduce-scatter in place
		out = r.In
	}
	if len(out) > 0 && len(out[0]) > 0 {
		r.Reduce(out[0], out[0], nil)
	}
}
