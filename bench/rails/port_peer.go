package rails

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// peerService is the number of the measurement's service between the hosts.
const peerService peer.Service = 200

// peerPort carries each message in one frame of a connection of the peer driver, as
// collectives do: striped over all rails, below hostlib.
type peerPort struct {
	host  *peer.Host
	other string
	came  chan []byte

	mu     sync.Mutex
	number uint64
	under  map[uint64]chan error // sends, by number
	failed error
	gone   chan struct{} // closed with failed
}

// OpenPeer returns an end of the peer driver's connections over all rails.
func OpenPeer(ctx context.Context, c PortConfig, ready func() error) (Port, error) {
	source, err := c.trust()
	if err != nil {
		return nil, err
	}
	p := &peerPort{other: hostName(1 - c.Side), came: make(chan []byte, 1<<12), under: map[uint64]chan error{}, gone: make(chan struct{})}
	config := peer.Config{
		Name: hostName(c.Side), Incarnation: uint64(time.Now().UnixNano()), Listen: c.at(c.Own), TLS: source,
		AllowPlaintext: true, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handlers: map[peer.Service]peer.Handler{peerService: (*peerHandler)(p)},
		Resolve:  func(context.Context, string) (string, error) { return c.at(c.Peer), nil },
	}
	if config.Rails, err = c.peerRails(); err != nil {
		return nil, err
	}
	if p.host, err = peer.Listen(ctx, config); err != nil {
		return nil, err
	}
	return p, ready()
}

// peerRails returns this host's rails as the peer driver has them.
func (c *PortConfig) peerRails() (all []peer.Rail, err error) {
	for i, text := range c.Own {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, err
		}
		kind := rail.TCP
		if kindOf(c.Kinds, i) == "udp" {
			kind = rail.UDP
		}
		name := netlab.RailInterface(i)
		all = append(all, peer.Rail{Rail: rail.Rail{Name: name, Kind: kind, Address: netip.AddrPortFrom(a, c.Port), Bits: netlab.RailBits}, Interface: name})
	}
	return all, nil
}

// kindOf returns that of a rail: there is one for all, or one each.
func kindOf(kinds []string, rail int) string {
	if len(kinds) == 0 {
		return "tcp"
	}
	return kinds[min(rail, len(kinds)-1)]
}

// class returns the class for messages of a size.
func class(size int) peer.Class {
	if size <= peer.Data.FrameMost()/2 {
		return peer.Data
	}
	return peer.Large
}

func (p *peerPort) StartSend(b []byte) Pending {
	done := make(chan error, 1)
	p.mu.Lock()
	p.number++
	n := p.number
	p.under[n] = done
	p.mu.Unlock()
	channel := p.host.Channel(p.other, class(len(b)))
	if err := channel.Send(&peer.Send{Service: peerService, Body: b, Number: n}); err != nil {
		p.sent([]uint64{n}, err)
	}
	p.sent(channel.Flush(peerService, nil), nil)
	return sending{p, done, len(b)}
}

func (p *peerPort) sent(numbers []uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range numbers {
		p.under[n] <- err
		delete(p.under, n)
	}
}

func (p *peerPort) Send(_ context.Context, b []byte) error {
	channel := p.host.Channel(p.other, class(len(b)))
	if err := channel.Send(&peer.Send{Service: peerService, Body: b}); err != nil {
		return err
	}
	channel.Flush(peerService, nil)
	return nil
}

func (p *peerPort) Recv(ctx context.Context, b []byte) (int, error) {
	select {
	case m := <-p.came:
		return copy(b, m), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-p.gone:
		return 0, p.failed
	}
}

func (p *peerPort) StartRecv(b []byte) Pending { return taking{p, b} }

func (p *peerPort) Close() error { return p.host.Close() }

type sending struct {
	port *peerPort
	done chan error
	size int
}

func (s sending) Wait(ctx context.Context) (int, error) {
	select {
	case err := <-s.done:
		return s.size, err
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-s.port.gone:
		return 0, s.port.failed
	}
}
func (sending) Cancel() {}

type taking struct {
	port *peerPort
	into []byte
}

func (t taking) Wait(ctx context.Context) (int, error) { return t.port.Recv(ctx, t.into) }
func (taking) Cancel()                                 {}

// peerHandler is a peerPort as the driver sees it.
type peerHandler peerPort

func (h *peerHandler) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed == nil {
		h.failed = err
		close(h.gone)
	}
}

// Up implements peer.Handler.
func (h *peerHandler) Up(*peer.Conn) {}

// Received implements peer.Handler.
func (h *peerHandler) Received(_ *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	for _, f := range frames {
		select {
		case h.came <- append([]byte(nil), f.Bytes...):
		case <-h.gone:
		}
	}
	b.Release()
}

// Down implements peer.Handler.
func (h *peerHandler) Down(c *peer.Conn, reason error) {
	h.fail(fmt.Errorf("the connection with %s has ended: %w", c.Peer().Name, reason))
}

// Failed implements peer.Handler.
func (h *peerHandler) Failed(host string, _ peer.Class, reason error) {
	h.fail(fmt.Errorf("calling %s: %w", host, reason))
}

// Sent implements peer.Handler.
func (h *peerHandler) Sent(numbers []uint64, err error) { (*peerPort)(h).sent(numbers, err) }

// Restarted implements peer.Handler.
func (h *peerHandler) Restarted(host string, _, _ uint64) {
	h.fail(errors.New(host + " has started again"))
}
