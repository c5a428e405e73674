package peer

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/admission"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/udp"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// accept takes calls until a listener is closed.
func (h *Host) accept(listener net.Listener) {
	for {
		raw, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.notAccepted.add(slog.Any("error", err))
			select {
			case <-h.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond): // out of descriptors, say
			}
			continue
		}
		p := h.newPath(peering.ID(h.number()))
		p.connected(raw)
		if !h.enter(p) {
			raw.Close()
			return
		}
		// One after the other, so that what is too much is closed before more is taken.
		h.post(peering.Input{Kind: peering.Arrived, ID: p.id, Source: admission.Source(raw.RemoteAddr())})
		if !h.tasks.Go(p.answer) {
			raw.Close()
		}
	}
}

// railListener binds each connection to a rail's interface. It is not bound itself: one that
// is would hear nothing more when the interface is deleted, and made again.
type railListener struct {
	net.Listener
	device string
}

// Accept implements net.Listener.
func (l railListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		bindConn(c, l.device)
	}
	return c, err
}

// answer hears a caller out, answers, and serves the connection until it ends.
func (p *Path) answer() {
	h := p.host
	err := p.serve()
	p.close(err)
	h.leave(p, p.why(err))
	if h.ctx.Err() == nil && p.peer.Name == "" && !errors.Is(err, errNamed) {
		log := h.notTaken
		if errors.Is(err, peering.ErrOutdated) {
			log = h.outdated
		}
		log.add(slog.Any("from", p.raw.RemoteAddr()), slog.Any("error", p.why(err)))
	}
}

func (p *Path) serve() error {
	h := p.host
	_ = p.raw.SetDeadline(time.Now().Add(h.cfg.GreetWithin))
	in, canAnswer := p.firstWords()
	if p.reason.Load() != nil {
		return ErrClosed // it is not known to package peering any more
	}
	h.post(in)
	var a peering.Action
	select {
	case a = <-p.verdict:
	case <-p.done:
		return ErrClosed
	}
	if a.Do == peering.Refuse {
		if canAnswer {
			p.refuse(&a)
		}
		if a.Code == greeting.Named {
			return errNamed
		}
		return fmt.Errorf("%w: %w", peering.ErrRefused, a.Err)
	}
	if _, err := p.stream().Write((&greeting.Answer{Incarnation: h.Incarnation()}).Append(nil)); err != nil {
		return err
	}
	_ = p.raw.SetDeadline(time.Time{})
	p.begin()
	return p.wait()
}

// begin makes a connection of one that was accepted. Package peering has it in use by now: what
// asks for another one in its place is heeded.
func (p *Path) begin() {
	if c, ok := p.raw.(*udp.Conn); ok {
		c.SetLostAfter(p.host.cfg.LostAfter)
		c.Grow()
	} else {
		tune(p.raw, p.class, p.host.cfg.DeadAfter, p.host.cfg.LostAfter)
	}
	if p.seal != nil {
		p.follow()
		p.seal.hold(p.host.cfg.KeyBytes, func() { p.renew(errKey) })
	}
}

// wait serves a connection until it ends.
func (p *Path) wait() error {
	if p.conn == nil {
		return peering.ErrEnded
	}
	p.run()
	return p.why(io.EOF)
}

// stream returns what is read and written.
func (p *Path) stream() net.Conn {
	if p.tls != nil {
		return p.tls
	}
	return p.raw
}

// firstWords reads what a caller says first, under TLS where the host has a certificate. It
// reports false where an answer would not be understood.
func (p *Path) firstWords() (in peering.Input, canAnswer bool) {
	h := p.host
	in = peering.Input{Kind: peering.Greeted, ID: p.id, Address: p.raw.RemoteAddr().String()}
	var room [greeting.MaxSize]byte
	n, err := p.raw.Read(room[:])
	if n == 0 {
		in.Err = fmt.Errorf("%w: %w", peering.ErrMalformed, err)
		return in, false
	}
	first := room[:n]
	h.post(peering.Input{Kind: peering.Spoke, ID: p.id})
	isTLS := first[0] == handshake
	early := bytes.NewReader(first)
	stream := io.MultiReader(early, p.raw)
	switch {
	case isTLS && h.cfg.TLS == nil:
		in.Err = fmt.Errorf("%w: it speaks TLS, and this host has no certificate", peering.ErrMalformed)
		return in, false
	case h.cfg.TLS != nil && !isTLS:
		if _, err := greeting.Read(stream); err == nil {
			in.Err = fmt.Errorf("%w: this host speaks TLS alone, and the greeting came without", peering.ErrMalformed)
		} else {
			in.Err = fmt.Errorf("without TLS, which alone this host speaks: %w", err)
		}
		return in, true
	case isTLS:
		if in.Peer, in.Err = p.secure(first); in.Err != nil {
			return in, false
		}
		h.post(peering.Input{Kind: peering.Verified, ID: p.id})
		stream = p.tls
	}
	in.Greeting, in.Err = greeting.Read(stream)
	if in.Err == nil {
		in.Err = peering.Credible(in.Greeting.Incarnation, time.Now())
	}
	if !isTLS && in.Err == nil && early.Len() > 0 {
		in.Err = fmt.Errorf("%w: it goes on before there is an answer", peering.ErrMalformed)
	}
	return in, true
}

// secure shakes hands with a caller, and returns the host that its certificate names.
func (p *Path) secure(first []byte) (string, error) {
	p.seal = &seal{Conn: p.raw, early: first}
	p.shown = p.host.cfg.TLS.Begin()
	t := p.shown.Server()
	t.DynamicRecordSizingDisabled = true
	p.tls = tls.Server(p.seal, t)
	if err := p.tls.HandshakeContext(p.host.ctx); err != nil {
		return "", fmt.Errorf("%w: %w", peering.ErrMalformed, err)
	}
	return p.certified()
}

// certified returns the host that the other side's certificate names.
func (p *Path) certified() (string, error) {
	identity, err := pki.IdentityOf(p.tls.ConnectionState().PeerCertificates[0])
	if err == nil && identity.Role != pki.Host {
		err = fmt.Errorf("%w: it is %s, wanted is a host", pki.ErrWrongRole, identity)
	}
	return identity.Name, err
}

// refusedMost are the most connections on which a refusal is waited for to be read.
const refusedMost = 256

// refuse says why a call is not taken. To close the connection at once would reset it,
// and the answer might be lost; of many strangers at once it may.
func (p *Path) refuse(a *peering.Action) {
	answer := greeting.Answer{Code: a.Code, Incarnation: p.host.Incarnation(), Reason: a.Err.Error()}
	if a.Code == greeting.Outdated {
		answer.Incarnation = a.Incarnation
	}
	if _, err := p.stream().Write(answer.Append(nil)); err != nil {
		return
	}
	defer p.host.refused.Add(-1)
	if p.host.refused.Add(1) > refusedMost {
		return
	}
	if half, ok := p.stream().(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(p.raw, 64<<10)) // until its deadline
	}
}
