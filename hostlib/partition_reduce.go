package hostlib

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// segmentChunks is how many chunks of a vector go through the stages of a
// reduction over parts at a time, so that all stages are busy.
const segmentChunks = 256

// Roots divides the communicator's reductions among up to n roots, at most 64: each part
// of the members has a collection tree and a root, which computes the part's result, and
// the lowest ranks of the parts reduce these results in the order of the parts. The
// manager plans the partition when the group is formed; Parts reports it. Without a
// manager, or further trees, there is one part. Broadcasts and barriers use one tree of
// all members.
//
// Sums of floating-point numbers are those of each part, in the order of its tree's
// children, added in the order of the parts, and rounded each time: they may differ in
// their last bits from those of a communicator without this option, and so may sums in
// BlockFloat, whose bound holds for each part. All members get the same bits. An
// operation's transport is that of the member's part. It cannot be combined with
// Stripes.
func Roots(n int) GroupOption { return func(t *groupOptions) { t.roots = n } }

// Parts returns the ranks in each part of a communicator that was made with
// Roots, in the order in which their results are reduced; nil if it is not
// divided. Where processes of a host share memory, the lowest rank of each host
// reports them, with all ranks of the hosts.
func (c *Communicator) Parts() [][]int {
	if c.processes != nil && c.processes.leads() {
		parts := c.processes.leaders.Parts()
		for i, hosts := range parts {
			parts[i] = nil
			for _, host := range hosts {
				parts[i] = append(parts[i], c.processes.hosts[host]...)
			}
		}
		return parts
	}
	if c.multitree == nil || c.multitree.parts == nil {
		return nil
	}
	p := c.multitree.parts
	all := make([][]int, p.count)
	for rank, part := range p.of {
		all[part] = append(all[part], rank)
	}
	return all
}

// parts runs a group's reductions over its parts, one after the other, on a
// goroutine of its own.
type parts struct {
	count int
	of    []int // part of each rank
	mine  int   // part of this member
	place []int // rank in its part, of each rank

	own   *Communicator // of the members of this part
	roots *Communicator // of the lowest ranks of all parts, by part; nil at other members

	jobs  runner.Mailbox[job]
	tasks sync.WaitGroup
}

// job is an operation on its way to the goroutine.
type job struct {
	o    *session.Operation
	done *Request // the piece of its request that stands for the parts
	base *Request // of the last operation: the base's piece, which is still to be begun
}

// formParts makes this member's part, and the roots' communicator.
func (s *multitree) formParts(ctx context.Context, d treePartition) error {
	c := s.base
	p := &parts{count: d.count, of: d.part, mine: d.part[c.rank], place: make([]int, len(d.part))}
	own := plan{
		suffix: fmt.Sprintf("/part-%d", p.mine), options: c.options.single(),
		sub: subcommunicator{bundle: manager.Bundle{Name: groupName(c.name, d.lowest), Kind: manager.Parts, Index: p.mine, Count: d.count}},
	}
	// Sums of parts are added as they are; in a flat tree, in the parts' order.
	roots := plan{suffix: "/roots", options: c.options.single(), sub: subcommunicator{onHosts: true, radix: max(2, d.count)}}
	roots.options.blockFloat, roots.options.compressed = false, reduce.NoType
	sizes := make([]int, d.count)
	for rank, part := range d.part {
		p.place[rank] = sizes[part]
		if sizes[part] == 0 {
			roots.members = append(roots.members, c.members[rank])
			roots.sub.ranks = append(roots.sub.ranks, rank)
		}
		sizes[part]++
		if part == p.mine {
			own.members = append(own.members, c.members[rank])
			own.sub.ranks = append(own.sub.ranks, rank)
		}
	}
	plans := []plan{own}
	if p.place[c.rank] == 0 {
		plans = append(plans, roots)
	}
	comms, err := s.formAll(ctx, plans)
	if err != nil {
		for _, x := range comms {
			if x != nil {
				x.Abort("its communicator could not be formed")
			}
		}
		return err
	}
	p.own = comms[0]
	if len(comms) > 1 {
		p.roots = comms[1]
	}
	s.parts = p
	p.tasks.Go(p.run)
	return nil
}

