package timing

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/reduce"
)

// The collectives of pieces. Their vectors are of float32, and summed where they are reduced.
const (
	Gather        Collective = "gather"         // of pieces of the size, to rank 0
	Scatter       Collective = "scatter"        // of pieces of the size, from rank 0
	Allgather     Collective = "allgather"      // into a vector of the size
	Alltoall      Collective = "alltoall"       // of pieces of the size
	ReduceScatter Collective = "reduce-scatter" // of a vector of the size
	Scan          Collective = "scan"           // of vectors of the size
)

// ofPieces are they.
var ofPieces = []Collective{Gather, Scatter, Allgather, Alltoall, ReduceScatter, Scan}

// Collectives returns all, but Form.
func Collectives() []Collective {
	return append(slices.DeleteFunc(slices.Clone(collectives), func(c Collective) bool { return c == Form }), ofPieces...)
}

// Call returns an operation on vectors of a size as rank 0 calls it.
func (c Collective) Call(ranks, size int) schedule.Call {
	k := schedule.Call{Size: ranks, Width: 4, Count: size / 4, Segment: schedule.SegmentBytes}
	for of := range schedule.Collectives {
		if of.String() == string(c) {
			k.Collective = of
		}
	}
	switch c {
	case Allgather, ReduceScatter:
		k.Count /= ranks
	case Barrier:
		k.Count = 0
	}
	return k
}

// pieces is a task on them. Element i of what rank r gives is (i + r + number) modulo 5, as in the
// programs of peers.
type pieces struct {
	place
	of      Collective
	number  int
	in, out []float32
}

const few = 5

func newPieces(m place, of Collective, size int) task {
	p := &pieces{place: m, of: of}
	n := size / 4
	in, out := n, n
	switch of {
	case Gather:
		if out = 0; m.rank == 0 {
			out = n * m.ranks
		}
	case Scatter:
		if in = 0; m.rank == 0 {
			in = n * m.ranks
		}
	case Allgather:
		in = n / m.ranks
		out = in * m.ranks
	case Alltoall:
		in, out = n*m.ranks, n*m.ranks
	case ReduceScatter:
		out = n / m.ranks
		in = out * m.ranks
	}
	p.in, p.out = make([]float32, in), make([]float32, out)
	return p
}

func (p *pieces) given(rank, i int) float32 { return float32((i + rank + p.number) % few) }

func (p *pieces) prepare(number int) {
	p.number = number
	for i := range p.in {
		p.in[i] = p.given(p.rank, i)
	}
	clear(p.out)
}

func (p *pieces) run(ctx context.Context) (hostlib.Outcome, error) {
	switch p.of {
	case Gather:
		return hostlib.Gather(ctx, p.comm, 0, p.in, p.out)
	case Scatter:
		return hostlib.Scatter(ctx, p.comm, 0, p.in, p.out)
	case Allgather:
		return hostlib.Allgather(ctx, p.comm, p.in, p.out)
	case Alltoall:
		return hostlib.Alltoall(ctx, p.comm, p.in, p.out)
	case ReduceScatter:
		return hostlib.ReduceScatter(ctx, p.comm, reduce.Sum, p.in, p.out)
	case Scan:
		return hostlib.Scan(ctx, p.comm, reduce.Sum, p.in, p.out)
	}
	return hostlib.Outcome{}, fmt.Errorf("%w: %s", ErrConfig, p.of)
}

func (p *pieces) right() bool {
	for i, x := range p.out {
		if x != p.want(i) {
			return false
		}
	}
	return true
}

// want returns an element of the result.
func (p *pieces) want(i int) float32 {
	sum := func(at, ranks int) (s float32) {
		for rank := range ranks {
			s += p.given(rank, at)
		}
		return s
	}
	n := len(p.out) / p.ranks
	switch p.of {
	case Gather, Allgather:
		return p.given(i/n, i%n)
	case Scatter:
		return p.given(0, p.rank*len(p.out)+i)
	case Alltoall:
		return p.given(i/n, p.rank*n+i%n)
	case ReduceScatter:
		return sum(p.rank*len(p.out)+i, p.ranks)
	}
	return sum(i, p.rank+1)
}
