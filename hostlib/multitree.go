package hostlib

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// multitree is what a communicator with several trees has beside its own: other
// communicators, which serve it and are known to nobody else. It sees every
// operation, and so compares what the members called; it alone says why all
// have ended.
type multitree struct {
	base    *Communicator
	stripes []*Communicator // over which vectors are cut, the base first
	parts   *parts          // nil: the group is not divided
	why     string          // why there are fewer trees than wanted; empty: there are not

	order     sync.Mutex // of operations on all trees
	serial    uint16     // of the next one
	isLeaving bool       // the last one was started

	mu      sync.Mutex
	verdict error      // why the base has ended; nil: it has not
	stuck   []*Request // whose pieces are all done, of which some failed, while there is no verdict
}

// branch makes the trees that a communicator is to have beside its own. If that
// fails the communicator has ended.
func (c *Communicator) branch(ctx context.Context) error {
	s := &multitree{base: c, stripes: []*Communicator{c}}
	err := s.form(ctx)
	if err == nil {
		err = c.adopt(s)
	}
	if err == nil {
		return nil
	}
	c.abort("it could not form all trees of the group: " + err.Error())
	s.end(false)
	<-c.done
	return fmt.Errorf("%w: %w", ErrFormation, err)
}

// adopt makes s part of c, unless c has ended.
func (c *Communicator) adopt(s *multitree) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.multitree = s
	}
	return c.err
}

// form makes the trees, as rank 0 has had them planned.
func (s *multitree) form(ctx context.Context) error {
	ctx, cancel := s.base.untilEnd(ctx) // after that, its members need not wait for each other
	defer cancel()
	d, err := s.base.partition(ctx)
	if err == nil && d.count > 1 {
		if d.part == nil {
			err = s.formStripes(ctx, d)
		} else {
			err = s.formParts(ctx, d)
		}
	}
	s.why = d.why
	if ended := s.base.Err(); ended != nil {
		return ended
	}
	return err
}

// formAll makes communicators that serve the base, at once, and returns as many
// as there are plans, nil where one could not be made, and the first error, which
// ends the making of the others.
func (s *multitree) formAll(ctx context.Context, plans []plan) ([]*Communicator, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	comms := make([]*Communicator, len(plans))
	var making sync.WaitGroup
	var once sync.Once
	var first error
	for i, p := range plans {
		making.Go(func() {
			p.sub.of = s.base
			c, err := s.base.host.single(ctx, s.base.name+p.suffix, p.members, p.options, p.sub)
			if comms[i] = c; err != nil {
				once.Do(func() {
					first = err
					cancel()
				})
			}
		})
	}
	making.Wait()
	return comms, first
}

// plan is what formAll needs to know of a communicator.
type plan struct {
	suffix  string // of its name
	members []Member
	options groupOptions
	sub     subcommunicator
}

// maxSuffix is the most bytes of a suffix.
const maxSuffix = 16

// others returns the communicators that serve the base.
func (s *multitree) others() []*Communicator {
	all := s.stripes[1:]
	if s.parts != nil {
		all = append(all[:len(all):len(all)], s.parts.own)
		if s.parts.roots != nil {
			all = append(all, s.parts.roots)
		}
	}
	return all
}

// retire frees the communicator's name for a successor, and the names of what
// serves it, which ends later.
func (c *Communicator) retire() {
	c.mu.Lock()
	s, p := c.multitree, c.processes
	c.mu.Unlock()
	if p != nil && p.leaders != nil {
		p.leaders.retire()
	}
	if s != nil {
		for _, o := range s.others() {
			c.host.retire(o)
		}
	}
	c.host.retire(c)
}

// endTrees ends what serves a communicator that has ended.
func (c *Communicator) endTrees() {
	c.mu.Lock()
	s, p := c.multitree, c.processes
	c.mu.Unlock()
	if s != nil {
		s.end(c.hasLeft)
	}
	if p != nil {
		p.close(c.hasLeft)
	}
}

// end waits for the end of all that serve the base, which are given up unless
// the base was left in good order: they were, too.
func (s *multitree) end(left bool) {
	for _, o := range s.others() {
		if !left {
			o.abort("its communicator has ended")
		}
	}
	for _, o := range s.others() {
		<-o.done
	}
	if s.parts != nil {
		s.parts.close()
	}
}

