package world

import (
	"errors"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/client"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// member is the name of a host's only member for its client.
const member = 1

// control drives the client core of a host with one member, as hostlib does.
type control struct {
	manager  sim.NodeID
	core     *client.Core
	in       []client.Input
	out      client.Output
	said     []endpoint.Input // for the member, at its next step
	sessions uint32           // connections so far
	over     bool             // the member leaves, or is gone
}

func newControl(m sim.NodeID, r uint32, terms *manager.Create, pause time.Duration) (*control, error) {
	k, err := client.New(client.Config{RetryMin: pause, RetryMax: pause, Release: time.Second})
	if err != nil {
		return nil, err
	}
	j := &client.Joined{Rank: r, Of: terms.Name, Report: manager.Report{Entered: endpoint.FirstEpoch, Transport: manager.HostTree, Demand: 1}}
	if r == 0 {
		j.Create = terms
	}
	return &control{manager: m, core: k, in: []client.Input{{Kind: client.Join, Member: member, Joined: j}}}, nil
}

func (c *control) deadline() core.Time {
	if len(c.in)+len(c.said) > 0 {
		return 0
	}
	return c.core.Deadline()
}

// take takes what comes from the manager.
func (c *control) take(d *sim.Delivery) {
	in := client.Input{Kind: client.Said}
	switch d.Kind {
	case sim.Up:
		c.sessions++
		in.Kind = client.Up
	case sim.Dead, sim.Refused, sim.Closed:
		in.Kind, in.Err = client.Down, errors.New(d.Kind.String())
	case sim.Control:
		switch v := d.Value.(type) {
		case manager.Reply:
			v.Req = member
			in.Event.Reply = &v
		case manager.Offer:
			in.Event.Offer = &v
		case manager.Withdrawal:
			in.Event.Withdrawal = &v
		case manager.Links:
			in.Event.Links = &v
		case manager.Notice:
			in.Event.Notice = &v
		}
	default: // the manager says all that it says as control values
		return
	}
	c.in = append(c.in, in)
}

// hand adds what is for the member to its inputs.
func (c *control) hand(in []endpoint.Input) []endpoint.Input {
	in = append(in, c.said...)
	c.said = c.said[:0]
	return in
}

// step steps the client.
func (c *control) step(now core.Time, h sim.Handle) {
	for i := range c.in {
		if j := c.in[i].Joined; j != nil {
			j.Data = AddrPort(sim.Addr{Node: h.ID(), Port: DataPort})
		}
	}
	c.out.Reset()
	c.core.Step(now, c.in, &c.out)
	clear(c.in)
	c.in = c.in[:0]
	if c.out.Dial {
		h.Dial(c.manager)
	}
	for _, m := range c.out.Messages {
		switch v := m.(type) {
		case manager.Create:
			v.Req = uint64(h.ID())
			m = v
		case manager.Release:
			v.Req = uint64(h.ID())
			m = v
		case manager.Watch:
			v.Stream = stream(h.ID(), c.sessions)
			m = v
		case manager.Unwatch:
			v.Stream = stream(h.ID(), c.sessions)
			m = v
		}
		h.Notify(c.manager, m)
	}
	for i := range c.out.Notify {
		if input, ok := meaning(&c.out.Notify[i]); ok {
			c.said = append(c.said, input)
		}
	}
	if len(c.out.Gone) > 0 {
		h.Close(c.manager)
	}
}

// meaning returns what the client says as an input of the member, if it is one.
func meaning(t *client.Notify) (endpoint.Input, bool) {
	switch {
	case t.Offer != nil:
		v := t.Offer
		return endpoint.Input{Kind: endpoint.Offer, News: &endpoint.News{Link: session.Link{
			Group: v.Group, Epoch: v.Epoch, Cookie: v.Cookie, Window: v.Window,
			Parent: v.Parent, Index: v.Index, Probes: v.Probes, Idle: v.Idle,
		}}}, true
	case t.Withdrawal != nil:
		return endpoint.Input{Kind: endpoint.Withdraw, News: &endpoint.News{Epoch: t.Withdrawal.Epoch, Reason: t.Withdrawal.Why}}, true
	case t.Group != 0:
		return endpoint.Input{Kind: endpoint.Notice, News: &endpoint.News{Notice: wire.Notice{Group: t.Group}}}, true
	case t.All:
		return endpoint.Input{Kind: endpoint.Notice, News: &endpoint.News{Notice: wire.Notice{Reason: t.Err.Error()}}}, true
	}
	return endpoint.Input{}, false
}

// brought takes what a step of the member has brought.
func (c *control) brought(o *endpoint.Output) {
	if c.over {
		return
	}
	if o.Notice != nil {
		c.in = append(c.in, client.Input{Kind: client.Number, Member: member, Group: o.Notice.Group})
	}
	for _, e := range o.Entered {
		transport := manager.HostTree
		if e.Offload {
			transport = manager.Offload
		}
		c.report(manager.Report{Entered: e.Epoch, Transport: transport})
	}
	if o.Loss != nil {
		c.report(manager.Report{Lost: o.Loss.Epoch, Silent: !o.Loss.Said, Reason: o.Loss.String()})
	}
	if o.Demand != 0 {
		c.wants(o.Demand)
	}
	if o.Gone || o.Ended != nil {
		c.over = true
		revoked := o.Ended != nil && o.Ended.Kind == wire.FailRevoked
		c.in = append(c.in, client.Input{Kind: client.Leave, Member: member, Over: revoked})
	}
}

func (c *control) report(r manager.Report) {
	c.in = append(c.in, client.Input{Kind: client.News, Member: member, Report: r})
}

// wants has the member report another demand to the manager than its operations have.
func (c *control) wants(window uint32) { c.report(manager.Report{Demand: window}) }
