package hostlib

import (
	"context"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
)

// Alltoall copies the i-th part of every member's vector in to rank i, which gets them in the order
// of ranks, in out. All parts have one length: that of the vectors by the number of members. out
// may be in itself.
func Alltoall[T Data](ctx context.Context, c *Communicator, in, out []T) (Outcome, error) {
	return queueAlltoall(c, in, out).finish(ctx)
}

// StartAlltoall is Alltoall without waiting.
func StartAlltoall[T Data](c *Communicator, in, out []T) *Request {
	return queueAlltoall(c, in, out).begin()
}

func queueAlltoall[T Data](c *Communicator, in, out []T) *Request {
	p := newCall[T](c, schedule.Alltoall, 0)
	p.Count = len(in) / len(c.members)
	if len(in) != len(out) || len(in)%len(c.members) != 0 {
		p.refuse("%d elements into %d, in parts for %d members", len(in), len(out), len(c.members))
	}
	reads(p, in)
	writes(p, out)
	if p.InPlace = sameMemory(p.in[0], p.out[0]); !p.InPlace {
		p.apart(p.in[0], p.out[0])
	}
	return p.begin()
}

// Alltoallv is Alltoall of parts whose lengths differ: in[i] goes to rank i, and what rank i gives
// comes into out[i], which has its length. All of out may be in itself, where every two members
// give each other as much.
func Alltoallv[T Data](ctx context.Context, c *Communicator, in, out [][]T) (Outcome, error) {
	return queueAlltoallv(c, in, out).finish(ctx)
}

// StartAlltoallv is Alltoallv without waiting.
func StartAlltoallv[T Data](c *Communicator, in, out [][]T) *Request {
	return queueAlltoallv(c, in, out).begin()
}

func queueAlltoallv[T Data](c *Communicator, in, out [][]T) *Request {
	p := newCall[T](c, schedule.Alltoallv, 0)
	p.Counts, p.RecvCounts = countsOf(p, in), countsOf(p, out)
	if p.err == nil && p.Counts[c.rank] != p.RecvCounts[c.rank] {
		p.refuse("%d elements for this member itself into %d", p.Counts[c.rank], p.RecvCounts[c.rank])
	}
	reads(p, in...)
	writes(p, out...)
	if p.err != nil {
		return p.begin()
	}
	p.InPlace = true
	some := false
	for i := range p.in {
		p.InPlace = p.InPlace && len(p.in[i]) == len(p.out[i]) && (len(p.in[i]) == 0 || sameMemory(p.in[i], p.out[i]))
		some = some || len(p.in[i]) > 0
	}
	p.InPlace = p.InPlace && some
	if p.allApart(p.out); !p.InPlace {
		for _, b := range p.in {
			for _, o := range p.out {
				p.apart(b, o)
			}
		}
	}
	return p.begin()
}
