package peer

import (
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowLedger is a ledger that takes frames as they are permitted.
type slowLedger struct {
	*ledger
	permits chan struct{} // one for each frame; closed: for all
}

func (l *slowLedger) Received(c *Conn, frames []Frame, b *Burst) {
	for range frames {
		<-l.permits
	}
	l.ledger.Received(c, frames, b)
}

// TestSecondPathKeepsOrder: frames that are lent, and wait on the only path when a second one
// joins, are not overtaken by those that go over the second one.
func TestSecondPathKeepsOrder(t *testing.T) {
	w := newTown()
	out, in := newLedger(), &slowLedger{newLedger(), make(chan struct{})}
	settle := func(name string, at byte, l Handler) *Host {
		h, _ := w.settle(t, name, 1, func(c *Config) {
			withRails(at, 1)(c)
			c.Handlers = map[Service]Handler{testService: l}
		})
		return h
	}
	a := settle("a", 1, out)
	b := settle("b", 2, in)
	// What has gone out, and what waits: more than the buffers of a connection have room for.
	const times = 60
	l := a.Channel("b", Large)
	send := func(i uint64) {
		if err := l.Send(&Send{Service: testService, Body: numbered(i, 1<<20), Number: i + 1}); err != nil {
			t.Fatal(err)
		}
		out.Sent(l.Flush(testService, nil), nil)
	}
	for i := range uint64(times) {
		send(i)
	}
	isStriped := func(isAnchored bool) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.conn != nil && l.conn.stripe != nil && (isAnchored || l.conn.stripe.anchor == nil)
	}
	for at, h := range []*Host{a, b} {
		if err := h.SetRails(t.Context(), railsOf(byte(at+1), 2)); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the second path", func() bool { return isStriped(true) })
	await(t, "the first segment", func() bool {
		select {
		case in.permits <- struct{}{}:
		default:
		}
		return isStriped(false)
	})
	l.mu.Lock()
	l.conn.stripe.rails.Down(0) // all that follows goes over the second path
	l.mu.Unlock()
	for i := range uint64(times) {
		send(times + i)
	}
	close(in.permits)
	await(t, "all frames", func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return in.next["a 2"] == 2*times || len(in.bad) > 0
	})
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.bad) > 0 {
		t.Errorf("%d frames are not where they belong: %s", len(in.bad), in.bad[0])
	}
}

// unseen is a connection whose end the other side does not see.
type unseen struct{ net.Conn }

// Close implements net.Conn.
func (m unseen) Close() error { return m.SetReadDeadline(time.Unix(1, 0)) }

// TestLoseRailIsReported: a host whose interface is down says so on its other rails, as
// nothing of that goes out on this one.
func TestLoseRailIsReported(t *testing.T) {
	w := newTown()
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		for _, c := range open {
			c.Close()
		}
	})
	a, _ := w.settle(t, "a", 1, func(c *Config) {
		withRails(1, 2)(c)
		c.Wrap = func(raw net.Conn) net.Conn {
			mu.Lock()
			defer mu.Unlock()
			open = append(open, raw)
			return unseen{raw}
		}
	})
	b, _ := w.settle(t, "b", 1, withRails(2, 2))
	send(t, a, "b", Control, 0, "x", 0)
	await(t, "both paths", func() bool { return isWhole(a, "b", Control, 2) && isWhole(b, "a", Control, 2) })
	var lost *Path
	for _, p := range pathsOf(b, "a", Control) {
		if p.Rails().Theirs.Name == railsOf(1, 2)[1].Name {
			lost = p
		}
	}
	a.LoseRail(railsOf(1, 2)[1].Name, errors.New("no carrier"))
	await(t, "its end", func() bool { return lost.reason.Load() != nil })
	if why := lost.why(nil).Error(); !strings.Contains(why, "a has found it dead") {
		t.Error(why)
	}
}
