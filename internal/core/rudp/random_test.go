package rudp

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
)

// drawLink returns a link with faults.
func drawLink(t *rapid.T, name string, chance *core.Chance) *link {
	often := func(what string, most int) func() bool {
		p := rapid.IntRange(0, most).Draw(t, name+" "+what)
		return func() bool { return chance.Below(1000) < p }
	}
	l := &link{
		delay:     time.Duration(rapid.IntRange(0, 20_000).Draw(t, name+" delay")) * time.Microsecond,
		rate:      float64(rapid.SampledFrom([]int{0, 100_000, 1_000_000, 25_000_000}).Draw(t, name+" rate")),
		queue:     rapid.SampledFrom([]int{0, 4_000, 60_000}).Draw(t, name+" queue"),
		loss:      often("loss", 300),
		duplicate: often("duplicate", 300),
	}
	jitter := time.Duration(rapid.IntRange(0, 10_000).Draw(t, name+" jitter")) * time.Microsecond
	l.jitter = func() time.Duration {
		if jitter == 0 {
			return 0
		}
		return time.Duration(chance.Below(int(jitter)))
	}
	return l
}

func drawConfig(t *rapid.T, name string) Config {
	return Config{
		Datagram:      rapid.IntRange(MinDatagram, 1500).Draw(t, name+" datagram"),
		SendBuffer:    rapid.SampledFrom([]int{1500, 5000, 70_000}).Draw(t, name+" send buffer"),
		ReceiveBuffer: rapid.SampledFrom([]int{1500, 5000, 70_000}).Draw(t, name+" receive buffer"),
		ConnectWithin: time.Minute, LostAfter: 5 * time.Minute, LingerFor: 5 * time.Minute,
		KeepAlive: time.Duration(rapid.IntRange(0, 2).Draw(t, name+" keep alive")) * 50 * time.Millisecond,
	}
}

// begin changes the number of a connection's first packet, as if there had been others.
func (h *host) begin(number uint64) { h.log.first, h.log.next = number, number }

func drawFirst(t *rapid.T, name string) uint64 {
	return rapid.SampledFrom([]uint64{0, 1<<31 - 3, 1<<31 + 3, 1<<32 - 3, 1<<32 - 100}).Draw(t, name+" first number") & (1<<32 - 1)
}

// TestRandom moves streams over links that lose, double, reorder and delay, between
// applications that write in pieces and read when they like. Every byte arrives, once and
// in order, and neither side ever says or holds what it should not.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := core.Chance(rapid.Uint64().Draw(t, "seed"))
		w, a, b := newWorld(drawConfig(t, "a"), drawConfig(t, "b"), drawLink(t, "a to b", &chance), drawLink(t, "b to a", &chance))
		a.begin(drawFirst(t, "a"))
		first := drawFirst(t, "b")
		answers := b.answers
		b.answers = func(connect []byte) *Conn {
			c := answers(connect)
			if c != nil {
				c.log.first, c.log.next = first, first
			}
			return c
		}
		app := func(name string) *transfer {
			slow := rapid.IntRange(0, 3).Draw(t, name+" reads")
			return &transfer{
				send:   noise(rapid.IntRange(0, 60_000).Draw(t, name+" bytes"), chance.Uint64()),
				chunk:  rapid.SampledFrom([]int{0, 100, 1400, 10_000}).Draw(t, name+" chunk"),
				pause:  func() bool { return chance.Below(4) < slow },
				closes: true,
			}
		}
		x, y := app("a"), app("b")
		w.watch(t)
		w.meet(t)
		w.share(t, 4*time.Minute, x, y)
		if !bytes.Equal(x.got, y.send) || !bytes.Equal(y.got, x.send) {
			t.Fatalf("other bytes have arrived: %d of %d, %d of %d", len(x.got), len(y.send), len(y.got), len(x.send))
		}
		a.Close(w.now)
		w.step(a)
		w.run(time.Duration(rapid.IntRange(0, 100).Draw(t, "ms later")) * time.Millisecond)
		b.Close(w.now)
		w.step(b)
		w.run(time.Hour)
		for _, h := range w.hosts {
			// Where the last acknowledgement is lost, the peer may have forgotten all.
			if h.State() != Ended || h.Err() != nil && !errors.Is(h.Err(), ErrReset) {
				t.Fatalf("%s is %v: %v", h.name, h.State(), h.Err())
			}
		}
		if len(w.flights) > 0 {
			t.Fatalf("%d datagrams are on their way", len(w.flights))
		}
	})
}

// meet is connect for rapid.
func (w *world) meet(t *rapid.T) {
	for until := w.now.Add(50 * time.Second); w.hosts[1].Conn == nil || w.hosts[0].State() == Calling; {
		if !w.next(until) {
			t.Fatalf("no connection: %v", w.hosts[0].Err())
		}
	}
}

