package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// diverted is the data socket of the measured host: once on, its switch is the process
// that answers.
type diverted struct {
	transport.Conn
	isOn   *atomic.Bool
	peer   netip.AddrPort
	parent netip.AddrPort
}

func (d *diverted) WriteBatch(messages []transport.Message) error {
	if d.isOn.Load() {
		for i := range messages {
			d.parent, messages[i].To = messages[i].To, d.peer
		}
	}
	return d.Conn.WriteBatch(messages)
}

func (d *diverted) ReadBatch(packets []transport.Packet, until time.Time) (int, error) {
	n, err := d.Conn.ReadBatch(packets, until)
	for i := range packets[:n] {
		if packets[i].From == d.peer {
			packets[i].From = d.parent
		}
	}
	return n, err
}

// product is a member of a group over switches.
type product struct {
	fabric *embedded.Fabric
	comm   *hostlib.Communicator
}

const measured = "h0"

// newProduct returns a member whose data socket is what wrap makes of it.
func newProduct(ctx context.Context, wrap func(c transport.Conn, isOn *atomic.Bool) transport.Conn) (*product, error) {
	graph, err := topology.Open("leaf-spine:2,1,1")
	if err != nil {
		return nil, err
	}
	var on atomic.Bool
	var mu sync.Mutex
	made := 0
	f, err := embedded.Start(ctx, embedded.Config{
		Topology: graph, OfferWait: patience,
		Core: manager.Config{StartWindow: hostlib.DefaultWindow, Idle: time.Hour}, // no other epoch: the other member takes no part
		Hooks: func(host string) hooks.Hooks {
			if host != measured {
				return hooks.Hooks{}
			}
			return hooks.Hooks{Data: func(c transport.Conn) transport.Conn {
				mu.Lock()
				defer mu.Unlock()
				made++
				return wrap(c, &on)
			}}
		},
	})
	if err != nil {
		return nil, err
	}
	comms, err := f.Communicators(ctx, "cost")
	if err != nil {
		return nil, err
	}
	if way, why := comms[0].Transport(); way != hostlib.Offload || made != 1 {
		return nil, fmt.Errorf("the group runs by %v (%s), and has %d sockets", way, why, made)
	}
	// One operation by all, so that the window opens and the group is at rest afterwards.
	all, errs := sync.WaitGroup{}, make([]error, len(comms))
	for i, c := range comms {
		all.Go(func() {
			v := make([]float32, 1<<20)
			_, errs[i] = hostlib.Allreduce(ctx, c, reduce.Sum, v, v)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	on.Store(true)
	return &product{f, comms[0]}, nil
}

func (p *product) allreduce(ctx context.Context, in, out []float32) error {
	o, err := hostlib.Allreduce(ctx, p.comm, reduce.Sum, in, out)
	if err == nil && o.Transport != hostlib.Offload {
		return fmt.Errorf("it ran by %v: %s", o.Transport, o.Reason)
	}
	return err
}
