package hostlib

import (
	"context"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// Allgather copies every member's vector in to all members, in the order of ranks, into out. All
// vectors have one length, and out the length of all; in may be this member's own part of out.
func Allgather[T Data](ctx context.Context, c *Communicator, in, out []T) (Outcome, error) {
	return queueAllgather(c, in, out).finish(ctx)
}

// StartAllgather is Allgather without waiting.
func StartAllgather[T Data](c *Communicator, in, out []T) *Request {
	return queueAllgather(c, in, out).begin()
}

func queueAllgather[T Data](c *Communicator, in, out []T) *Request {
	p := newCall[T](c, schedule.Allgather, 0)
	p.Count = len(in)
	if len(out) != len(in)*len(c.members) {
		p.refuse("%d elements of each of %d members into %d", len(in), len(c.members), len(out))
	}
	reads(p, in)
	writes(p, out)
	p.InPlace = p.isOwnPart(p.in[0], p.out[0], c.rank*len(p.in[0]))
	return p.begin()
}

// Allgatherv is Allgather of vectors whose lengths differ: rank i's goes to out[i] at every member,
// and all have pieces of the same lengths. in may be this member's own piece of out.
func Allgatherv[T Data](ctx context.Context, c *Communicator, in []T, out [][]T) (Outcome, error) {
	return queueAllgatherv(c, in, out).finish(ctx)
}

// StartAllgatherv is Allgatherv without waiting.
func StartAllgatherv[T Data](c *Communicator, in []T, out [][]T) *Request {
	return queueAllgatherv(c, in, out).begin()
}

func queueAllgatherv[T Data](c *Communicator, in []T, out [][]T) *Request {
	p := newCall[T](c, schedule.Allgatherv, 0)
	p.Counts = countsOf(p, out)
	if p.Counts[c.rank] != len(in) {
		p.refuse("%d elements into a piece of %d", len(in), p.Counts[c.rank])
	}
	reads(p, in)
	writes(p, out...)
	if p.err == nil {
		p.InPlace = sameMemory(p.in[0], p.out[c.rank])
		if p.allApart(p.out); !p.InPlace {
			p.allApart(p.out, p.in[0])
		}
	}
	return p.begin()
}