// TestOneDirectionDead cuts a direction, or both, in mid-transfer, for a while or for good:
// then all arrives, or both sides end.
func TestOneDirectionDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chance := core.Chance(rapid.Uint64().Draw(t, "seed"))
		cfg := Config{SendBuffer: 70_000, ReceiveBuffer: 70_000, LostAfter: 20 * time.Second, KeepAlive: time.Second}
		lan := func() *link { return &link{delay: time.Millisecond, rate: 1e6, queue: 50_000} }
		w, a, b := newWorld(cfg, cfg, lan(), lan())
		x := &transfer{send: noise(100_000, chance.Uint64()), closes: true}
		y := &transfer{send: noise(rapid.SampledFrom([]int{0, 1, 100_000}).Draw(t, "bytes back"), chance.Uint64()), closes: true}
		w.watch(t)
		w.meet(t)
		cut := w.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "cut after ms")) * time.Millisecond)
		for over := false; !over && w.next(cut); over = x.eof && y.eof {
			x.serve(t, w, a)
			y.serve(t, w, b)
		}
		which := rapid.SampledFrom([]string{"a to b", "b to a", "both"}).Draw(t, "cut")
		a.out.dead, b.out.dead = which != "b to a", which != "a to b"
		if rapid.Bool().Draw(t, "for good") {
			w.run(10 * time.Minute)
			for _, h := range w.hosts {
				isOver := h.send.done() && h.receive.finished()
				if !isOver && (h.State() != Ended || !errors.Is(h.Err(), ErrTimeout) && !errors.Is(h.Err(), ErrReset)) {
					t.Fatalf("%s is %v: %v", h.name, h.State(), h.Err())
				}
			}
			return
		}
		w.run(time.Duration(rapid.IntRange(1, 10_000).Draw(t, "for ms")) * time.Millisecond)
		a.out.dead, b.out.dead = false, false
		again := w.now
		w.share(t, time.Minute, x, y)
		if !bytes.Equal(x.got, y.send) || !bytes.Equal(y.got, x.send) {
			t.Fatalf("other bytes have arrived")
		}
		if d := w.now.Sub(again); d > 5*time.Second {
			t.Fatalf("the rest took %v", d)
		}
	})
}

// TestDeadPeer: who sends ends with ErrTimeout after LostAfter, and who asks for signs of
// life, too.
func TestDeadPeer(t *testing.T) {
	lan := func() *link { return &link{delay: time.Millisecond} }
	for name, cfg := range map[string]Config{
		"sends": {LostAfter: 3 * time.Second}, "keeps alive": {LostAfter: 2 * time.Second, KeepAlive: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b := newWorld(cfg, Config{}, lan(), lan())
			w.connect(t)
			w.run(100 * time.Millisecond)
			b.Conn, b.answers = nil, nil
			b.out.dead = true
			begin := w.now
			if name == "sends" {
				if _, err := a.Write([]byte("hello")); err != nil {
					t.Fatal(err)
				}
				w.step(a)
			}
			for w.next(begin.Add(time.Minute)) && a.State() != Ended {
			}
			if d := w.now.Sub(begin); !errors.Is(a.Err(), ErrTimeout) || d < 2900*time.Millisecond-200*time.Millisecond || d > 3100*time.Millisecond {
				t.Errorf("%v after %v", a.Err(), d)
			}
		})
	}
}

// TestForgottenPeer: a peer that has started anew says that it does not know the
// connection.
func TestForgottenPeer(t *testing.T) {
	w, a, b := newWorld(Config{}, Config{}, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	w.run(100 * time.Millisecond)
	b.Conn = nil
	if _, err := a.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	w.step(a)
	w.run(10 * time.Millisecond)
	if a.State() != Ended || !errors.Is(a.Err(), ErrReset) {
		t.Errorf("%v: %v", a.State(), a.Err())
	}
}

// TestClosedWindow: a window that opens is found out, although the news of it was lost and
// the peer asks for signs of life all the time.
func TestClosedWindow(t *testing.T) {
	w, a, b := newWorld(Config{KeepAlive: 50 * time.Millisecond}, Config{ReceiveBuffer: 5000, KeepAlive: 50 * time.Millisecond},
		&link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	x := &transfer{send: noise(20_000, 1), closes: true}
	x.serve(t, w, a)
	w.run(time.Second)
	b.out.dead = true
	if n, err := b.Read(make([]byte, 5000)); n != 5000 || err != nil {
		t.Fatal(n, err)
	}
	w.step(b)
	w.run(10 * time.Millisecond)
	b.out.dead = false
	y := &transfer{closes: true}
	w.share(t, time.Second, x, y)
}

// TestRepeatedAcknowledgement: one that comes late, because the first was lost, does not
// count as a long round trip.
func TestRepeatedAcknowledgement(t *testing.T) {
	w, a, b := newWorld(Config{}, Config{KeepAlive: 10 * time.Second}, &link{delay: time.Millisecond}, &link{delay: time.Millisecond})
	w.connect(t)
	w.run(100 * time.Millisecond)
	if _, err := a.Write(make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	w.step(a)
	w.run(2 * time.Millisecond)
	a.out.dead, b.out.dead = true, true
	w.run(9 * time.Second)
	b.out.dead = false
	b.receive.immediate = true
	w.step(b)
	w.run(10 * time.Millisecond)
	if s := a.Stats(); s.InFlight != 0 && s.RTT > 10*time.Millisecond {
		t.Errorf("%+v", s)
	}
	if a.rtt.smoothed > 10*time.Millisecond {
		t.Errorf("a round trip of %v", a.rtt.smoothed)
	}
}
