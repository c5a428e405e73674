package hostlib

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/client"
	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/sealed"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// managerClient is what a host asks of an offload manager.
type managerClient interface {
	HostSession(ctx context.Context) (*rpc.HostSession, error)
	PlanGroup(ctx context.Context, c manager.Create) (rpc.GroupPlan, error)
	Explain(ctx context.Context, which rpc.GroupRef) (rpc.Explanation, error)
	Close() error
}

// dialManager returns a client of the manager at address, which need not be
// there yet.
func dialManager(address string, trust *pki.Source) (managerClient, error) {
	var c rpc.ClientConfig
	if trust != nil {
		c.TLS, c.Trust = trust.Client(pki.Want{Role: pki.Manager}), trust
	}
	return rpc.DialManager(address, c)
}

// control drives the host's core client: all its communicators take part at the
// manager by one stream.
type control struct {
	managerClient
	loop  *runner.Loop[client.Input, client.Output]
	ctx   context.Context // of the host
	tasks sync.WaitGroup  // the stream's, and the measurement's
	speed func() topology.Speed
	learn func(*pathsel.Costs) // what ways of collectives cost

	mu      sync.Mutex
	serial  uint64                  // last number given to a member
	members map[uint64]*participant // those that are not gone
	outbox  *runner.Mailbox[manager.Input]
}

// participant is a communicator as its host's client knows it.
type participant struct {
	comm *Communicator
	gone chan error // has room for why its group was not released, or nil
}

// newControl returns one that reports a speed, which may take time to measure: the
// stream alone waits for it.
func newControl(ctx context.Context, m managerClient, speed func() topology.Speed) (*control, error) {
	cfg := client.DefaultConfig()
	cfg.Seed = rand.Uint64() | 1
	k, err := client.New(cfg)
	if err != nil {
		return nil, err
	}
	c := &control{managerClient: m, ctx: ctx, members: map[uint64]*participant{}, speed: speed, learn: func(*pathsel.Costs) {}}
	c.loop, err = runner.Start(runner.Config[client.Input, client.Output]{
		Core: k, Clock: runner.NewClock(), Apply: c.apply,
		Queue: math.MaxInt, // the loops of communicators post here, and this one posts to them: it must not make them wait
	})
	if err == nil {
		c.tasks.Go(func() { speed() }) // begins before the stream needs it
	}
	return c, err
}

// close ends what the host's context has ended already.
func (c *control) close() error {
	c.tasks.Wait()
	c.loop.Close()
	return c.managerClient.Close()
}

// post gives the core an input. After the host's end it is dropped.
func (c *control) post(in client.Input) { _ = c.loop.Post(context.Background(), in) }

// join has a communicator take part, whose member it sets.
func (c *control) join(comm *Communicator, j *client.Joined) {
	c.mu.Lock()
	c.serial++
	comm.member, comm.part = c.serial, &participant{comm, make(chan error, 1)} // before the core knows of it, which may answer at once
	c.members[comm.member] = comm.part
	c.mu.Unlock()
	c.post(client.Input{Kind: client.Join, Member: comm.member, Joined: j})
}

// left waits until the manager knows that a communicator takes no part any more, or cannot be reached;
// then the error says why.
func (c *control) left(p *participant) error {
	select {
	case err := <-p.gone:
		return err
	case <-c.loop.Done():
		return ErrClosed
	}
}

// apply does what a step has put out. It does not wait for the manager.
func (c *control) apply(_ core.Time, out *client.Output) []client.Input {
	defer out.Reset()
	if out.Dial {
		c.tasks.Go(c.converse)
	}
	if len(out.Messages) > 0 {
		c.mu.Lock()
		c.outbox.Put(out.Messages...) // those to a stream that has ended are lost
		c.mu.Unlock()
	}
	for i := range out.Notify {
		t := &out.Notify[i]
		c.mu.Lock()
		p := c.members[t.Member]
		c.mu.Unlock()
		if p != nil {
			p.comm.heard(t)
		}
	}
	for _, g := range out.Gone {
		c.mu.Lock()
		p := c.members[g.Member]
		delete(c.members, g.Member)
		c.mu.Unlock()
		p.gone <- g.Err
	}
	return nil
}

