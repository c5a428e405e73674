package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
)

// Hosts returns the hosts, by NodeID, for what takes more than communicators.
func (f *Fabric) Hosts() []*hostlib.Host { return slices.Clone(f.hosts) }

// Communicators makes a communicator of the named hosts, or of all where none
// is named, and returns each member's end of it, by rank. Operations keep to the group's tree
// (hostlib.OnTree), which is what such a fabric is to show.
func (f *Fabric) Communicators(ctx context.Context, name string, hosts ...string) ([]*hostlib.Communicator, error) {
	return f.form(ctx, f.hosts, name, hosts)
}

// CommunicatorsApart is Communicators for hosts that know no manager: their
// operations run over hosts. They are others than Hosts, of the same names.
func (f *Fabric) CommunicatorsApart(ctx context.Context, name string, hosts ...string) ([]*hostlib.Communicator, error) {
	all, err := f.joinApart(ctx)
	if err != nil {
		return nil, err
	}
	return f.form(ctx, all, name, hosts)
}

func (f *Fabric) joinApart(ctx context.Context) (hosts []*hostlib.Host, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if f.apart == nil {
		f.apart, err = f.join(ctx, "")
	}
	return f.apart, err
}

// pick returns the hosts of these names.
func (f *Fabric) pick(all []*hostlib.Host, names []string) ([]*hostlib.Host, error) {
	if len(names) == 0 {
		return all, nil
	}
	hosts := make([]*hostlib.Host, len(names))
	for i, name := range names {
		n, ok := f.graph.Lookup(name)
		if !ok || !f.graph.IsHost(n) {
			return nil, fmt.Errorf("%w: host %q", ErrUnknown, name)
		}
		hosts[i] = all[n]
	}
	return hosts, nil
}

// form lets all members make the communicator at once. If one of them cannot,
// the others give up.
func (f *Fabric) form(ctx context.Context, all []*hostlib.Host, name string, names []string) ([]*hostlib.Communicator, error) {
	hosts, err := f.pick(all, names)
	if err != nil {
		return nil, err
	}
	members := make([]hostlib.Member, len(hosts))
	for i, h := range hosts {
		members[i] = h.Member()
	}
	options := append([]hostlib.GroupOption{hostlib.OnTree()}, f.cfg.Options...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	comms, errs := make([]*hostlib.Communicator, len(hosts)), make([]error, len(hosts))
	var making sync.WaitGroup
	for i, h := range hosts {
		making.Go(func() {
			if comms[i], errs[i] = h.Communicator(ctx, name, members, options...); errs[i] != nil {
				cancel()
			}
		})
	}
	making.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return comms, nil
}

// Each calls call for every member at once, as collective operations must be,
// and returns the errors joined.
func Each(comms []*hostlib.Communicator, call func(rank int, c *hostlib.Communicator) error) error {
	errs := make([]error, len(comms))
	var calls sync.WaitGroup
	for rank, c := range comms {
		calls.Go(func() { errs[rank] = call(rank, c) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// Leave ends a communicator in good order.
func Leave(ctx context.Context, comms []*hostlib.Communicator) error {
	return Each(comms, func(_ int, c *hostlib.Communicator) error { return c.Leave(ctx) })
}

// Traffic is what a member's link to its switch carried, in bytes: datagrams to
// and from switches with their IP and UDP headers, and frames to and from other
// hosts without those of TCP.
type Traffic struct {
	Host    string
	In, Out uint64
}

// Since returns what was carried after an earlier count.
func (t Traffic) Since(before Traffic) Traffic {
	return Traffic{t.Host, t.In - before.In, t.Out - before.Out}
}

// TrafficOf returns every member's traffic so far, by rank.
func TrafficOf(comms []*hostlib.Communicator) []Traffic {
	all := make([]Traffic, len(comms))
	for rank, c := range comms {
		stats := c.Stats()
		all[rank] = Traffic{
			Host: c.Members()[rank].Host,
			In:   stats.Data.BytesIn + stats.Hosts.BytesIn, Out: stats.Data.BytesOut + stats.Hosts.BytesOut,
		}
	}
	return all
}
