package rudp

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// link carries datagrams in one direction, in virtual time.
type link struct {
	rate      float64 // bytes a second; 0: without limit
	delay     time.Duration
	queue     int // bytes that may wait
	loss      func() bool
	duplicate func() bool
	jitter    func() time.Duration
	dead      bool

	free core.Time // when all that waits has left
	sent int
	lost int
}

// flight is a datagram on its way.
type flight struct {
	at core.Time
	to *host
	b  []byte
}

// host is a side of one connection, or who may become one.
type host struct {
	*Conn
	name    string
	out     *link
	peer    *host
	cookies *Cookies
	answers func(connect []byte) *Conn
}

// world joins hosts by links.
type world struct {
	now     core.Time
	flights []flight // by time
	hosts   []*host
	steps   int
	check   func(h *host)
	sniff   func(from *host, b []byte) // what is sent
	arrive  func(to *host, b []byte)   // what comes
}

var address = netip.MustParseAddrPort("192.0.2.1:7000")

// newWorld has a caller, a, and a listener, b.
func newWorld(ca, cb Config, ab, ba *link) (w *world, a, b *host) {
	w = &world{now: core.Time(time.Hour)}
	a = &host{name: "a", out: ab, Conn: Call(ca, w.now, 0xa1a2a3a4a5a6a7a8)}
	b = &host{name: "b", out: ba, cookies: NewCookies([32]byte{1})}
	b.answers = func(connect []byte) *Conn {
		c, err := Answer(cb, w.now, 0xb1b2b3b4b5b6b7b8, connect)
		if err != nil {
			return nil
		}
		return c
	}
	a.peer, b.peer = b, a
	w.hosts = []*host{a, b}
	return w, a, b
}

// send puts a datagram on its way.
func (w *world) send(from *host, b []byte) {
	if w.sniff != nil {
		w.sniff(from, b)
	}
	l, size := from.out, len(b)+overhead
	l.sent++
	if l.dead || l.loss != nil && l.loss() {
		l.lost++
		return
	}
	copies := 1
	if l.duplicate != nil && l.duplicate() {
		copies = 2
	}
	for range copies {
		at := w.now
		if l.rate > 0 {
			waits := float64(max(l.free, w.now).Sub(w.now).Seconds()) * l.rate
			if l.queue > 0 && int(waits)+size > l.queue {
				l.lost++
				continue
			}
			l.free = max(l.free, w.now).Add(time.Duration(float64(size) / l.rate * 1e9))
			at = l.free
		}
		at = at.Add(l.delay)
		if l.jitter != nil {
			at = at.Add(l.jitter())
		}
		i, _ := slices.BinarySearchFunc(w.flights, at, func(f flight, at core.Time) int {
			if f.at <= at {
				return -1
			}
			return 1
		})
		w.flights = slices.Insert(w.flights, i, flight{at, from.peer, slices.Clone(b)})
	}
}

// step steps a host, with what has come.
func (w *world) step(h *host, datagrams ...[]byte) {
	if w.arrive != nil {
		for _, d := range datagrams {
			w.arrive(h, d)
		}
	}
	if h.Conn == nil {
		h.greet(w, datagrams)
		return
	}
	for _, d := range datagrams {
		if k, id, err := KindOf(d); err == nil && k == Data && h.State() == Ended {
			w.send(h, AppendUnknown(nil, id))
		}
	}
	var out Output
	h.Step(w.now, datagrams, &out)
	for i := range out.Batches {
		for _, d := range apart(&out.Batches[i]) {
			w.send(h, d)
		}
	}
	w.steps++
	if w.check != nil {
		w.check(h)
	}
}

// greet answers calls.
func (h *host) greet(w *world, datagrams [][]byte) {
	for _, d := range datagrams {
		switch k, id, err := KindOf(d); {
		case err != nil || h.answers == nil:
		case k == Connect && !h.cookies.Valid(w.now, address, d):
			w.send(h, h.cookies.Retry(nil, w.now, address, d))
		case k == Connect:
			if h.Conn = h.answers(d); h.Conn != nil {
				w.step(h)
			}
		case k == Data:
			w.send(h, AppendUnknown(nil, id))
		}
	}
}

// apart returns the datagrams of a batch.
func apart(b *Batch) (all [][]byte) {
	if b.Size == 0 {
		return [][]byte{append(slices.Clone(b.Head), b.Body...)}
	}
	count := (len(b.Body) + b.Size - 1) / b.Size
	heads := len(b.Head) / count
	for i := range count {
		body := b.Body[i*b.Size : min(len(b.Body), (i+1)*b.Size)]
		all = append(all, append(slices.Clone(b.Head[i*heads:(i+1)*heads]), body...))
	}
	return all
}

