package agentd

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/aggregate"
	"github.com/tributary-fabric/tributary/internal/runner"
	"github.com/tributary-fabric/tributary/internal/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// batch is the packets that a tree reads at once.
const batch = 64

// tree is one tree of a group on this switch: a socket, and the aggregate core
// behind it, both owned by one loop.
type tree struct {
	socket   uint64
	group    uint32
	number   uint8
	conn     transport.Conn
	core     *aggregate.Core // owned by loop
	loop     *runner.Loop[aggregate.Input, aggregate.Output]
	messages []transport.Message // of one step; owned by loop
	epochs   []uint32            // installed; owned by the agent core's loop
	watched  chan struct{}       // closed when the goroutine that watches loop has ended
}

// act does what the agent core wants of a tree, and returns what it has to be
// told of that; nil for nothing.
func (d *Daemon) act(a *agent.Action) agent.Input {
	ctx := context.Background() // a tree's loop takes what it gets at once
	t := d.trees[a.Socket]
	switch {
	case a.Kind == agent.Open:
		return d.open(a)
	case t == nil:
	case a.Kind == agent.Install:
		t.epochs = append(t.epochs, a.Epoch)
		if err := t.loop.Post(ctx, aggregate.Input{Kind: aggregate.Install, Config: a.Config}); err != nil {
			d.mail.Put(letter{socket: t.socket, failed: err})
		}
		d.log.Info("epoch in use", slog.Uint64("group", uint64(a.Group)), slog.Uint64("epoch", uint64(a.Epoch)),
			slog.Int("children", len(a.Config.Children)), slog.Uint64("window", uint64(a.Config.Window)))
	case a.Kind == agent.Retire:
		t.epochs = slices.DeleteFunc(t.epochs, func(e uint32) bool { return e == a.Epoch })
		if err := t.loop.Post(ctx, aggregate.Input{Kind: aggregate.Retire, Epoch: a.Epoch}); err != nil {
			d.log.Debug("retiring an epoch", slog.Any("error", err)) // the tree has failed already
		}
	case a.Kind == agent.Close:
		delete(d.trees, a.Socket)
		d.stop(t)
	}
	return nil
}

// open opens a tree and returns its address, or why there is none.
func (d *Daemon) open(a *agent.Action) agent.Input {
	t, err := d.newTree(a)
	if err != nil {
		d.log.Error("opening a tree", slog.Uint64("group", uint64(a.Group)), slog.Any("error", err))
		return agent.Bound{Socket: a.Socket, Failed: err.Error()}
	}
	d.trees[a.Socket] = t
	return agent.Bound{Socket: a.Socket, Addr: t.conn.LocalAddr()}
}

func (d *Daemon) newTree(a *agent.Action) (*tree, error) {
	conn, err := d.newConn(a.Socket)
	if err != nil {
		return nil, err
	}
	t := &tree{
		socket: a.Socket, group: a.Group, number: a.Tree, conn: conn, core: aggregate.New(),
		watched: make(chan struct{}),
	}
	// A byte more than the largest packet shows those that are larger.
	size := wire.HeaderSize + min(d.cfg.Capability.Chunk, aggregate.MaxChunk) + 1
	t.loop, err = runner.Start(runner.Config[aggregate.Input, aggregate.Output]{
		Core: t.core, Clock: d.clock,
		Apply: func(_ core.Time, out *aggregate.Output) []aggregate.Input { d.send(t, out); return nil },
		Source: runner.FromConn(conn, batch, size, func(p *transport.Packet) aggregate.Input {
			return aggregate.Input{Kind: aggregate.Packet, From: p.From, Packet: p.Data()}
		}),
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	go d.watch(t)
	return t, nil
}

func (d *Daemon) newConn(socket uint64) (transport.Conn, error) {
	conn, err := transport.ListenUDP(netip.AddrPortFrom(d.cfg.Data, 0), transport.Config{ReceiveBuffer: d.cfg.ReceiveBuffer})
	if err != nil {
		return nil, err
	}
	faults := d.cfg.Faults
	if faults == (transport.Faults{Seed: faults.Seed}) {
		return conn, nil
	}
	// Agents with one seed would otherwise all lose the same packets.
	name := fnv.New64a()
	_, _ = name.Write([]byte(d.cfg.Switch)) // it never fails
	faults.Seed += name.Sum64() + socket
	return transport.WithFaults(conn, faults)
}

// send carries out what a step of a tree's core wants, in the tree's loop.
func (d *Daemon) send(t *tree, out *aggregate.Output) {
	t.messages = t.messages[:0]
	for i := range out.Sends {
		s := &out.Sends[i]
		t.messages = append(t.messages, transport.Message{To: s.To, Head: s.Head[:], Body: s.Body})
	}
	if len(t.messages) > 0 {
		// The only error is that the socket is closed, which the loop's next
		// read finds, too.
		_ = t.conn.WriteBatch(t.messages)
	}
	if len(out.Expired) > 0 {
		d.mail.Put(letter{socket: t.socket, epochs: slices.Clone(out.Expired)})
	}
	out.Reset()
}

// watch waits for the end of a tree's loop, and tells if that was a failure.
func (d *Daemon) watch(t *tree) {
	defer close(t.watched)
	if err := t.loop.Err(); err != nil {
		d.log.Error("tree failed", slog.Uint64("group", uint64(t.group)), slog.Any("error", err))
		d.mail.Put(letter{socket: t.socket, failed: err})
	}
}

// stop ends a tree and waits for it.
func (d *Daemon) stop(t *tree) {
	t.loop.Close()
	<-t.watched
	last := t.core.Counters() // nobody else touches the core any more
	d.past.add(t.tell(&last))
	if err := t.conn.Close(); err != nil {
		d.log.Debug("closing a tree", slog.Any("error", fmt.Errorf("group %d: %w", t.group, err)))
	}
}
