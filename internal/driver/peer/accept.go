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
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// accept takes calls until the host is closed.
func (h *Host) accept() {
	for {
		raw, err := h.listener.Accept()
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
		c := h.newConn(peering.ID(h.number()))
		c.connected(raw)
		if !h.enter(c) {
			raw.Close()
			return
		}
		// One after the other, so that what is too much is closed before more is taken.
		h.post(peering.Input{Kind: peering.Arrived, ID: c.id, Source: sourceOf(raw.RemoteAddr())})
		if !h.tasks.Go(c.answer) {
			raw.Close()
		}
	}
}

// answer hears a caller out, answers, and serves the connection until it ends.
func (c *Conn) answer() {
	h := c.host
	err := c.serve()
	c.close(err)
	h.leave(c, c.why(err))
	if h.ctx.Err() == nil && c.peer.Name == "" && !errors.Is(err, errNamed) {
		log := h.notTaken
		if errors.Is(err, peering.ErrOutdated) {
			log = h.outdated
		}
		log.add(slog.Any("from", c.raw.RemoteAddr()), slog.Any("error", c.why(err)))
	}
}

func (c *Conn) serve() error {
	h := c.host
	_ = c.raw.SetDeadline(time.Now().Add(h.cfg.GreetWithin))
	in, canAnswer := c.firstWords()
	if c.reason.Load() != nil {
		return ErrClosed // it is not known to package peering any more
	}
	h.post(in)
	var a peering.Action
	select {
	case a = <-c.verdict:
	case <-c.done:
		return ErrClosed
	}
	if a.Do == peering.Refuse {
		if canAnswer {
			c.refuse(&a)
		}
		if a.Code == greeting.Named {
			return errNamed
		}
		return fmt.Errorf("%w: %w", peering.ErrRefused, a.Err)
	}
	if _, err := c.stream().Write((&greeting.Answer{Incarnation: h.Incarnation()}).Append(nil)); err != nil {
		return err
	}
	_ = c.raw.SetDeadline(time.Time{})
	c.begin()
	return c.wait()
}

// begin makes a connection of one that was accepted.
func (c *Conn) begin() {
	tune(c.raw, c.class, c.host.cfg.DeadAfter, c.host.cfg.LostAfter)
	if c.class.isShared() && c.seal != nil {
		c.seal.hold()
	}
}

// wait serves a connection until it ends.
func (c *Conn) wait() error {
	if !c.class.isShared() {
		s := c.host.servers[c.class].Load()
		if s == nil || !s.begin() {
			return fmt.Errorf("%w: %d", peering.ErrClass, c.class) // it has gone meanwhile
		}
		if s.serve(c.peer, c.stream()) {
			c.forget()
		}
		s.end()
		return peering.ErrDone
	}
	c.run()
	return c.why(io.EOF)
}

// stream returns what is read and written.
func (c *Conn) stream() net.Conn {
	if c.tls != nil {
		return c.tls
	}
	return c.raw
}

// firstWords reads what a caller says first, under TLS where the host has a certificate. It
// reports false where an answer would not be understood.
func (c *Conn) firstWords() (in peering.Input, canAnswer bool) {
	h := c.host
	in = peering.Input{Kind: peering.Greeted, ID: c.id, Address: c.raw.RemoteAddr().String()}
	var room [greeting.MaxSize]byte
	n, err := c.raw.Read(room[:])
	if n == 0 {
		in.Err = fmt.Errorf("%w: %w", peering.ErrMalformed, err)
		return in, false
	}
	first := room[:n]
	h.post(peering.Input{Kind: peering.Spoke, ID: c.id})
	isTLS := first[0] == handshake
	early := bytes.NewReader(first)
	stream := io.MultiReader(early, c.raw)
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
		if in.Peer, in.Err = c.secure(first); in.Err != nil {
			return in, false
		}
		h.post(peering.Input{Kind: peering.Verified, ID: c.id})
		stream = c.tls
	}
	in.Greeting, in.Err = greeting.Read(stream)
	if !isTLS && in.Err == nil && early.Len() > 0 {
		in.Err = fmt.Errorf("%w: it goes on before there is an answer", peering.ErrMalformed)
	}
	if class := Class(in.Greeting.Class); in.Err == nil && class < classes && !class.isShared() && h.servers[class].Load() == nil {
		in.Err = fmt.Errorf("%w: %d", peering.ErrClass, class)
	}
	return in, true
}

// secure shakes hands with a caller, and returns the host that its certificate names.
func (c *Conn) secure(first []byte) (string, error) {
	c.seal = &seal{Conn: c.raw, early: first}
	t := c.host.cfg.TLS.Server()
	t.DynamicRecordSizingDisabled = true
	c.tls = tls.Server(c.seal, t)
	if err := c.tls.HandshakeContext(c.host.ctx); err != nil {
		return "", fmt.Errorf("%w: %w", peering.ErrMalformed, err)
	}
	return c.certified()
}

// certified returns the host that the other side's certificate names.
func (c *Conn) certified() (string, error) {
	identity, err := pki.IdentityOf(c.tls.ConnectionState().PeerCertificates[0])
	if err == nil && identity.Role != pki.Host {
		err = fmt.Errorf("%w: it is %s, wanted is a host", pki.ErrWrongRole, identity)
	}
	return identity.Name, err
}

// refusedMost are the most connections on which a refusal is waited for to be read.
const refusedMost = 256

// refuse says why a call is not taken. To close the connection at once would reset it,
// and the answer might be lost; of many strangers at once it may.
func (c *Conn) refuse(a *peering.Action) {
	answer := greeting.Answer{Code: a.Code, Incarnation: c.host.Incarnation(), Reason: a.Err.Error()}
	if a.Code == greeting.Outdated {
		answer.Incarnation = a.Incarnation
	}
	if _, err := c.stream().Write(answer.Append(nil)); err != nil {
		return
	}
	defer c.host.refused.Add(-1)
	if c.host.refused.Add(1) > refusedMost {
		return
	}
	if half, ok := c.stream().(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c.raw, 64<<10)) // until its deadline
	}
}
