package broadcast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/hostlib/scoll/fabrictree"
	"github.com/tributary-fabric/tributary/hostlib/scoll/offload"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/reduce"
)

// ErrTransport reports that a broadcast did not go the way that is measured.
var ErrTransport = errors.New("broadcast: not through the switches")

// The services in the switches.
const (
	countedInSwitches scoll.ServiceID = 3
	timedInSwitches   scoll.ServiceID = 4
)

// Join has the member take part in the trees of a fabric that are named, as all
// members do: host is its place there, members are those of all, of which the
// first is the root.
func (m *Member) Join(ctx context.Context, members []hostlib.Member, trees []string, ahead int) error {
	if slices.Contains(trees, AlongFabric) {
		if err := m.follow(ctx, members); err != nil {
			return err
		}
	}
	if !slices.Contains(trees, InSwitches) {
		return nil
	}
	for i, c := range []offload.Config[uint64]{
		{ID: countedInSwitches, Function: reduce.Sum, Run: func(*offload.Request, []uint64) error { return nil }},
		{ID: timedInSwitches, Function: reduce.Max, Run: func(_ *offload.Request, v []uint64) error { v[0] = uint64(gauge.Clock()); return nil }},
	} {
		c.Elements, c.Ahead, c.RoundTrip = 1, ahead, 10*time.Second
		s, err := offload.Register(m.node, m.host, c)
		if err != nil {
			return err
		}
		if m.offloaded[i], err = s.Join(ctx, offload.Spec{Name: fmt.Sprintf("broadcast-%d", c.ID), Members: members}); err != nil {
			return err
		}
	}
	return nil
}

// follow learns the manager's tree.
func (m *Member) follow(ctx context.Context, members []hostlib.Member) error {
	comm, err := m.host.Communicator(ctx, "broadcast", members)
	if err != nil {
		return err
	}
	for {
		collection, err := comm.CollectionTree(ctx)
		// This host may know the group from others, before it has reached the manager.
		if (errors.Is(err, hostlib.ErrNoTree) || errors.Is(err, rpc.ErrUnavailable)) && runner.Pause(ctx, moment) == nil {
			continue // it may come yet
		}
		if err != nil {
			return err
		}
		plan, err := fabrictree.FromManager(collection, members, 0)
		if err == nil {
			err = m.plans.Add(planNumber, plan)
		}
		// It keeps its place in the tree as long as the host.
		return err
	}
}

// moment is how long somebody waits who looks again and again.
const moment = 10 * time.Millisecond

// inSwitches returns the group in the switches, once they carry it.
func (m *Member) inSwitches(ctx context.Context, timed bool) (*offload.Group[uint64], error) {
	g := m.offloaded[0]
	if timed {
		g = m.offloaded[1]
	}
	if g == nil {
		return nil, fmt.Errorf("%w: there is no fabric", ErrTransport)
	}
	for {
		transport, why := g.Transport()
		if transport == hostlib.Offload {
			return g, nil
		}
		if runner.Pause(ctx, moment) != nil {
			return nil, fmt.Errorf("%w: %s", ErrTransport, why)
		}
	}
}

// offload sends a broadcast through the switches.
func (f *flight) offload(ctx context.Context, g *offload.Group[uint64], p *Plan) {
	go func() {
		r, err := g.Broadcast(ctx, make([]byte, p.Payload))
		switch {
		case err != nil:
			f.land(0, err)
		case r.Transport != hostlib.Offload:
			f.land(0, fmt.Errorf("%w: %s", ErrTransport, r.Why))
		default:
			f.land(r.Vector[0], nil)
		}
	}()
}
