package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// called is what came of a Dial.
type called struct {
	peer Peer
	conn net.Conn
	err  error
}

// Dial calls a host for a connection of an exclusive class, which is the caller's to
// close.
func (h *Host) Dial(ctx context.Context, host string, class Class) (Peer, net.Conn, error) {
	if ctx.Err() != nil { // else the connection may be made first
		return Peer{}, nil, fmt.Errorf("peer: calling %s: %w", host, context.Cause(ctx))
	}
	number, result := h.number(), make(chan called, 1)
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return Peer{}, nil, ErrClosed
	}
	h.tickets[number] = result
	h.mu.Unlock()
	h.add(peering.Input{Kind: peering.Called, Peer: host, Class: uint8(class), Ticket: number})
	var r called
	select {
	case r = <-result:
		return r.peer, r.conn, r.err
	case <-ctx.Done():
		r.err = fmt.Errorf("peer: calling %s: %w", host, context.Cause(ctx))
	case <-h.ctx.Done():
		r.err = ErrClosed
	}
	h.mu.Lock()
	_, isOpen := h.tickets[number]
	delete(h.tickets, number)
	h.mu.Unlock()
	if !isOpen { // it came in the same moment
		if late := <-result; late.conn != nil {
			late.conn.Close()
		}
	}
	return Peer{}, nil, r.err
}

// give hands a result to who waits for it.
func (h *Host) give(number uint64, r called) {
	h.mu.Lock()
	result := h.tickets[number]
	delete(h.tickets, number)
	h.mu.Unlock()
	if result != nil {
		result <- r
	} else if r.conn != nil {
		r.conn.Close()
	}
}

// dial calls a host, and serves the connection until it ends.
func (h *Host) dial(a *peering.Action) {
	ctx, cancel := context.WithTimeout(h.ctx, h.cfg.GreetWithin)
	defer cancel()
	c := h.newConn(a.ID)
	hangUp := func() { cancel() }
	c.hangUp.Store(&hangUp)
	c.peer, c.class = Peer{Name: a.Peer}, Class(a.Class)
	if c.class.isShared() {
		c.channel = h.pin(a.Peer, c.class)
	}
	if !h.enter(c) {
		h.post(peering.Input{Kind: peering.Ended, ID: a.ID, Err: ErrClosed})
		return
	}
	address, err := h.resolve(ctx, a.Peer)
	if err != nil {
		err = fmt.Errorf("its address: %w", err)
	}
	var answer *greeting.Answer
	if err == nil {
		answer, err = c.call(ctx, address, a)
	}
	if err != nil {
		h.cfg.Log.Debug("a call has failed", slog.String("peer", a.Peer), slog.Any("error", c.why(err)))
	} else if err = c.serveDialled(a, answer); err == nil {
		return
	}
	c.close(err)
	h.leave(c, c.why(err))
}

// call connects to an address, if it may be used, greets, and returns the answer. It closes
// the connection where that fails, or ctx ends first.
func (c *Conn) call(ctx context.Context, address string, a *peering.Action) (*greeting.Answer, error) {
	if at, err := netip.ParseAddrPort(address); err == nil { // of a name it shows later
		if err := c.host.cfg.permitted(net.TCPAddrFromAddrPort(at)); err != nil {
			return nil, err
		}
	}
	raw, err := c.host.cfg.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	c.connected(raw)
	undo := context.AfterFunc(ctx, func() { c.raw.Close() })
	answer, err := c.greet(ctx, a)
	if !undo() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.raw.Close()
	}
	return answer, err
}

func (c *Conn) greet(ctx context.Context, a *peering.Action) (*greeting.Answer, error) {
	h := c.host
	if err := h.cfg.permitted(c.raw.RemoteAddr()); err != nil {
		return nil, err
	}
	if h.cfg.TLS != nil {
		c.seal = &seal{Conn: c.raw}
		t := h.cfg.TLS.Client(pki.Want{Role: pki.Host, Name: peering.HostOf(a.Peer)})
		t.DynamicRecordSizingDisabled = true
		c.tls = tls.Client(c.seal, t)
		if err := c.tls.HandshakeContext(ctx); err != nil {
			return nil, noTLS(err)
		}
	}
	if _, err := c.stream().Write(a.Greeting.Append(nil)); err != nil {
		return nil, err
	}
	answer, err := greeting.ReadAnswer(c.stream())
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	return &answer, nil
}

// noTLS says what a handshake with who speaks no TLS fails with.
func noTLS(err error) error {
	var head tls.RecordHeaderError
	if errors.As(err, &head) {
		return fmt.Errorf("the other side speaks no TLS: %w", err)
	}
	return err
}

// serveDialled gives the answer to package peering, and serves the connection if it is
// to be used. It returns nil if the connection is the caller's who has asked for it.
func (c *Conn) serveDialled(a *peering.Action, answer *greeting.Answer) error {
	h := c.host
	c.peer.Incarnation = answer.Incarnation
	h.post(peering.Input{Kind: peering.Answered, ID: c.id, Answer: *answer, Address: c.raw.RemoteAddr().String()})
	select {
	case <-c.verdict:
	case <-c.done:
		return c.why(ErrClosed)
	}
	c.begin()
	if !c.class.isShared() {
		h.mu.Lock()
		delete(h.conns, c.id)
		h.mu.Unlock()
		h.give(a.Ticket, called{peer: c.peer, conn: c.stream()})
		return nil
	}
	c.run()
	return c.why(net.ErrClosed)
}
