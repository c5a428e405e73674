package hostlib

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

const (
	dialTimeout = 2 * time.Second
	dialPause   = 20 * time.Millisecond // after a failed attempt; doubles
	dialPauseTo = 500 * time.Millisecond
)

// connect waits for a connection: at first as long as it takes, later as long
// as a member may be unreachable.
func (l *link) connect(ctx context.Context, first bool) (net.Conn, error) {
	if !first {
		limit := l.c.host.cfg.DeadAfter
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it could not be reached for %v", limit))
		defer cancel()
	}
	if l.dials {
		return l.dial(ctx)
	}
	for {
		select {
		case k := <-l.calls:
			if l.accept(ctx, k) {
				return k.conn, nil
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// accept answers a caller, and reports whether it is still there.
func (l *link) accept(ctx context.Context, k *caller) bool {
	if !l.turn(k.conn) {
		k.conn.Close()
		return false
	}
	undo := context.AfterFunc(ctx, func() { k.conn.Close() })
	err := k.accept(l.c.own)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.greeting = nil
	if !undo() || err != nil || len(l.calls) > 0 {
		k.conn.Close()
		return false
	}
	l.met, l.conn = k.hello.own, k.conn
	return true
}

// turn notes which caller is being answered, unless a newer one waits.
func (l *link) turn(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calls) > 0 {
		return false
	}
	l.greeting = conn
	return true
}

func (l *link) dial(ctx context.Context) (net.Conn, error) {
	pause := dialPause
	for {
		conn, err := l.greet(ctx)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, errRefused) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, l.late(ctx)
		}
		l.troubled(err)
		select {
		case <-ctx.Done():
			return nil, l.late(ctx)
		case <-time.After(pause):
			pause = min(2*pause, dialPauseTo)
		}
	}
}

// late returns why it took too long to reach the neighbour.
func (l *link) late(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trouble == nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w (%w)", context.Cause(ctx), l.trouble)
}

// troubled notes what was in the way of a call.
func (l *link) troubled(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = err
}

// missing says why the neighbour was not met; empty if it was.
func (l *link) missing() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.serial > 0:
		return ""
	case !l.dials:
		return "has not called"
	case l.trouble == nil:
		return "has not answered"
	}
	return "cannot be reached: " + l.trouble.Error()
}

// errRefused: the parent was reached and wants no such child.
var errRefused = errors.New("refused")

func (l *link) greet(ctx context.Context) (net.Conn, error) {
	conn, err := l.c.host.dial(ctx, l.c.members[l.peer])
	if err != nil {
		return nil, err
	}
	undo := context.AfterFunc(ctx, func() { conn.Close() })
	err = l.introduce(conn)
	if !undo() {
		return nil, ctx.Err()
	}
	if err == nil {
		_, err = conn.Write([]byte{confirmed})
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dial connects to a member's host.
func (h *Host) dial(ctx context.Context, m Member) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, conn, err := h.peers.Dial(ctx, m.Host, peer.Tree, m.Addr)
	if errors.Is(err, peering.ErrRefused) && !errors.Is(err, peering.ErrBusy) {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return conn, err
}

// introduce greets the parent and hears its answer, for which it may take its
// time: it answers once it has made the communicator. It is still to be
// confirmed that this member is there.
func (l *link) introduce(conn net.Conn) error {
	l.mu.Lock()
	h := hello{
		group: l.c.group, from: uint32(l.c.rank), to: uint32(l.peer),
		own: l.c.own, of: l.met, name: l.c.name,
	}
	l.mu.Unlock()
	if _, err := conn.Write(h.bytes()); err != nil {
		return err
	}
	l.troubled(nil)
	by, why, err := readAnswer(conn)
	switch {
	case err != nil:
		return err
	case by == 0:
		return fmt.Errorf("%w: %s", errRefused, why)
	case h.of != 0 && by != h.of:
		return fmt.Errorf("%w: another one answers in its place", errHello)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.met = by
	return nil
}

// called takes a connection from the child in place of the one before. It
// reports false if the child's communicator is another one than before.
func (l *link) called(k *caller) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.met != 0 && l.met != k.hello.own {
		return false
	}
	if l.isShut {
		k.conn.Close()
		return true
	}
	select {
	case old := <-l.calls:
		old.conn.Close()
	default:
	}
	l.calls <- k // there is room, since nobody else sends
	for _, conn := range []net.Conn{l.greeting, l.conn} {
		if conn != nil {
			conn.Close()
		}
	}
	return true
}

// shut closes the connection that waits, and all that come.
func (l *link) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isShut = true
	select {
	case k := <-l.calls:
		k.conn.Close()
	default:
	}
}