// next moves on to the next thing that happens, not beyond until; false: nothing does.
func (w *world) next(until core.Time) bool {
	at := core.Never
	if len(w.flights) > 0 {
		at = w.flights[0].at
	}
	var due *host
	for _, h := range w.hosts {
		if h.Conn == nil {
			continue
		}
		if d := max(h.Deadline(), w.now); h.Deadline() != core.Never && d < at {
			at, due = d, h
		}
	}
	if at > until || at == core.Never {
		w.now = max(w.now, min(until, core.Time(math.MaxInt64/2)))
		return false
	}
	w.now = max(w.now, at)
	if due != nil {
		w.step(due)
		return true
	}
	f := w.flights[0]
	w.flights = slices.Delete(w.flights, 0, 1)
	w.step(f.to, f.b)
	return true
}

// run lets time pass.
func (w *world) run(d time.Duration) {
	for until := w.now.Add(d); w.next(until); {
	}
}

// connect runs until both sides are there.
func (w *world) connect(t testing.TB) {
	t.Helper()
	for until := w.now.Add(time.Minute); w.hosts[1].Conn == nil || w.hosts[0].State() == Calling; {
		if !w.next(until) {
			t.Fatalf("no connection: %v", w.hosts[0].Err())
		}
	}
}

// transfer is an application that sends a stream and reads another.
type transfer struct {
	send, got []byte
	sent      int
	closes    bool // after it has sent all
	eof       bool
	pause     func() bool // reads nothing for now
	chunk     int         // bytes of a Write; 0: all
	received  int
	drop      bool // counts only
}

// serve writes and reads as far as possible.
func (x *transfer) serve(t interface {
	Helper()
	Fatalf(string, ...any)
}, w *world, h *host) {
	t.Helper()
	moved := false
	for x.sent < len(x.send) {
		end := len(x.send)
		if x.chunk > 0 {
			end = min(end, x.sent+x.chunk)
		}
		n, err := h.Write(x.send[x.sent:end])
		if err != nil {
			t.Fatalf("%s writes: %v", h.name, err)
		}
		if n == 0 {
			break
		}
		x.sent += n
		moved = true
		if x.chunk > 0 {
			w.step(h)
		}
	}
	if x.closes && x.sent == len(x.send) {
		h.CloseWrite()
		x.closes, moved = false, true
	}
	room := make([]byte, 1<<16)
	for !x.eof && (x.pause == nil || !x.pause()) {
		n, err := h.Read(room)
		if err == io.EOF {
			x.eof = true
			break
		}
		if err != nil {
			t.Fatalf("%s reads: %v", h.name, err)
		}
		if n == 0 {
			break
		}
		moved = true
		if x.received += n; !x.drop {
			x.got = append(x.got, room[:n]...)
		}
	}
	if moved {
		w.step(h)
	}
}

// noise returns bytes that do not repeat soon.
func noise(n int, seed uint64) []byte {
	r := core.Chance(seed)
	b := make([]byte, n)
	for i := range b {
		if i%8 == 0 {
			x := r.Uint64()
			for j := i; j < min(n, i+8); j++ {
				b[j] = byte(x >> (8 * (j - i)))
			}
		}
	}
	return b
}

// share drives two applications until both have all, within a virtual time.
func (w *world) share(t interface {
	Helper()
	Fatalf(string, ...any)
}, of time.Duration, xs ...*transfer) {
	t.Helper()
	until := w.now.Add(of)
	for {
		over := true
		for i, x := range xs {
			x.serve(t, w, w.hosts[i])
			over = over && x.eof && x.sent == len(x.send)
		}
		if over {
			return
		}
		// An application may do something while nothing else happens.
		if !w.next(min(until, w.now.Add(10*time.Millisecond))) && w.now >= until {
			t.Fatalf("after %v: %s", of, w.describe(xs))
		}
	}
}

func (w *world) describe(xs []*transfer) string {
	var b bytes.Buffer
	for i, x := range xs {
		h := w.hosts[i]
		fmt.Fprintf(&b, "\n%s: %v sent %d of %d, received %d, eof %v, deadline %v, stats %+v", h.name, h.State(), x.sent, len(x.send), len(x.got), x.eof, h.Deadline(), h.Stats())
	}
	return b.String()
}
