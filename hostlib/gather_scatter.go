package hostlib

import (
	"context"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// Gather copies every member's vector in to the member root, in the order of ranks, into out, which
// the others may leave nil. All vectors have one length, and out the length of all. At the root, in
// may be its own part of out.
func Gather[T Data](ctx context.Context, c *Communicator, root int, in, out []T) (Outcome, error) {
	return queueGather(c, root, in, out).finish(ctx)
}

// StartGather is Gather without waiting.
func StartGather[T Data](c *Communicator, root int, in, out []T) *Request {
	return queueGather(c, root, in, out).begin()
}

func queueGather[T Data](c *Communicator, root int, in, out []T) *Request {
	p := newCall[T](c, schedule.Gather, root)
	p.Count = len(in)
	reads(p, in)
	if c.rank == root {
		if len(out) != len(in)*len(c.members) {
			p.refuse("%d elements of each of %d members into %d", len(in), len(c.members), len(out))
		}
		writes(p, out)
		p.InPlace = p.isOwnPart(p.in[0], p.out[0], c.rank*len(p.in[0]))
	}
	return p.begin()
}

// Gatherv is Gather of vectors whose lengths differ: rank i's goes to out[i] at the root, which
// has its length. At the root, in may be its own piece of out.
func Gatherv[T Data](ctx context.Context, c *Communicator, root int, in []T, out [][]T) (Outcome, error) {
	return queueGatherv(c, root, in, out).finish(ctx)
}

// StartGatherv is Gatherv without waiting.
func StartGatherv[T Data](c *Communicator, root int, in []T, out [][]T) *Request {
	return queueGatherv(c, root, in, out).begin()
}

func queueGatherv[T Data](c *Communicator, root int, in []T, out [][]T) *Request {
	p := newCall[T](c, schedule.Gatherv, root)
	p.Own = len(in)
	reads(p, in)
	if c.rank == root {
		p.Counts = countsOf(p, out)
		writes(p, out...)
		if p.err == nil {
			p.InPlace = sameMemory(p.in[0], p.out[root])
			if p.allApart(p.out); !p.InPlace {
				p.allApart(p.out, p.in[0])
			}
		}
	}
	return p.begin()
}

// Scatter copies the i-th part of the vector in of the member root to rank i, into out; the others
// may leave in nil. All parts have the length of out. At the root, out may be its own part of in.
func Scatter[T Data](ctx context.Context, c *Communicator, root int, in, out []T) (Outcome, error) {
	return queueScatter(c, root, in, out).finish(ctx)
}

// StartScatter is Scatter without waiting.
func StartScatter[T Data](c *Communicator, root int, in, out []T) *Request {
	return queueScatter(c, root, in, out).begin()
}

func queueScatter[T Data](c *Communicator, root int, in, out []T) *Request {
	p := newCall[T](c, schedule.Scatter, root)
	p.Count = len(out)
	writes(p, out)
	if c.rank == root {
		if len(in) != len(out)*len(c.members) {
			p.refuse("%d elements for %d members with %d each", len(in), len(c.members), len(out))
		}
		reads(p, in)
		p.InPlace = p.isOwnPart(p.out[0], p.in[0], c.rank*len(p.out[0]))
	}
	return p.begin()
}

// Scatterv is Scatter of parts whose lengths differ: rank i gets in[i] of the root, into out, which
// has its length. At the root, out may be its own piece of in.
func Scatterv[T Data](ctx context.Context, c *Communicator, root int, in [][]T, out []T) (Outcome, error) {
	return queueScatterv(c, root, in, out).finish(ctx)
}

// StartScatterv is Scatterv without waiting.
func StartScatterv[T Data](c *Communicator, root int, in [][]T, out []T) *Request {
	return queueScatterv(c, root, in, out).begin()
}

func queueScatterv[T Data](c *Communicator, root int, in [][]T, out []T) *Request {
	p := newCall[T](c, schedule.Scatterv, root)
	p.Own = len(out)
	writes(p, out)
	if c.rank == root {
		p.Counts = countsOf(p, in)
		reads(p, in...)
		if p.err == nil {
			if p.InPlace = sameMemory(p.out[0], p.in[root]); !p.InPlace {
				for _, b := range p.in {
					p.apart(b, p.out[0])
				}
			}
		}
	}
	return p.begin()
}
