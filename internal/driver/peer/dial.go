package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// called returns the path of a call that is to be made, which cancel ends.
func (h *Host) called(a *peering.Action, cancel func()) *Path {
	p := h.newPath(a.ID)
	hangUp := cancel
	p.hangUp.Store(&hangUp)
	p.peer, p.class = Peer{Name: a.Peer}, Class(a.Class)
	p.channel = h.pin(a.Peer, p.class)
	if !h.enter(p) {
		p.close(ErrClosed)
	}
	return p
}

// dial calls a host, and serves the connection until it ends.
func (h *Host) dial(ctx context.Context, p *Path, a *peering.Action) {
	answer, err := p.callHost(ctx, a)
	if err != nil {
		h.cfg.Log.Debug("a call has failed", slog.String("peer", a.Peer), slog.Any("error", p.why(err)))
	} else if err = p.serveDialled(answer); err == nil {
		return
	}
	p.close(err)
	if a.Path != 0 && p.upAt.IsZero() {
		p.callFailed(a, p.why(err))
	}
	h.leave(p, p.why(err))
}

// callHost calls a host, at the address where it is to be found or by a pair of rails.
func (p *Path) callHost(ctx context.Context, a *peering.Action) (*greeting.Answer, error) {
	if a.Path != 0 {
		return p.callByRails(ctx, a)
	}
	address, err := p.host.resolve(ctx, a.Peer)
	if err != nil {
		return nil, fmt.Errorf("its address: %w", err)
	}
	return p.call(ctx, p.host.cfg.Dial, address, a)
}

// call connects to an address, if it may be used, greets, and returns the answer. It closes
// the connection where that fails, or ctx ends first.
func (p *Path) call(ctx context.Context, dial dialFunc, address string, a *peering.Action) (*greeting.Answer, error) {
	if at, err := netip.ParseAddrPort(address); err == nil { // of a name it shows later
		if err := p.host.cfg.permitted(net.TCPAddrFromAddrPort(at)); err != nil {
			return nil, err
		}
	}
	raw, err := dial(ctx, address)
	if err != nil {
		return nil, err
	}
	p.connected(raw)
	undo := context.AfterFunc(ctx, func() { p.raw.Close() })
	answer, err := p.greet(ctx, a)
	if !undo() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.raw.Close()
	}
	return answer, err
}

func (p *Path) greet(ctx context.Context, a *peering.Action) (*greeting.Answer, error) {
	h := p.host
	if err := h.cfg.permitted(p.raw.RemoteAddr()); err != nil {
		return nil, err
	}
	if h.cfg.TLS != nil {
		p.seal = &seal{Conn: p.raw}
		p.shown = h.cfg.TLS.Begin()
		t := p.shown.Client(pki.Want{Role: pki.Host, Name: peering.HostOf(a.Peer)})
		t.DynamicRecordSizingDisabled = true
		p.tls = tls.Client(p.seal, t)
		if err := p.tls.HandshakeContext(ctx); err != nil {
			return nil, noTLS(err)
		}
	}
	if _, err := p.stream().Write(a.Greeting.Append(nil)); err != nil {
		return nil, err
	}
	answer, err := greeting.ReadAnswer(p.stream())
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	if err := peering.Credible(answer.Incarnation, time.Now()); err != nil {
		return nil, err
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
func (p *Path) serveDialled(answer *greeting.Answer) error {
	h := p.host
	p.peer.Incarnation = answer.Incarnation
	h.post(peering.Input{Kind: peering.Answered, ID: p.id, Answer: *answer, Address: p.raw.RemoteAddr().String()})
	select {
	case <-p.verdict:
	case <-p.done:
		return p.why(ErrClosed)
	}
	p.begin()
	if p.conn == nil {
		return peering.ErrEnded
	}
	p.run()
	return p.why(net.ErrClosed)
}
