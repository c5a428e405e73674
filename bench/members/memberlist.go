package members

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Memberlist is hashicorp/memberlist with its defaults for a LAN.
type Memberlist struct {
	// Key, of 16, 24 or 32 bytes, has all messages encrypted and authenticated;
	// empty, the default of memberlist: neither.
	Key []byte
}

// Name implements System.
func (Memberlist) Name() string { return "memberlist" }

// rejoin is how long a memberlist node waits before it asks those again that
// were not there yet, then twice as long, and so on, up to rejoinMost: nodes that all
// ask without a pause would keep each other from answering. The library leaves that
// to its user.
const (
	rejoin     = 20 * time.Millisecond
	rejoinMost = 5 * time.Second
)

// Start implements System.
func (s Memberlist) Start(ctx context.Context, seat Seat) (Node, error) {
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	addr := seat.Addr
	network, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{addr.Addr().String()}, BindPort: int(addr.Port()), Logger: quiet,
	})
	if err != nil {
		return nil, fmt.Errorf("memberlist: %s: %w", seat.Name, err)
	}
	n := &memberlistNode{seat: seat, wire: &memberlistWire{NetTransport: network, meter: seat.Meter}}
	n.wire.open()
	c := memberlist.DefaultLANConfig()
	c.Name = seat.Name
	c.BindAddr, c.BindPort = addr.Addr().String(), int(addr.Port())
	c.AdvertiseAddr, c.AdvertisePort = c.BindAddr, c.BindPort
	c.Transport, c.Logger, c.Events, c.SecretKey = n.wire, quiet, n, s.Key
	if n.list, err = memberlist.Create(c); err != nil {
		return nil, fmt.Errorf("memberlist: %s: %w", seat.Name, err)
	}
	joining, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.tasks.Go(func() { n.join(joining) })
	return n, nil
}

// memberlistNode is one node.
type memberlistNode struct {
	seat  Seat
	list  *memberlist.Memberlist
	wire  *memberlistWire
	stop  context.CancelFunc
	tasks sync.WaitGroup
	once  sync.Once
	seen  atomic.Int64 // nodes that joined, less those that left, itself among them
}

// join asks the seeds until all have answered.
func (n *memberlistNode) join(ctx context.Context) {
	var seeds []string
	for _, s := range n.seat.Seeds {
		if s != n.seat.Addr {
			seeds = append(seeds, s.String())
		}
	}
	for wait := rejoin; len(seeds) > 0 && ctx.Err() == nil; wait = min(2*wait, rejoinMost) {
		if got, _ := n.list.Join(seeds); got == len(seeds) {
			return
		}
		_ = runner.Pause(ctx, wait)
	}
}

// NotifyJoin implements memberlist.EventDelegate.
func (n *memberlistNode) NotifyJoin(m *memberlist.Node) {
	n.seat.Changed(m.Name, true, int(n.seen.Add(1)))
}

// NotifyLeave implements memberlist.EventDelegate.
func (n *memberlistNode) NotifyLeave(m *memberlist.Node) {
	n.seat.Changed(m.Name, false, int(n.seen.Add(-1)))
}

// NotifyUpdate implements memberlist.EventDelegate.
func (n *memberlistNode) NotifyUpdate(*memberlist.Node) {}

// Kill implements Node: its sockets close, and it says nothing.
func (n *memberlistNode) Kill() { n.end() }

// Mute implements Node.
func (n *memberlistNode) Mute() { n.wire.mute() }

// Close implements Node.
func (n *memberlistNode) Close() { n.end() }

func (n *memberlistNode) end() {
	n.once.Do(func() {
		n.stop()
		n.wire.mute() // what it says at the end is not heard
		_ = n.list.Shutdown()
		n.tasks.Wait()
		n.wire.close()
	})
}

// memberlistWire counts what its node sends, and can lose all that it sends and
// all that comes.
type memberlistWire struct {
	*memberlist.NetTransport
	meter   *Meter
	packets chan *memberlist.Packet
	streams chan net.Conn
	muted   atomic.Bool
	stopped chan struct{}
	tasks   sync.WaitGroup
}

// open starts to hand on what comes.
func (w *memberlistWire) open() {
	w.packets, w.streams = make(chan *memberlist.Packet), make(chan net.Conn)
	w.stopped = make(chan struct{})
	w.tasks.Go(w.pass)
}

func (w *memberlistWire) close() {
	close(w.stopped)
	w.tasks.Wait()
}

func (w *memberlistWire) mute() { w.muted.Store(true) }

func (w *memberlistWire) pass() {
	in, calls := w.NetTransport.PacketCh(), w.NetTransport.StreamCh()
	for {
		select {
		case p := <-in:
			if w.muted.Load() {
				continue
			}
			select {
			case w.packets <- p:
			case <-w.stopped:
				return
			}
		case c := <-calls:
			if w.muted.Load() {
				defer c.Close() // nobody uses the result
				continue
			}
			select {
			case w.streams <- &meteredConn{c, w.meter}:
			case <-w.stopped:
				_ = c.Close()
				return
			}
		case <-w.stopped:
			return
		}
	}
}

// PacketCh implements memberlist.Transport.
func (w *memberlistWire) PacketCh() <-chan *memberlist.Packet { return w.packets }

// StreamCh implements memberlist.Transport.
func (w *memberlistWire) StreamCh() <-chan net.Conn { return w.streams }

// WriteTo implements memberlist.Transport.
func (w *memberlistWire) WriteTo(b []byte, addr string) (time.Time, error) {
	return w.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (w *memberlistWire) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	if w.muted.Load() {
		return time.Now(), nil
	}
	w.meter.Datagram(len(b))
	return w.NetTransport.WriteToAddress(b, to)
}

// DialTimeout implements memberlist.Transport.
func (w *memberlistWire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return w.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (w *memberlistWire) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if w.muted.Load() {
		return nil, fmt.Errorf("memberlist: %s is silent", to.Addr)
	}
	c, err := w.NetTransport.DialAddressTimeout(to, timeout)
	if err != nil {
		return nil, err
	}
	return &meteredConn{c, w.meter}, nil
}
