package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core/rudp"
)

// Listener accepts connections, and dials others from the same socket: a net.Listener.
type Listener struct{ socket *socket }

var _ net.Listener = (*Listener)(nil)

// Listen listens at a UDP address; port 0 takes a free port. Where it is one of several of
// the host, it should not be unspecified: answers come from the address that was called.
func Listen(local netip.AddrPort, cfg Config) (*Listener, error) {
	s, err := open(local, cfg, true)
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	return &Listener{s}, nil
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, ok := <-l.socket.backlog
	if !ok {
		return nil, &net.OpError{Op: "accept", Net: "udp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	return c, nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.socket.addr() }

// Close takes no calls any more. The socket is closed as soon as its connections are, and
// what they have sent was acknowledged; without any it is when Close returns.
func (l *Listener) Close() error {
	if !l.socket.unlisten() {
		return &net.OpError{Op: "close", Net: "udp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.socket.mu.Lock()
	isUnused := l.socket.live == 0
	l.socket.mu.Unlock()
	if isUnused {
		<-l.socket.done
	}
	return nil
}

// Done is closed when the socket is, and nothing runs any more.
func (l *Listener) Done() <-chan struct{} { return l.socket.done }

// Dial calls another listener.
func (l *Listener) Dial(ctx context.Context, remote netip.AddrPort) (*Conn, error) {
	return l.socket.dial(ctx, remote)
}

// Dial calls a listener from a socket of the connection's own, at local; port 0 takes a
// free port.
func Dial(ctx context.Context, local, remote netip.AddrPort, cfg Config) (*Conn, error) {
	s, err := open(local, cfg, false)
	if err != nil {
		return nil, fmt.Errorf("udp: calling %v: %w", remote, err)
	}
	c, err := s.dial(ctx, remote)
	if err != nil {
		s.closeUnused()
		<-s.done
	}
	return c, err
}

func (s *socket) dial(ctx context.Context, remote netip.AddrPort) (*Conn, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("udp: calling %v: %w", remote, context.Cause(ctx))
	}
	c := s.newConn(netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port()))
	now := s.clock.Now()
	c.core = rudp.Call(s.cfg.Connection, now, c.id)
	s.mu.Lock()
	err := s.broken
	if s.backlog != nil && !s.listening {
		err = net.ErrClosed
	}
	if err == nil {
		s.enter(c)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("udp: calling %v: %w", remote, err)
	}
	undo := context.AfterFunc(ctx, func() { _ = c.Abort() })
	c.mu.Lock()
	c.step(now, nil)
	for c.core.State() == rudp.Calling {
		c.readable.Wait()
	}
	err = c.core.Err()
	if c.broken != nil {
		err = c.broken
	}
	c.mu.Unlock()
	if !undo() {
		err = context.Cause(ctx)
	}
	if err != nil {
		if e := c.Abort(); e != nil && !errors.Is(e, net.ErrClosed) {
			err = e
		}
		return nil, fmt.Errorf("udp: calling %v: %w", remote, err)
	}
	return c, nil
}
