package rudp

import (
	"fmt"
	"testing"
	"time"
)

// TestFillsLink: a transfer over 200 Mbit/s takes little longer than its packets do,
// whether the queue before the link is shallow or deep, and with losses by chance.
func TestFillsLink(t *testing.T) {
	for _, c := range []struct {
		queue int
		rtt   time.Duration
		every int // so many packets are lost one; 0: none
		part  float64
	}{
		{30_000, 200 * time.Microsecond, 0, 0.93},
		{100_000, time.Millisecond, 0, 0.93},
		{1 << 20, time.Millisecond, 0, 0.95},
		{100_000, 200 * time.Microsecond, 1000, 0.9},
	} {
		t.Run(fmt.Sprintf("queue=%d/rtt=%v/every=%d", c.queue, c.rtt, c.every), func(t *testing.T) {
			n := 0
			there := &link{rate: 25e6, delay: c.rtt / 2, queue: c.queue, loss: func() bool {
				n++
				return c.every > 0 && n%c.every == 0
			}}
			w, a, _ := newWorld(Config{}, Config{}, there, &link{rate: 25e6, delay: c.rtt / 2, queue: 1 << 20})
			w.connect(t)
			begin := w.now
			const size = 12 << 20
			x, y := &transfer{send: make([]byte, size), closes: true}, &transfer{closes: true, drop: true}
			w.share(t, time.Minute, x, y)
			rate := size / w.now.Sub(begin).Seconds()
			part := rate / (25e6 * 1372 / 1428)
			t.Logf("%.3f of the link; %d lost; %+v", part, there.lost, a.Stats())
			if part < c.part {
				t.Errorf("%.3f of the link, want %.2f", part, c.part)
			}
		})
	}
}

// TestSharesLink: two transfers over one link, one of which comes later, have similar
// parts of it.
func TestSharesLink(t *testing.T) {
	there, back := &link{rate: 25e6, delay: 500 * time.Microsecond, queue: 200_000}, &link{delay: 500 * time.Microsecond}
	w, a, _ := newWorld(Config{}, Config{}, there, back)
	w.connect(t)
	const size = 200 << 20
	xs := []*transfer{{send: make([]byte, size)}, {drop: true}}
	until := w.now.Add(2 * time.Second)
	serve := func() {
		for i, x := range xs {
			x.serve(t, w, w.hosts[i])
		}
	}
	for serve(); w.next(until); serve() {
	}
	_, c, d := newWorld(Config{}, Config{}, there, back)
	c.begun, c.connectAt = w.now, w.now
	d.answers = func(connect []byte) *Conn {
		conn, _ := Answer(Config{}, w.now, 0xc1c2c3c4c5c6c7c8, connect)
		return conn
	}
	w.hosts = append(w.hosts, c, d)
	for d.Conn == nil || c.State() == Calling {
		w.next(until.Add(time.Second))
		serve()
	}
	xs = append(xs, &transfer{send: make([]byte, size)}, &transfer{drop: true})
	var first, second int
	half := w.now.Add(2 * time.Second)
	for serve(); w.next(half); serve() {
	}
	first, second = xs[1].received, xs[3].received
	for serve(); w.next(half.Add(3 * time.Second)); serve() {
	}
	one, two := float64(xs[1].received-first), float64(xs[3].received-second)
	t.Logf("parts %.2f and %.2f; windows %v and %v", one/(one+two), two/(one+two), a.Stats().Window, c.Stats().Window)
	if part := one / (one + two); part < 0.3 || part > 0.7 {
		t.Errorf("the first has %.2f", part)
	}

}
