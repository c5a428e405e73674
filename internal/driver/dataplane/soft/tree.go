package soft

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"net/netip"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
	"github.com/tributary-fabric/tributary/internal/driver/sealed"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// batch is the packets, or batches of them, that a tree reads at once.
const batch = 32

// tree is one tree of a group on this switch: a socket, and the aggregate core
// behind it, both owned by one loop.
type tree struct {
	plane  *Plane
	socket uint64
	group  uint32
	port   uint16

	conn     *sealed.Conn
	udp      *transport.UDP     // beneath conn
	core     *switchreduce.Core // owned by loop
	loop     *runner.Loop[switchreduce.Input, switchreduce.Output]
	messages []transport.Message // of one step; owned by loop
	epochs   []uint32            // installed; under the plane's lock
}

func (p *Plane) newTree(socket uint64, group uint32) (*tree, error) {
	conn, udp, err := p.newConn(socket)
	if err != nil {
		return nil, err
	}
	t := &tree{
		plane: p, socket: socket, group: group, port: udp.LocalAddr().Port(), conn: sealed.Over(conn), udp: udp, core: switchreduce.New(),
	}
	t.loop, err = runner.Start(runner.Config[switchreduce.Input, switchreduce.Output]{
		Core: t.core, Clock: p.cfg.Clock, Ended: t.failed,
		Apply: func(_ core.Time, out *switchreduce.Output) []switchreduce.Input {
			t.send(out)
			out.TakesBatches = true // of the next step
			return nil
		},
		Source: t.source(),
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return t, nil
}

// source returns what the tree reads.
func (t *tree) source() *runner.Packets[switchreduce.Input] {
	return runner.FromConn(t.conn, batch, func(p *transport.Packet) switchreduce.Input {
		return switchreduce.Input{Kind: switchreduce.Packet, From: p.From, Packet: p.Data, Size: p.Size}
	})
}

// newConn returns the socket of a tree, with its faults and without.
func (p *Plane) newConn(socket uint64) (transport.Conn, *transport.UDP, error) {
	udp, err := transport.ListenUDP(netip.AddrPortFrom(p.cfg.Data, 0), transport.Config{
		ReceiveBuffer: p.cfg.ReceiveBuffer, Without: p.cfg.Without, Batches: true,
	})
	if err != nil {
		return nil, nil, err
	}
	faults := p.cfg.Faults
	if faults == (transport.Faults{Seed: faults.Seed}) {
		return udp, udp, nil
	}
	// Agents with one seed would otherwise all lose the same packets.
	name := fnv.New64a()
	_, _ = name.Write([]byte(p.cfg.Switch)) // it never fails
	faults.Seed += name.Sum64() + socket
	conn, err := transport.WithFaults(udp, faults)
	return conn, udp, err
}

// enlarge makes the receive buffer large enough for the windows of all
// neighbours at once. Where the kernel grants less (net.core.rmem_max, of who
// is not root), what finds it full is lost, counted, and repaired.
func (t *tree) enlarge(c *switchreduce.Config) {
	const aside = 512 // bytes that the kernel counts for a packet beside its own
	need := 2 * (len(c.Children) + 1) * int(c.Window) * (wire.HeaderSize + c.ChunkBytes + aside)
	if granted := t.udp.ReceiveBuffer(); granted == 0 || granted >= need {
		return
	}
	if err := t.udp.Enlarge(need); err != nil {
		t.plane.cfg.Log.Debug("enlarging a receive buffer", slog.Any("error", err)) // the tree has failed already
		return
	}
	if granted := t.udp.ReceiveBuffer(); granted < need {
		t.plane.cfg.Log.Warn("a receive buffer is smaller than a tree may fill it: raise net.core.rmem_max",
			slog.Uint64("group", uint64(t.group)), slog.Int("bytes", granted), slog.Int("needed", need))
	}
}

// protect has the packets of an epoch be as they are to be: plain, or sealed.
func (t *tree) protect(c *switchreduce.Config) error {
	edges := make([]sealed.Edge, 0, len(c.Children)+1)
	for i := range c.Children {
		edges = append(edges, sealed.Edge{Peer: c.Children[i].Addr, Child: uint16(i), IsDown: true, Key: c.Children[i].Key})
	}
	if c.Parent.IsValid() {
		edges = append(edges, sealed.Edge{Peer: c.Parent, Child: c.Index, Key: c.Key})
	}
	return t.conn.Install(c.Epoch, c.Protection, edges)
}

// send carries out what a step of the core wants, in the loop.
func (t *tree) send(out *switchreduce.Output) {
	for i := range out.Sends {
		s := &out.Sends[i]
		t.messages = append(t.messages, transport.Message{To: s.To, Head: s.Head[:], Body: s.Body})
	}
	for i := range out.Batches {
		r := &out.Batches[i]
		if i > 0 && r.To != out.Batches[i-1].To {
			t.flush() // batches to others may be the same memory
		}
		r.Address()
		t.messages = append(t.messages, transport.Message{To: r.To, Body: r.Packets, Size: r.Size})
	}
	t.flush()
	if a := t.plane.cfg.Accelerator; a != nil {
		for _, epoch := range out.Begun {
			a.Begin(t.port, epoch)
		}
	}
	for _, epoch := range out.Retired {
		t.retire(epoch)
	}
	for _, epoch := range out.Expired {
		t.retire(epoch)
		t.plane.forget(t, epoch)
		t.plane.cfg.Notify(dataplane.Ended{Socket: t.socket, Epoch: epoch})
	}
	out.Reset()
}

// retire forgets what is kept of an epoch beside the core.
func (t *tree) retire(epoch uint32) {
	t.conn.Retire(epoch)
	if a := t.plane.cfg.Accelerator; a != nil {
		a.Retire(t.port, epoch)
	}
}

// flush sends the messages.
func (t *tree) flush() {
	if len(t.messages) > 0 {
		// The only error is that the socket is closed, which the loop's next
		// read finds, too.
		_ = t.conn.WriteBatch(t.messages)
		clear(t.messages)
		t.messages = t.messages[:0]
	}
}

// failed reports that the loop has ended by its socket.
func (t *tree) failed(err error) {
	t.plane.cfg.Log.Error("tree failed", slog.Uint64("group", uint64(t.group)), slog.Any("error", err))
	t.plane.mu.Lock()
	epochs := slices.Clone(t.epochs)
	t.plane.mu.Unlock()
	for _, epoch := range epochs {
		t.plane.cfg.Notify(dataplane.Ended{Socket: t.socket, Epoch: epoch, Err: err})
	}
}

// end ends a tree and waits for it.
func (t *tree) end() {
	t.loop.Close()
	if err := t.conn.Close(); err != nil {
		t.plane.cfg.Log.Debug("closing a tree", slog.Uint64("group", uint64(t.group)), slog.Any("error", err))
	}
}

// counters returns what a tree has counted, and its epochs each by itself.
func (t *tree) counters(ctx context.Context) (rpc.TreeCounters, []switchreduce.EpochTraffic, error) {
	var c switchreduce.Counters
	var epochs []switchreduce.EpochTraffic
	read := func() {
		c, epochs = t.core.Counters(), t.core.Traffic()
		for i := range epochs {
			t.addRefused(&epochs[i])
		}
	}
	err := t.loop.Do(ctx, read)
	if errors.Is(err, runner.ErrClosed) { // it has ended meanwhile
		<-t.loop.Done()
		read() // nobody else touches the core any more
		err = nil
	}
	if err != nil {
		return rpc.TreeCounters{}, nil, err
	}
	return t.notify(&c, epochs), epochs, nil
}

// addRefused counts packets whose tag is wrong as forged, beside those with another cookie.
func (t *tree) addRefused(e *switchreduce.EpochTraffic) {
	ofChildren, ofParent := t.conn.RefusedIn(e.Epoch)
	for child := range e.Children {
		e.Children[child].Forged += ofChildren[uint16(child)]
	}
	if e.Parent != nil {
		e.Parent.Forged += ofParent
	}
}

// notify returns c, and what the socket has counted, by name. It adds to epochs what the
// accelerator has counted.
func (t *tree) notify(c *switchreduce.Counters, epochs []switchreduce.EpochTraffic) rpc.TreeCounters {
	n := t.conn.Counters()
	counted := rpc.TreeCounters{
		Group:     t.group,
		PacketsIn: n.PacketsIn, BytesIn: n.BytesIn, PacketsOut: n.PacketsOut, BytesOut: n.BytesOut,
		Refused: n.Refused, Overflowed: n.Overflowed,
		Events: map[string]uint64{}, Drops: map[string]uint64{},
	}
	dataplane.Count(&counted, c)
	dataplane.AddEvent(&counted, "read-calls", n.ReadCalls)
	dataplane.AddEvent(&counted, "write-calls", n.WriteCalls)
	dataplane.AddEvent(&counted, "wait-calls", n.WaitCalls)
	counted.Drops["unauthentic"] = t.conn.Refused()
	if a := t.plane.cfg.Accelerator; a != nil {
		a.Count(t.port, &counted, epochs)
	}
	return counted
}
