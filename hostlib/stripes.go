package hostlib

import (
	"context"
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
)

// stripeChunks is how many chunks of a vector each stripe must get for it to be cut.
// Each costs wakeups of its own, which fewer chunks do not repay.
const stripeChunks = 256

// Stripes gives the communicator up to n collection trees, at most 64, over disjoint
// links between switches, and cuts long vectors over them, so that an operation has the
// bandwidth of several spines. Where the links between switches are not the bottleneck
// it is slower, because each stripe costs CPU time. The manager determines the number of
// stripes when the group is formed, within Config.OfferWait; without a manager there is
// one. Stripes reports them. A vector with at least 256 packets for each stripe is cut
// into equal pieces at packet boundaries, the same at all members and for the
// communicator's life; shorter ones, and barriers, use the first. A stripe without a
// tree runs over hosts; the others continue.
//
// Elements are reduced in the order of the children of the stripe's tree, so
// floating-point sums of long vectors may differ in their last bits from those of a
// communicator without this option; all members get the same bits. It cannot be combined
// with Roots.
//
// With PerRail in place of a number there are as many stripes as every member's host has
// links to leaf switches that no two of them share: where each host is attached to two
// leaves there are two, and where one host has a single link, one.
func Stripes(n int) GroupOption { return func(t *groupOptions) { t.stripes = n } }

// PerRail is the number of Stripes that gives a communicator a tree over each rail.
const PerRail = -1

// Stripe is one of the trees of a communicator that was made with Stripes.
type Stripe struct {
	Name      string    // the communicator's, with what distinguishes its stripes
	Transport Transport // as Communicator.Transport reports it of all
	Reason    string
	Stats     Stats
}

// Stripes reports the trees that vectors are cut over, in their order: the
// communicator's own alone if it has no others. Where processes of a host share
// memory, the lowest rank of each host reports those between hosts.
func (c *Communicator) Stripes() []Stripe {
	if c.processes != nil && c.processes.leads() {
		return c.processes.leaders.Stripes()
	}
	stripes := []*Communicator{c}
	if c.multitree != nil {
		stripes = c.multitree.stripes
	}
	all := make([]Stripe, len(stripes))
	for i, l := range stripes {
		all[i] = Stripe{Name: l.name, Stats: l.ownStats()}
		all[i].Transport, all[i].Reason = l.ownTransport()
	}
	return all
}

// formStripes makes the stripes beside the base.
func (s *multitree) formStripes(ctx context.Context, d treePartition) error {
	c := s.base
	var plans []plan
	for k := 1; k < d.count; k++ {
		plans = append(plans, plan{
			suffix: fmt.Sprintf("/stripe-%d", k), members: c.members, options: c.options.single(),
			sub: subcommunicator{bundle: manager.Bundle{
				Name: groupName(c.name, d.lowest), Kind: manager.Stripes, Index: k, Count: c.options.mostStripes(), PerRail: c.options.stripes == PerRail,
			}},
		})
	}
	stripes, err := s.formAll(ctx, plans)
	for _, l := range stripes {
		if l != nil {
			s.stripes = append(s.stripes, l)
		}
	}
	return err
}

// onStripes runs o on the first stripe, or cut on all of them; the last one on all as it is.
func (s *multitree) onStripes(r *Request, o *session.Operation) {
	pieces := cut(o, len(s.stripes), s.base.chunkBytes())
	if o.Last {
		pieces = slices.Repeat([]session.Operation{*o}, len(s.stripes))
	}
	if pieces == nil {
		s.base.submit(r, o, s.base.tagOf(o))
		return
	}
	j := newComposite(s, r, o.Collective, s.stripes...)
	for i, stripe := range s.stripes {
		stripe.submit(j.pieces[i], &pieces[i], stripe.tagOf(&pieces[i]))
	}
}

// cut returns the pieces of o for n stripes; nil: it is not cut. They depend on
// nothing that members may not know alike.
func cut(o *session.Operation, n, chunkBytes int) []session.Operation {
	perChunk, _ := o.Chunk(chunkBytes)
	if n < 2 || perChunk == 0 {
		return nil
	}
	chunks := (o.Elements + perChunk - 1) / perChunk
	if chunks < n*stripeChunks {
		return nil
	}
	pieces := make([]session.Operation, n)
	from := 0
	for i := range pieces {
		to := min(chunks*(i+1)/n*perChunk, o.Elements)
		pieces[i] = piece(o, from, to, o.Width())
		from = to
	}
	return pieces
}

// piece returns o with a part of its vectors: the elements from and up to to, of
// so many bytes each.
func piece(o *session.Operation, from, to, width int) session.Operation {
	p := *o
	p.Elements = to - from
	if o.In != nil {
		p.In = o.In[from*width : to*width]
	}
	if o.Out != nil {
		p.Out = o.Out[from*width : to*width]
	}
	return p
}
