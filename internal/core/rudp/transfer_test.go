package rudp

import (
	"bytes"
	"testing"
	"time"
)

// TestTransfer moves a stream in each direction, and both ends.
func TestTransfer(t *testing.T) {
	lan := func() *link { return &link{delay: 50 * time.Microsecond, rate: 125e6, queue: 1 << 20} }
	w, a, b := newWorld(Config{}, Config{}, lan(), lan())
	w.connect(t)
	x := &transfer{send: noise(5<<20, 1), closes: true}
	y := &transfer{send: noise(3<<20+7, 2), closes: true}
	begin := w.now
	w.share(t, time.Minute, x, y)
	if !bytes.Equal(x.got, y.send) || !bytes.Equal(y.got, x.send) {
		t.Fatal("other bytes have arrived")
	}
	t.Logf("%v; a %+v; b %+v; datagrams %d and %d", w.now.Sub(begin), a.Stats(), b.Stats(), a.out.sent, b.out.sent)
	a.Close(w.now)
	b.Close(w.now)
	w.step(a)
	w.step(b)
	w.run(time.Minute)
	if a.State() != Ended || b.State() != Ended || a.Err() != nil || b.Err() != nil {
		t.Errorf("a is %v (%v), b %v (%v)", a.State(), a.Err(), b.State(), b.Err())
	}
}