// start has o run on the parts. The base runs it on its first element, since all
// members have to compare what they called; the last operation it runs after all
// others.
func (p *parts) start(s *multitree, r *Request, o *session.Operation) {
	j := newComposite(s, r, o.Collective, s.base, s.base)
	j.pieces[1].outside = true
	whole := job{o: o, done: j.pieces[1]}
	if o.Last {
		whole.base = j.pieces[0]
	} else {
		width := o.Width()
		first := piece(o, 0, 1, width)
		first.In = slices.Clone(first.In) // whose place may be the result's
		if first.Out != nil {
			first.Out = make([]byte, width)
		}
		s.base.submit(j.pieces[0], &first, s.base.tagOf(&first))
	}
	if p.jobs.Put(whole) {
		return
	}
	err := s.base.Err() // it has ended
	if whole.base != nil {
		whole.base.fail(err)
	}
	whole.done.fail(err)
}

// close ends the goroutine. What is still to be run fails, since all that it
// would run on has ended.
func (p *parts) close() {
	p.jobs.Close()
	p.tasks.Wait()
}

// run runs the jobs until close.
func (p *parts) run() {
	for {
		jobs, err := p.jobs.Take(context.Background())
		if err != nil {
			return
		}
		for _, x := range jobs {
			if x.o.Last {
				p.leave(x)
			} else {
				p.reduce(x)
			}
		}
	}
}

// leave runs the last barrier everywhere.
func (p *parts) leave(x job) {
	last := session.Operation{Collective: wire.Barrier, Last: true}
	all := []*Request{begin(p.own, last)}
	if p.roots != nil {
		all = append(all, begin(p.roots, last))
	}
	base := *x.o
	x.base.comm.submit(x.base, &base, x.base.comm.tagOf(&base))
	x.base.begin()
	if err := waitAll(all); err != nil {
		x.done.fail(err)
		return
	}
	x.done.outcome = all[0].outcome
	x.done.succeed()
}

// begin begins an operation of the parts' own.
func begin(c *Communicator, o session.Operation) *Request {
	r := newRequest(c)
	r.collective, r.inner = schedule.Collective(o.Collective), true
	c.submit(r, &o, c.tagOf(&o))
	return r.begin()
}

// wait returns when r is done.
func (r *Request) wait() error {
	r.await(context.Background())
	<-r.Done()
	return r.err
}

// waitAll returns when all are done that are not nil, and the first error.
func waitAll(all []*Request) (err error) {
	for _, r := range all {
		if r == nil {
			continue
		}
		if e := r.wait(); err == nil {
			err = e
		}
	}
	return err
}

// reduction is a reduction on its way through the stages: up within the part to
// its lowest rank, across between these, and down within the part. Members of a
// part begin their operations in one order.
type reduction struct {
	*parts
	o        *session.Operation
	segment  int // elements
	width    int // bytes of an element
	plain    reduce.Type
	coding   coding
	to       int    // part that gets the result; -1: all
	receives bool   // this member does
	scratch  []byte // of a lowest rank that does not

	up, across, down []*Request // by segment; nil: there is none
}

// reduce runs one reduction.
func (p *parts) reduce(x job) {
	d := &reduction{parts: p, o: x.o, plain: x.o.Vectors(), coding: x.done.coding, to: -1, receives: true}
	if x.o.Collective == wire.Reduce {
		d.to, d.receives = p.of[x.o.Root], int(x.o.Root) == x.done.comm.rank
	}
	d.segment, _ = x.o.Chunk(p.own.chunkBytes())
	d.segment, d.width = d.segment*segmentChunks, x.o.Width()
	segments := (x.o.Elements + d.segment - 1) / d.segment
	if p.leads() && !d.receives {
		d.scratch = make([]byte, inFlight*min(d.segment, x.o.Elements)*d.width)
	}
	d.up, d.across, d.down = make([]*Request, segments), make([]*Request, segments), make([]*Request, segments)
	err := d.run(segments)
	if late := waitAll(slices.Concat(d.up, d.across, d.down)); err == nil {
		err = late
	}
	if err != nil {
		x.done.fail(err)
		return
	}
	x.done.outcome = d.outcome()
	x.done.succeed()
}

// leads reports whether this member is the lowest rank of its part.
func (p *parts) leads() bool { return p.own.rank == 0 }

// inFlight is how many segments are on their way: one in each stage, and one
// whose memory is being given back.
const inFlight = 3

