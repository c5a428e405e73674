package hostlib

import (
	"context"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/reduce"
)

// ReduceScatter reduces the members' vectors in, element by element, and gives the i-th part of the
// result to rank i, in out. All parts have the length of out; out may be this member's own part
// of in.
func ReduceScatter[T reduce.Element](ctx context.Context, c *Communicator, f Operator, in, out []T) (Outcome, error) {
	return queueReduceScatter(c, f, in, out).finish(ctx)
}

// StartReduceScatter is ReduceScatter without waiting.
func StartReduceScatter[T reduce.Element](c *Communicator, f Operator, in, out []T) *Request {
	return queueReduceScatter(c, f, in, out).begin()
}

func queueReduceScatter[T reduce.Element](c *Communicator, f Operator, in, out []T) *Request {
	p := newCall[T](c, schedule.ReduceScatter, 0)
	p.Count = len(out)
	if len(in) != len(out)*len(c.members) {
		p.refuse("%d elements for %d members with %d each", len(in), len(c.members), len(out))
	}
	return queueParts(p, f, in, out, c.rank*len(out))
}

// ReduceScatterv is ReduceScatter of parts whose lengths differ: rank i gets counts[i] elements, and
// all members give the same counts.
func ReduceScatterv[T reduce.Element](ctx context.Context, c *Communicator, f Operator, in, out []T, counts []int) (Outcome, error) {
	return queueReduceScatterv(c, f, in, out, counts).finish(ctx)
}

// StartReduceScatterv is ReduceScatterv without waiting.
func StartReduceScatterv[T reduce.Element](c *Communicator, f Operator, in, out []T, counts []int) *Request {
	return queueReduceScatterv(c, f, in, out, counts).begin()
}

func queueReduceScatterv[T reduce.Element](c *Communicator, f Operator, in, out []T, counts []int) *Request {
	p := newCall[T](c, schedule.ReduceScatterv, 0)
	p.Counts = append([]int(nil), counts...)
	sum, before := 0, 0
	for rank, n := range counts {
		if sum += n; n < 0 || sum > len(in) {
			p.refuse("count %d of rank %d, of %d elements", n, rank, len(in))
			break
		}
		if rank < c.rank {
			before = sum
		}
	}
	switch {
	case len(counts) != len(c.members):
		p.refuse("%d counts for %d members", len(counts), len(c.members))
	case sum != len(in) || counts[c.rank] != len(out):
		p.refuse("%d elements in, %d of them counted; %d into %d", len(in), sum, counts[c.rank], len(out))
	}
	return queueParts(p, f, in, out, before)
}

// queueParts queues a reduce-scatter whose own part begins at an element.
func queueParts[T reduce.Element](p *pieced, f Operator, in, out []T, from int) *Request {
	reducesBy[T](p, f)
	reads(p, in)
	if p.InPlace = len(out) > 0 && from+len(out) <= len(in) && &in[from] == &out[0]; p.InPlace {
		p.out = nil
		if l := lend(in); l.get != nil { // on this machine, In is a copy
			p.in[0] = l.bytes
			p.after = append(p.after, l.get)
		}
		return p.begin()
	}
	writes(p, out)
	p.apart(p.in[0], p.out[0])
	return p.begin()
}
