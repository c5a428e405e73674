package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/p4"
)

// Plane is the data plane of a switch.
type Plane struct {
	cfg    Config
	client *p4rt.Client
	schema *p4rt.Schema
	hand   handover
	jobs   runner.Mailbox[func(context.Context)] // for the driver

	driver driver // owned by the goroutine that takes the jobs

	once    sync.Once
	stop    context.CancelFunc
	gone    chan struct{} // closed when the plane ends
	running sync.WaitGroup
}

var _ dataplane.Plane = (*Plane)(nil)

// Start starts a plane, which offers nothing before it has its target as it
// wants it. The caller owns it and must Close it.
func Start(c Config) (*Plane, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	session := c.Target.client()
	session.Log = c.Log
	if c.adjust != nil {
		c.adjust(&session)
	}
	schema, err := session.Pipeline.Schema()
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	client, err := p4rt.Dial(session)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Plane{cfg: c, client: client, schema: schema, stop: stop, gone: make(chan struct{})}
	p.driver.init(p)
	p.running.Go(func() { p.drive(ctx) })
	p.running.Go(func() { p.listen(ctx) })
	p.running.Go(func() { p.punted(ctx) })
	return p, nil
}

// Close implements dataplane.Plane. The target keeps what it has: what is in
// flight goes on, and the next agent sweeps.
func (p *Plane) Close() {
	p.once.Do(func() {
		close(p.gone)
		p.stop()
		p.client.Close()
		p.running.Wait()
	})
}

// Open implements dataplane.Plane.
func (p *Plane) Open(socket uint64, group uint32) {
	p.jobs.Put(func(context.Context) {
		index, err := p.driver.open(socket, group)
		if err != nil {
			p.cfg.Notify(dataplane.Opened{Socket: socket, Err: err})
			return
		}
		p.cfg.Notify(dataplane.Opened{Socket: socket, Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), p4.TreePort(index))})
	})
}

// Install implements dataplane.Plane.
func (p *Plane) Install(socket uint64, c *switchreduce.Config) {
	p.jobs.Put(func(ctx context.Context) {
		reducer, err := p.driver.install(ctx, socket, c)
		p.cfg.Notify(dataplane.Installed{Socket: socket, Epoch: c.Epoch, Err: err, Reducer: reducer})
	})
}

// Retire implements dataplane.Plane.
func (p *Plane) Retire(socket uint64, epoch uint32) {
	p.jobs.Put(func(context.Context) { p.driver.retire(socket, epoch) })
}

// Shut implements dataplane.Plane.
func (p *Plane) Shut(socket uint64) {
	p.jobs.Put(func(context.Context) { p.driver.shut(socket) })
}

// Network replaces the target's ports and routes, after an error none of them. Epochs
// that a neighbour of theirs is out of reach of end; others go on.
func (p *Plane) Network(ports []p4.Port, routes []p4.Route) {
	network := p4.State{Ports: slices.Clone(ports), Routes: slices.Clone(routes)}
	p.jobs.Put(func(context.Context) {
		if err := p.driver.rewire(network); err != nil {
			p.cfg.Log.Error("ports and routes of the P4 target stay as they were", slog.Any("error", err))
		}
	})
}

// SetDown says which interfaces of the target's ports are set down. If its loop carries
// nothing then, that is why, and no other port does.
func (p *Plane) SetDown(interfaces []string) {
	p.jobs.Put(func(context.Context) { p.driver.setDown(interfaces) })
}

// Census implements dataplane.Plane. While the target cannot be asked, it reports
// what was counted up to then.
func (p *Plane) Census(ctx context.Context) (dataplane.Census, error) {
	reported := make(chan dataplane.Census, 1)
	p.jobs.Put(func(ctx context.Context) { reported <- p.driver.census(ctx) })
	select {
	case c := <-reported:
		return c, nil
	case <-ctx.Done():
		return dataplane.Census{}, fmt.Errorf("pipeline: counters: %w", ctx.Err())
	case <-p.gone:
		return dataplane.Census{}, fmt.Errorf("pipeline: counters: %w", runner.ErrClosed)
	}
}

// drive is the driver's goroutine.
func (p *Plane) drive(ctx context.Context) {
	for ctx.Err() == nil {
		wait, cancel := context.WithDeadline(ctx, p.driver.next)
		jobs, err := p.jobs.Take(wait)
		cancel()
		for _, job := range jobs {
			if ctx.Err() != nil {
				return
			}
			job(ctx)
		}
		if err == nil {
			p.driver.settle(ctx)
		}
		if !time.Now().Before(p.driver.next) {
			p.driver.tick(ctx)
		}
	}
}

// listen hands the news of the session to the driver.
func (p *Plane) listen(ctx context.Context) {
	for {
		events, err := p.client.Events(ctx)
		if err != nil {
			return // the plane ends
		}
		for _, e := range events {
			p.jobs.Put(func(ctx context.Context) { p.driver.heard(ctx, e) })
		}
	}
}

// punted takes what the target hands over.
func (p *Plane) punted(ctx context.Context) {
	for {
		packets, err := p.client.Packets(ctx)
		if err != nil {
			return // the plane ends
		}
		packets = slices.DeleteFunc(packets, func(packet p4rt.Packet) bool {
			port, payload, is := checkOf(&packet)
			if is {
				p.jobs.Put(func(context.Context) { p.driver.returned(port, payload) })
			}
			return is
		})
		p.give(p.hand.take(p.cfg.Clock.Now(), packets)...)
	}
}

// give gives packets to the target. What is lost is repaired as on any link.
func (p *Plane) give(packets ...p4rt.Packet) {
	if len(packets) == 0 {
		return
	}
	if err := p.client.PacketOut(packets...); err != nil && !errors.Is(err, p4rt.ErrClosed) {
		p.hand.lose(len(packets))
		p.cfg.Log.Debug("packets to the target are lost", slog.Int("packets", len(packets)), slog.Any("error", err))
	}
}