// run begins the stages of all segments. Segment i goes up while the one before
// goes across and the one before that goes down.
func (d *reduction) run(segments int) error {
	for i := range segments + inFlight - 1 {
		if i < segments {
			d.up[i] = begin(d.own, d.upward(i))
		}
		if i := i - 1; i >= 0 && i < segments && d.leads() {
			if err := d.up[i].wait(); err != nil {
				return err
			}
			d.across[i] = begin(d.roots, d.crossing(i))
		}
		if i := i - 2; i >= 0 && i < segments {
			if d.across[i] != nil {
				if err := d.across[i].wait(); err != nil {
					return err
				}
			}
			if o, any := d.downward(i); any {
				d.down[i] = begin(d.own, o)
				if d.scratch != nil {
					if err := d.down[i].wait(); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// upward returns the reduction of segment i within the part.
func (d *reduction) upward(i int) session.Operation {
	o := d.part(i)
	o.Collective, o.Function, o.Element, o.Compressed = wire.Reduce, d.o.Function, d.o.Element, d.o.Compressed
	o.In, o.Out = d.slice(d.o.In, i), nil
	if d.leads() {
		o.Out = d.result(i)
	}
	return o
}

// crossing returns that between the parts.
func (d *reduction) crossing(i int) session.Operation {
	o := d.part(i)
	o.Collective, o.Function, o.Element = wire.Allreduce, d.o.Function, d.plain
	o.In = d.result(i)
	if d.to >= 0 {
		o.Collective, o.Root = wire.Reduce, uint32(d.to)
	}
	if d.to < 0 || d.to == d.mine {
		o.Out = o.In
	}
	return o
}

// downward returns the broadcast within the part, if there is one: of those who
// do not receive the result, only the lowest rank has it.
func (d *reduction) downward(i int) (o session.Operation, any bool) {
	lowest := d.to >= 0 && d.place[d.o.Root] == 0
	if d.to >= 0 && (d.to != d.mine || lowest) || d.own.Size() == 1 {
		return o, false
	}
	o = d.part(i)
	// Any type does that has the size, and the part's switches know this one.
	o.Collective, o.Element, o.Elements = wire.Broadcast, d.plain, o.Elements*d.width/d.plain.Size()
	switch {
	case d.leads():
		o.In = d.result(i)
	case d.receives:
		o.Out = d.slice(d.o.Out, i)
	default:
		o.Aside = true
	}
	return o, true
}

// part returns an operation of the length of segment i.
func (d *reduction) part(i int) session.Operation {
	return session.Operation{Elements: min(d.segment, d.o.Elements-i*d.segment)}
}

// slice returns segment i of a vector.
func (d *reduction) slice(v []byte, i int) []byte {
	from := i * d.segment * d.width
	return v[from:min(from+d.segment*d.width, len(v))]
}

// result returns where a lowest rank has the result of segment i.
func (d *reduction) result(i int) []byte {
	if d.scratch == nil {
		return d.slice(d.o.Out, i)
	}
	n := len(d.scratch) / inFlight
	at := i % inFlight * n
	return d.scratch[at : at+min(n, d.part(i).Elements*d.width)]
}

// outcome reports how it went within the part.
func (d *reduction) outcome() Outcome {
	o := Outcome{Transport: d.up[0].outcome.Transport, function: d.o.Function, element: d.o.Element}
	d.coding.report(&o)
	var reasons []string
	for _, r := range slices.Concat(d.up, d.down) {
		if r == nil {
			continue
		}
		if r.outcome.Transport != o.Transport {
			o.Transport = Mixed
		}
		o.trees = append(o.trees, r.outcome.trees...)
		for _, e := range r.outcome.Epochs {
			if !slices.Contains(o.Epochs, e) {
				o.Epochs = append(o.Epochs, e)
			}
		}
		if !slices.Contains(reasons, r.outcome.Reason) {
			reasons = append(reasons, r.outcome.Reason)
		}
	}
	for _, r := range d.up {
		o.Chunks += r.outcome.Chunks
	}
	slices.Sort(o.Epochs)
	o.Reason = d.describe(strings.Join(reasons, "; then "))
	return o
}

// describe reports how a reduction runs whose part runs for that reason.
func (p *parts) describe(why string) string {
	return fmt.Sprintf("part %d of %d: %s; the results of the parts are reduced over hosts", p.mine, p.count, why)
}
