package rudp

import (
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// loop is two connections, one step apart, without a world: nothing allocates but they.
type loop struct {
	now   core.Time
	sides [2]*Conn
	out   [2]Output
	room  [2][2048][1500]byte
	in    [2][][]byte
}

func newLoop(tb testing.TB) *loop {
	tb.Helper()
	w, a, b := newWorld(Config{}, Config{}, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(tb)
	w.run(10 * time.Millisecond)
	return &loop{now: w.now, sides: [2]*Conn{a.Conn, b.Conn}}
}

// step steps a side, and has the other get what comes out.
func (l *loop) step(i int) {
	l.out[i].Reset()
	l.sides[i].Step(l.now, l.in[i], &l.out[i])
	l.in[i] = l.in[i][:0]
	to := 1 - i
	for j := range l.out[i].Batches {
		b := &l.out[i].Batches[j]
		heads, size := len(b.Head)/b.count, max(b.Size, 1)
		for k := range b.count {
			room := &l.room[to][len(l.in[to])]
			n := copy(room[:], b.Head[k*heads:(k+1)*heads])
			if b.Size == 0 {
				n += copy(room[n:], b.Body)
			} else {
				n += copy(room[n:], b.Body[k*size:min(len(b.Body), (k+1)*size)])
			}
			l.in[to] = append(l.in[to], room[:n])
		}
	}
}

// move moves bytes from a to b.
func (l *loop) move(b, room []byte) {
	for sent, got := 0, 0; got < len(b); l.now = l.now.Add(100 * time.Microsecond) {
		n, _ := l.sides[0].Write(b[sent:])
		sent += n
		l.step(0)
		l.step(1)
		for {
			n, _ := l.sides[1].Read(room)
			if n == 0 {
				break
			}
			got += n
		}
	}
}

// TestNoAllocation: a connection that is warm allocates nothing.
func TestNoAllocation(t *testing.T) {
	l := newLoop(t)
	b, room := make([]byte, 1<<20), make([]byte, 1<<16)
	for range 5 {
		l.move(b, room)
	}
	if n := testing.AllocsPerRun(20, func() { l.move(b, room) }); n != 0 {
		t.Errorf("%v allocations a megabyte", n)
	}
	if n := testing.AllocsPerRun(100, func() { l.move(b[:8], room) }); n != 0 {
		t.Errorf("%v allocations for 8 bytes", n)
	}
}

// TestIdleHoldsNothing: after a second without traffic there are no buffers.
func TestIdleHoldsNothing(t *testing.T) {
	w, a, b := newWorld(Config{}, Config{}, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	x, y := &transfer{send: noise(1<<20, 1)}, &transfer{}
	for until := w.now.Add(time.Minute); y.received < len(x.send); w.next(until) {
		x.serve(t, w, a)
		y.serve(t, w, b)
	}
	w.run(2 * time.Second)
	for _, h := range w.hosts {
		if n := len(h.send.buffer.b) + len(h.receive.buffer.b) + len(h.log.ring); n != 0 || h.Deadline() != core.Never {
			t.Errorf("%s holds %d, and wants to be stepped at %v", h.name, n, h.Deadline())
		}
	}
}

// BenchmarkMove moves a megabyte through two cores.
func BenchmarkMove(b *testing.B) {
	l := newLoop(b)
	bytes, room := make([]byte, 1<<20), make([]byte, 1<<16)
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		l.move(bytes, room)
	}
}
