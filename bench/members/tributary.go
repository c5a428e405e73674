package members

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/tributary-fabric/tributary/membership"
)

// Tributary is membership with its defaults.
type Tributary struct {
	Key     []byte // of 32 bytes, authenticates all messages; empty: none
	Encrypt bool
	// Monitors has every node be a high priority monitor, as memberlist's are all
	// equal; otherwise the first of the seeds is one.
	Monitors bool
	Log      *slog.Logger // nil: none
}

// Name implements System.
func (Tributary) Name() string { return "tributary" }

// Start implements System.
func (s Tributary) Start(ctx context.Context, seat Seat) (Node, error) {
	w := &tributaryWire{meter: seat.Meter, done: make(chan struct{})}
	c := membership.Config{
		Name: seat.Name, Listen: seat.Addr.String(), Monitor: s.Monitors || seat.Addr == seat.Seeds[0],
		Encrypt: s.Encrypt, Network: w, Log: s.Log,
	}
	if len(s.Key) > 0 {
		c.Keys = []membership.Key{{Number: 1, Secret: [32]byte(s.Key)}}
	}
	for _, a := range seat.Seeds {
		c.Bootstrap = append(c.Bootstrap, a.String())
	}
	node, err := membership.Join(ctx, c)
	if err != nil {
		return nil, err
	}
	n := &tributaryNode{node: node, wire: w}
	size := 0
	n.cancel = node.Watch(
		func(name string, _ uint64) { size++; seat.Changed(name, true, size) },
		func(name string, _ uint64) { size--; seat.Changed(name, false, size) },
	)
	return n, nil
}

// tributaryNode is one node.
type tributaryNode struct {
	node   *membership.Node
	wire   *tributaryWire
	cancel func()
}

// Kill implements Node.
func (n *tributaryNode) Kill() { _ = n.node.Close(context.Background()) }

// Mute implements Node.
func (n *tributaryNode) Mute() { n.wire.mute() }

// Close implements Node.
func (n *tributaryNode) Close() {
	n.wire.end()
	_ = n.node.Close(context.Background())
	n.cancel()
}

// tributaryWire counts what its node sends, and can lose all that it sends and
// all that comes.
type tributaryWire struct {
	meter *Meter
	muted atomic.Bool
	ended atomic.Bool
	done  chan struct{} // closed by end: who waits on a silent connection goes on
}

func (w *tributaryWire) mute() { w.muted.Store(true) }

func (w *tributaryWire) end() {
	if w.ended.CompareAndSwap(false, true) {
		close(w.done)
	}
}

// Listen implements membership.Network.
func (w *tributaryWire) Listen(ctx context.Context, address string) (net.Listener, membership.Datagrams, error) {
	l, d, err := membership.System().Listen(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	return &tributaryListener{l, w}, &tributaryDatagrams{d, w}, nil
}

// Dial implements membership.Network.
func (w *tributaryWire) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if w.muted.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c, err := membership.System().Dial(ctx, to)
	if err != nil {
		return nil, err
	}
	return &tributaryConn{meteredConn{c, w.meter}, w}, nil
}

// tributaryListener leaves who calls a silent node waiting.
type tributaryListener struct {
	net.Listener
	wire *tributaryWire
}

func (l *tributaryListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tributaryConn{meteredConn{c, l.wire.meter}, l.wire}, nil
}

// tributaryConn loses what is written to it, and what comes, while the node is
// silent. What waits in a silent node's buffers is not seen, and the other end
// sees no end.
type tributaryConn struct {
	meteredConn
	wire *tributaryWire
}

func (c *tributaryConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.wire.muted.Load() {
		<-c.wire.done
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *tributaryConn) Write(b []byte) (int, error) {
	if c.wire.muted.Load() {
		return len(b), nil
	}
	return c.meteredConn.Write(b)
}

// CloseWrite ends what is sent, where there are packets.
func (c *tributaryConn) CloseWrite() error {
	if c.wire.muted.Load() {
		return nil
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

func (c *tributaryConn) Close() error {
	if c.wire.muted.Load() {
		<-c.wire.done // a packet that closes it would not arrive either
	}
	return c.Conn.Close()
}

// tributaryDatagrams loses datagrams while the node is silent.
type tributaryDatagrams struct {
	membership.Datagrams
	wire *tributaryWire
}

func (d *tributaryDatagrams) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	for {
		n, from, err := d.Datagrams.ReadFromUDPAddrPort(b)
		if err != nil || !d.wire.muted.Load() {
			return n, from, err
		}
	}
}

func (d *tributaryDatagrams) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	if d.wire.muted.Load() {
		return len(b), nil
	}
	d.wire.meter.Datagram(len(b))
	return d.Datagrams.WriteToUDPAddrPort(b, to)
}
