package hostlib

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/client"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// treePartition is which trees a communicator has, as rank 0 sends it to all members.
type treePartition struct {
	lowest attempt // of rank 0: it names the bundle of groups
	count  int     // of stripes or parts, at least 1
	part   []int   // that each rank is in, ordered by their lowest ranks; nil: they are stripes
	why    string  // why there are fewer than wanted; empty: there are not
}

var errPartition = errors.New("hostlib: malformed tree partition of a group")

// partition returns the partition, for which rank 0 asks the manager.
func (c *Communicator) partition(ctx context.Context) (treePartition, error) {
	words := newPartitionWords(len(c.members), c.options.roots > 1)
	if c.rank == 0 {
		words.put(c.askPartition(ctx))
	}
	o := session.Operation{Collective: wire.Broadcast, Element: reduce.Uint64}
	if carried := c.options.types.List(); len(carried) > 0 {
		o.Element = carried[0] // which every switch knows
	}
	o.Elements = len(words) / o.Element.Size()
	if o.In = words; c.rank != 0 {
		o.In, o.Out = nil, words
	}
	r := newRequest(c)
	r.collective, r.inner = schedule.Collective(o.Collective), true
	c.submit(r, &o, c.tagOf(&o))
	if _, err := r.finish(ctx); err != nil {
		return treePartition{}, err
	}
	return words.get(c.options, len(c.members))
}

// askPartition asks the manager what trees the group could have, and makes do
// with one where it cannot be asked.
func (c *Communicator) askPartition(ctx context.Context) treePartition {
	d := treePartition{lowest: c.own, count: 1}
	kind, wanted := manager.Stripes, c.options.mostStripes()
	if c.options.roots > 1 {
		kind, wanted, d.part = manager.Parts, c.options.roots, make([]int, len(c.members))
	}
	if c.manager == nil {
		d.why = "the host of rank 0 has no offload manager to plan more trees"
		return d
	}
	p, err := c.askPlan(ctx, kind, wanted)
	if err == nil {
		err = d.take(p, wanted)
	}
	switch {
	case err != nil:
		d.why = fmt.Sprintf("no more trees were planned: %v", err)
	case p.Fewer != nil:
		d.why = fmt.Sprintf("%d of %d %s: %v", d.count, wanted, kind, p.Fewer)
	}
	return d
}

// askPlan asks the manager until it knows, but no longer than a first tree is
// waited for.
func (c *Communicator) askPlan(ctx context.Context, kind manager.BundleKind, wanted int) (p rpc.GroupPlan, err error) {
	g := c.wishes()
	g.Bundle = manager.Bundle{Name: g.Name, Kind: kind, Count: wanted, PerRail: c.options.stripes == PerRail}
	ctx, cancel := context.WithTimeout(ctx, c.host.cfg.OfferWait)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		now, failed := c.manager.PlanGroup(ctx, g)
		if failed == nil {
			return now, nil
		}
		if err == nil || ctx.Err() == nil {
			err = failed // and not that there was no more time
		}
		if client.IsLasting(failed) || errors.Is(failed, rpc.ErrUnsupported) || errors.Is(failed, pathsel.ErrNoTree) {
			return p, err
		}
		select {
		case <-ctx.Done():
			return p, err
		case <-time.After(pause):
		}
	}
}

// take has d be as the manager plans, if that is valid.
func (d *treePartition) take(p rpc.GroupPlan, wanted int) error {
	planned := treePartition{lowest: d.lowest, count: len(p.Groups)}
	if d.part != nil {
		planned.part = make([]int, len(d.part))
		seen := 0
		for i, g := range p.Groups {
			for _, rank := range g.Ranks {
				if rank < 0 || rank >= len(d.part) {
					return fmt.Errorf("%w: rank %d of %d is in part %d", errPartition, rank, len(d.part), i)
				}
				planned.part[rank] = i
				seen++
			}
		}
		if seen != len(d.part) {
			return fmt.Errorf("%w: parts have %d members of %d", errPartition, seen, len(d.part))
		}
	}
	if err := planned.validate(wanted); err != nil {
		return err
	}
	*d = planned
	return nil
}

// validate reports what is wrong with d where so many trees were wanted.
func (d *treePartition) validate(wanted int) error {
	if d.count < 1 || d.count > wanted {
		return fmt.Errorf("%w: %d trees, want 1 to %d", errPartition, d.count, wanted)
	}
	if d.part == nil {
		return nil
	}
	next := 0 // part whose lowest rank is still to come
	for rank, part := range d.part {
		if part > next || part >= d.count {
			return fmt.Errorf("%w: rank %d is in part %d, and nobody before in part %d", errPartition, rank, part, next)
		}
		if part == next {
			next++
		}
	}
	if next != d.count {
		return fmt.Errorf("%w: %d parts of %d have members", errPartition, next, d.count)
	}
	return nil
}

// partitionWords are a treePartition as rank 0 sends it: of a length that all members
// know.
type partitionWords []byte

// Places in partitionWords. Behind the reason there are two bytes for each rank, if the
// group is divided.
const (
	wordsCount  = 8
	wordsReason = 10
	maxWhy      = 246 // bytes, padded by zeros
	wordsParts  = wordsReason + maxWhy
)

func newPartitionWords(members int, hasParts bool) partitionWords {
	n := wordsParts
	if hasParts {
		n += 2 * members
	}
	const widest = 8 // bytes of an element, of which there must be whole ones
	return make(partitionWords, (n+widest-1)/widest*widest)
}

func (w partitionWords) put(d treePartition) {
	binary.BigEndian.PutUint64(w, uint64(d.lowest))
	binary.BigEndian.PutUint16(w[wordsCount:], uint16(d.count))
	copy(w[wordsReason:wordsParts], d.why)
	for rank, part := range d.part {
		binary.BigEndian.PutUint16(w[wordsParts+2*rank:], uint16(part))
	}
}

// get returns the partition, if it is one that the options want.
func (w partitionWords) get(t groupOptions, members int) (treePartition, error) {
	d := treePartition{lowest: attempt(binary.BigEndian.Uint64(w)), count: int(binary.BigEndian.Uint16(w[wordsCount:]))}
	d.why = strings.TrimRight(strings.ToValidUTF8(string(w[wordsReason:wordsParts]), ""), "\x00")
	if t.roots > 1 {
		d.part = make([]int, members)
		for rank := range d.part {
			d.part[rank] = int(binary.BigEndian.Uint16(w[wordsParts+2*rank:]))
		}
	}
	return d, d.validate(max(t.mostStripes(), t.roots))
}
