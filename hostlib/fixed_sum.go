package hostlib

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// fixedOnHosts says why the tree does not carry a call.
const fixedOnHosts = "sums that are Reproducible are carried by it in allreduce and reduce alone, without processes that share memory"

// fix has a call sum integers if it is to be Reproducible.
func (p *pieced) fix() {
	f, is := p.c.fixed(p.function, p.typeOf())
	if is && p.Width > 0 {
		p.fixed, p.Width = f, f.Word().Size()
	}
}

// fixedSum is what an operation by an algorithm of hosts has that sums floating-point numbers as integers: first the
// members agree on their exponents, by an allreduce with the same number; then they sum.
type fixedSum struct {
	algorithm schedule.Algorithm // of the agreement
	schedule  schedule.Schedule
	call      schedule.Call
	marks     *[]byte
	in, out   *[]byte // words; out is nil where there are none, or they are in in
	isAgreed  bool
}

// agreement returns the call by which members agree on the exponents of a sum of so many elements; nil: it is no
// Reproducible one.
func (c *Communicator) agreement(f reduce.Fixed, elements int) *schedule.Call {
	if !f.IsSet() {
		return nil
	}
	return &schedule.Call{
		Collective: schedule.Allreduce, Rank: c.rank, Size: len(c.members), Segment: schedule.SegmentBytes, Order: c.arranged,
		Width: reduce.Uint32.Size(), Count: f.Marks(elements), InPlace: true,
	}
}

// takes returns the time that the cost model predicts for a call by hosts.
func (c *Communicator) takes(t *policy, k *schedule.Call) time.Duration {
	by, _ := c.algorithm(k, false, nil)
	w := schedule.WorkOf(k, by)
	return t.costs.Time(k.Collective.Family(), pathsel.ByMessages, &w)
}

// takes returns the time that the cost model predicts for a call over the communicator's tree.
func (t *policy) takes(k *schedule.Call, kind pathsel.Kind) time.Duration {
	w := schedule.TreeWork(k, kind)
	return t.costs.Time(k.Collective.Family(), kind, &w)
}

// newFixedSum plans the agreement for a call. All members choose by the same policy: its operation has no number yet.
func (c *Communicator) newFixedSum(k *hostCall) *fixedSum {
	s := &fixedSum{call: *c.agreement(k.fixed, len(k.in[0])/k.fixed.From().Size())}
	s.algorithm, _ = c.algorithm(&s.call, false, nil)
	s.schedule, _ = schedule.Make(&s.call, s.algorithm) // which can do every allreduce that it is chosen for
	return s
}

// agree has an operation begin with the agreement.
func (s *fixedSum) agree(o *hostOperation) {
	o.sum = s
	size := s.call.Count * s.call.Width
	s.marks = tempOf(size)
	by, _ := operationOf(reduce.Max, reduce.Uint32)
	o.schedule = s.schedule
	v := [][]byte{s.memory(s.marks, size)}
	if size > 0 {
		o.fixed.Mark(v[0], o.in[0])
	}
	o.work = schedule.Run{Call: s.call, In: v, Out: v, Tag: o.tag, Reduce: by.kernel}
}

func (s *fixedSum) memory(temp *[]byte, size int) []byte {
	if temp == nil {
		return nil
	}
	return (*temp)[:size]
}

// next has an operation go on with the sum, and reports whether there was that to do.
func (s *fixedSum) next(o *hostOperation) bool {
	if s.isAgreed {
		return false
	}
	s.isAgreed = true
	giveBack(o.temp)
	o.temp, o.past = nil, 0
	f, call := o.fixed, o.Call
	size := len(o.in[0]) / f.From().Size() * call.Width
	s.in = tempOf(size)
	words := s.memory(s.in, size)
	if size > 0 {
		f.Encode(words, o.in[0], s.agreed(), 0)
	}
	by, _ := operationOf(reduce.Sum, f.Word())
	o.work = schedule.Run{In: [][]byte{words}, Tag: o.tag, Reduce: by.kernel}
	switch result, takes, _ := s.result(o); {
	case call.Collective == schedule.ReduceScatter || call.Collective == schedule.ReduceScatterv:
		call.InPlace = false
		size := len(result) / f.From().Size() * call.Width
		s.out = tempOf(size)
		o.work.Out = [][]byte{s.memory(s.out, size)}
	case !takes && call.Collective == schedule.Reduce:
		call.InPlace = false
		o.work.Out = [][]byte{nil}
	default:
		call.InPlace = true
		o.work.Out = o.work.In
	}
	o.work.Call = call
	o.schedule, _ = schedule.Make(&call, o.algorithm) // as it was before
	return true
}

// agreed returns the marks.
func (s *fixedSum) agreed() []byte { return s.memory(s.marks, s.call.Count*s.call.Width) }

// result returns where the member's result goes, if it gets one, and which element of the vector is the first.
func (s *fixedSum) result(o *hostOperation) (to []byte, takes bool, at int) {
	switch o.Collective {
	case schedule.Reduce:
		if o.Rank != o.Root {
			return nil, false, 0
		}
	case schedule.Exscan:
		if o.Rank == 0 {
			return nil, false, 0 // which stays as it is
		}
	case schedule.ReduceScatter:
		at = o.Rank * o.Count
	case schedule.ReduceScatterv:
		for _, n := range o.Counts[:o.Rank] {
			at += n
		}
	}
	if len(o.out) > 0 {
		return o.out[0], true, at
	}
	n := o.Count // of a reduce-scatter in place
	if o.Counts != nil {
		n = o.Counts[o.Rank]
	}
	width := o.fixed.From().Size()
	return o.in[0][at*width : (at+n)*width], true, at
}

// finish turns the member's words back.
func (s *fixedSum) finish(o *hostOperation) {
	if to, takes, at := s.result(o); takes && len(to) > 0 {
		o.fixed.Decode(to, o.work.Out[0], s.agreed(), at)
	}
	for _, temp := range []*[]byte{s.marks, s.in, s.out} {
		giveBack(temp)
	}
}
