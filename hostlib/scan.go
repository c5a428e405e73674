package hostlib

import (
	"context"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/reduce"
)

// Scan gives each member, in out, the reduction of the vectors in of the ranks up to its own,
// element by element, in the order of ranks. out may be in itself.
func Scan[T reduce.Element](ctx context.Context, c *Communicator, f Operator, in, out []T) (Outcome, error) {
	return queueScan(c, schedule.Scan, f, in, out).finish(ctx)
}

// StartScan is Scan without waiting.
func StartScan[T reduce.Element](c *Communicator, f Operator, in, out []T) *Request {
	return queueScan(c, schedule.Scan, f, in, out).begin()
}

// Exscan is Scan of the ranks before a member's own. At rank 0 out stays as it is.
func Exscan[T reduce.Element](ctx context.Context, c *Communicator, f Operator, in, out []T) (Outcome, error) {
	return queueScan(c, schedule.Exscan, f, in, out).finish(ctx)
}

// StartExscan is Exscan without waiting.
func StartExscan[T reduce.Element](c *Communicator, f Operator, in, out []T) *Request {
	return queueScan(c, schedule.Exscan, f, in, out).begin()
}

func queueScan[T reduce.Element](c *Communicator, of schedule.Collective, f Operator, in, out []T) *Request {
	p := newCall[T](c, of, 0)
	p.Count = len(in)
	if len(in) != len(out) {
		p.refuse("%d elements into %d", len(in), len(out))
	}
	reducesBy[T](p, f)
	reads(p, in)
	writes(p, out)
	if p.InPlace = sameMemory(p.in[0], p.out[0]); !p.InPlace {
		p.apart(p.in[0], p.out[0])
	}
	return p.begin()
}