var errStreamEnded = errors.New("hostlib: the manager has ended the stream")

// converse has a stream with the manager until either ends it.
func (c *control) converse() {
	err := c.stream()
	if errors.Is(err, io.EOF) {
		err = errStreamEnded
	}
	c.post(client.Input{Kind: client.Down, Err: err, Final: errors.Is(err, rpc.ErrUnsupported)})
}

func (c *control) stream() error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	s, err := c.HostSession(ctx)
	if err != nil {
		return err
	}
	outbox := new(runner.Mailbox[manager.Input])
	c.mu.Lock()
	c.outbox = outbox
	c.mu.Unlock()
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			messages, err := outbox.Take(ctx)
			if err != nil {
				return
			}
			for _, m := range messages {
				if s.Send(m) != nil { // Recv knows why
					return
				}
			}
		}
	})
	c.post(client.Input{Kind: client.Up, Speed: c.speed()})
	for {
		e, err := s.Recv()
		if err != nil {
			cancel()
			outbox.Close()
			sender.Wait()
			return err
		}
		if e.Costs != nil {
			c.learn(e.Costs)
			continue
		}
		c.post(client.Input{Kind: client.Said, Event: e})
	}
}

// heard takes what the manager, or the host's client of it, says to a communicator.
func (c *Communicator) heard(t *client.Notify) {
	switch {
	case t.Offer != nil:
		o := t.Offer
		if err := c.protect(o); errors.Is(err, sealed.ErrRetired) {
			return // it comes late
		} else if err != nil {
			c.settle(fmt.Sprintf("no tree of switches: %v", err))
			return
		}
		c.mu.Lock()
		c.status.learn(o)
		c.mu.Unlock()
		c.news(endpoint.Offer, endpoint.News{Link: session.Link{
			Group: o.Group, Epoch: o.Epoch, Cookie: o.Cookie, Window: o.Window,
			Parent: o.Parent, Source: o.Source, Index: o.Index, Probes: o.Probes, Idle: o.Idle,
			Protection: o.Protection, Key: o.Key,
		}})
	case t.Withdrawal != nil:
		c.news(endpoint.Withdraw, endpoint.News{Epoch: t.Withdrawal.Epoch, Reason: t.Withdrawal.Why})
	case t.Links != nil:
		c.mu.Lock()
		c.status.links = t.Links.Links
		c.mu.Unlock()
		c.wish()
	case t.Group != 0:
		c.news(endpoint.Notice, endpoint.News{Notice: wire.Notice{Group: t.Group}})
	default:
		c.settle(fmt.Sprintf("no tree of switches: %v", t.Err))
		c.wish()
		if t.All {
			c.news(endpoint.Notice, endpoint.News{Notice: wire.Notice{Reason: t.Err.Error()}})
		}
	}
}

// news gives the member's core news. After the communicator's end they are dropped.
func (c *Communicator) news(kind endpoint.Kind, n endpoint.News) {
	c.post(item{in: endpoint.Input{Kind: kind, News: &n}})
}

// protect has the packets of an offered tree be sealed, if the communicator's are to be. An error is why
// the tree cannot be entered.
func (c *Communicator) protect(o *manager.Offer) error {
	switch {
	case o.Protection != c.options.protection:
		return fmt.Errorf("the manager offers one whose packets are %v, not %v; it is of an earlier version", o.Protection, c.options.protection)
	case o.Protection == wire.Plain:
		return nil
	}
	return c.sealed.Install(o.Epoch, o.Protection, []sealed.Edge{{Peer: o.Parent, Child: o.Index, Key: o.Key}})
}