// start begins an operation on the trees that it is to run on.
func (s *multitree) start(r *Request, operation session.Operation) {
	o := &operation
	s.order.Lock()
	defer s.order.Unlock()
	if s.isLeaving {
		r.fail(fmt.Errorf("%w: %w", ErrEnded, session.ErrLeft))
		return
	}
	s.isLeaving = o.Last
	if !o.Whole.IsSet {
		o.Whole = session.Whole{IsSet: true, Elements: o.Elements, Serial: s.serial}
	}
	s.serial++
	switch {
	case o.Fixed.IsSet(): // over the tree of all members: it is for no part to round
		s.base.submit(r, o, s.base.tagOf(o))
	case s.parts != nil && (o.Last || o.Function != reduce.NoFunction && o.Elements > 0):
		s.parts.start(s, r, o)
	default:
		s.onStripes(r, o)
	}
}

// conclude says why the base has ended. Requests that know only that another
// tree has failed them get the same error.
func (s *multitree) conclude(err error) {
	s.mu.Lock()
	s.verdict = err
	stuck := s.stuck
	s.stuck = nil
	s.mu.Unlock()
	for _, r := range stuck {
		r.fail(err)
	}
}

// failed ends a request with the base's error, once there is one.
func (s *multitree) failed(r *Request) {
	s.mu.Lock()
	err := s.verdict
	if err == nil {
		s.stuck = append(s.stuck, r)
	}
	s.mu.Unlock()
	if err != nil {
		r.fail(err)
	}
}

// composite is a request and the pieces that it is done with. The first piece is the
// base's.
type composite struct {
	of     *multitree
	whole  *Request
	pieces []*Request
	left   atomic.Int32 // pieces that are not done
}

// newComposite makes r the request of pieces on these communicators, which are still
// to be begun.
func newComposite(s *multitree, r *Request, c wire.Collective, on ...*Communicator) *composite {
	j := &composite{of: s, whole: r, pieces: make([]*Request, len(on))}
	j.left.Store(int32(len(on)))
	for i, comm := range on {
		p := newRequest(comm)
		p.collective, p.coding, p.composite = schedule.Collective(c), r.coding, j
		j.pieces[i] = p
	}
	r.composite = j
	return j
}

// await waits for all pieces, or the end of ctx.
func (j *composite) await(ctx context.Context) {
	for _, p := range j.pieces[1:] {
		p.begin() // while this goroutine does the work of the first
	}
	for _, p := range j.pieces {
		p.await(ctx)
	}
	select {
	case <-j.whole.Done(): // where a piece has failed, later than they
	case <-ctx.Done():
	}
}

// finished takes a piece that is done.
func (j *composite) finished(p *Request) {
	p.over.Happen()
	if j.left.Add(-1) > 0 {
		return
	}
	r := j.whole
	for _, p := range j.pieces {
		switch {
		case p.err == nil:
		case p == j.pieces[0]:
			r.fail(p.err)
			return
		default:
			j.of.failed(r)
			return
		}
	}
	r.outcome = j.of.outcome(j.pieces)
	r.outcome.Elapsed = r.elapsed()
	r.succeed()
}

// outcome returns what became of an operation whose pieces went well.
func (s *multitree) outcome(pieces []*Request) Outcome {
	if s.parts != nil {
		return pieces[1].outcome
	}
	o := pieces[0].outcome
	o.Chunks = 0
	for _, p := range pieces {
		o.Chunks += p.outcome.Chunks
		o.Stripes = append(o.Stripes, p.outcome)
	}
	o.Transport, o.Reason = together("stripe", o.Stripes)
	return o
}

// together returns the transport of all, or Mixed, and the reasons: one if it
// is the same for all.
func together(what string, all []Outcome) (Transport, string) {
	transport, same := all[0].Transport, true
	for _, o := range all[1:] {
		if o.Transport != transport {
			transport = Mixed
		}
		same = same && o.Reason == all[0].Reason
	}
	if same {
		return transport, all[0].Reason
	}
	var b strings.Builder
	for i, o := range all {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %d: %s", what, i, o.Reason)
	}
	return transport, b.String()
}

// transport reports how an operation begun now would run, if it is long.
func (s *multitree) transport() (Transport, string) {
	var transport Transport
	var why string
	if s.parts != nil {
		transport, why = s.parts.own.ownTransport()
		why = s.parts.describe(why)
	} else {
		all := make([]Outcome, len(s.stripes))
		for i, stripe := range s.stripes {
			all[i].Transport, all[i].Reason = stripe.ownTransport()
		}
		transport, why = together("stripe", all)
	}
	if s.why != "" {
		why += "; " + s.why
	}
	return transport, why
}
