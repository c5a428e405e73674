package peer

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// callAs greets as another host and returns the connection once it is accepted.
func callAs(t testing.TB, h *Host, g greeting.Greeting) net.Conn {
	t.Helper()
	conn := dialRaw(t, h.Addr())
	if _, err := conn.Write(g.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if a, err := greeting.ReadAnswer(conn); err != nil || a.Code != greeting.Accept {
		t.Fatalf("%+v, %v", a, err)
	}
	return conn
}

// TestReplacedBeforeItBegan: a connection whose next call replaces it in the same step in
// which it is accepted is answered, then notified that nothing more comes.
func TestReplacedBeforeItBegan(t *testing.T) {
	a, _ := newTown().settle(t, "a", 1, nil)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	p := a.newPath(peering.ID(a.number()))
	p.connected(ours)
	a.enter(p)
	p.apply(&peering.Action{Do: peering.Accept, ID: p.id, Peer: "b", Class: uint8(Control), Incarnation: 1})
	c := a.conn(p.id)
	c.apply(&peering.Action{Do: peering.Drain, ID: p.id, Err: peering.ErrSuperseded}, nil)
	c.apply(&peering.Action{Do: peering.Ping, ID: p.id}, nil)
	if !a.tasks.Go(p.answer) {
		t.Fatal("closed")
	}
	if _, err := theirs.Write((&greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 1}).Append(nil)); err != nil {
		t.Fatal(err)
	}
	if answer, err := greeting.ReadAnswer(theirs); err != nil || answer.Code != greeting.Accept {
		t.Fatalf("%+v, %v", answer, err)
	}
	var frame [HeadSize + align]byte
	if _, err := io.ReadFull(theirs, frame[:]); err != nil || frame[3] != 1 || frame[HeadSize] != goaway {
		t.Fatalf("%v, %v", frame, err)
	}
}

// TestCallsInOneBurst: a host that calls again and again, and does not wait for answers,
// has one connection in the end.
func TestCallsInOneBurst(t *testing.T) {
	a, _ := newTown().settle(t, "a", 1, nil)
	const calls = 64
	for round := range 8 {
		conns := make([]net.Conn, calls)
		for i := range conns {
			conns[i] = dialRaw(t, a.Addr())
		}
		for i, conn := range conns {
			g := greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: uint64(round*calls + i + 1)}
			if _, err := conn.Write(g.Append(nil)); err != nil {
				t.Fatal(err)
			}
		}
		for _, conn := range conns {
			if answer, err := greeting.ReadAnswer(conn); err == nil && answer.Code != greeting.Accept && answer.Code != greeting.Duplicate {
				t.Fatalf("%+v", answer)
			}
			conn.Close()
		}
	}
}

// TestGoesOnBeforeAnAnswer: what comes with a greeting is no frame.
func TestGoesOnBeforeAnAnswer(t *testing.T) {
	a, seen := newTown().settle(t, "a", 1, nil)
	conn := dialRaw(t, a.Addr())
	g := greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 1}
	if _, err := conn.Write(appendFrame(g.Append(nil), testService, 0, []byte("early"), nil)); err != nil {
		t.Fatal(err)
	}
	answer, err := greeting.ReadAnswer(conn)
	if err != nil || answer.Code != greeting.Refuse || !strings.Contains(answer.Reason, "before there is an answer") {
		t.Errorf("%+v, %v", answer, err)
	}
	if n := len(seen.frames()); n != 0 {
		t.Errorf("%d frames", n)
	}
}

// TestPingsAreNotHoarded: who asks without end and reads nothing has one answer waiting.
func TestPingsAreNotHoarded(t *testing.T) {
	a, seen := newTown().settle(t, "a", 1, nil)
	conn := callAs(t, a, greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 1})
	await(t, "the connection", func() bool { return len(seen.ups()) == 1 })
	c := seen.conns[0].all()[0]
	c.channel.mu.Lock()
	c.isBusy = true // its writer waits for who reads nothing
	c.channel.mu.Unlock()
	var pings []byte
	for range 1000 {
		pings = appendFrame(pings, itself, 0, []byte{ping}, nil)
	}
	pings = appendFrame(pings, testService, 0, []byte("last"), nil)
	if _, err := conn.Write(pings); err != nil {
		t.Fatal(err)
	}
	await(t, "the pings", func() bool { return len(seen.frames()) == 1 })
	c.channel.mu.Lock()
	waits := len(c.queue.out.b)
	c.isBusy = false
	c.channel.mu.Unlock()
	if waits != padded(1) {
		t.Errorf("%d bytes of answers wait", waits)
	}
}

// TestAbsencesAreNotHoarded: who sends to a service that is not there without end, and
// reads nothing, has few answers waiting.
func TestAbsencesAreNotHoarded(t *testing.T) {
	a, seen := newTown().settle(t, "a", 1, nil)
	conn := callAs(t, a, greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 1})
	await(t, "the connection", func() bool { return len(seen.ups()) == 1 })
	c := seen.conns[0].all()[0]
	c.channel.mu.Lock()
	c.isBusy = true // its writer waits for who reads nothing
	c.channel.mu.Unlock()
	const times = 2 * answersMost / HeadSize
	var frames []byte
	for range times {
		frames = appendFrame(frames, Membership, 0, nil, nil)
		frames = appendFrame(frames, testService, 0, nil, nil)
	}
	if _, err := conn.Write(frames); err != nil {
		t.Fatal(err)
	}
	await(t, "the frames", func() bool { return a.Counters().Nobodys == times && len(seen.frames()) == times })
	c.channel.mu.Lock()
	waits := len(c.queue.out.b)
	c.isBusy = false
	c.channel.mu.Unlock()
	if waits == 0 || waits > answersMost+padded(2) {
		t.Errorf("%d bytes of answers wait", waits)
	}
}

// talker is a service that sends to who is reported.
type talker struct {
	witness
	host    *Host
	reports atomic.Int32
}

func (s *talker) Sent(numbers []uint64, err error) {
	if s.reports.Add(1) == 1 {
		l := s.host.Channel("b", Control)
		_ = l.Send(&Send{Service: Communicators, Body: []byte("next")})
		l.Flush(Communicators, nil)
	}
}

// TestSentMaySend: a service that is notified, within another's Flush, that its frames are
// sent, may send on the same channel.
func TestSentMaySend(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	_, there := w.settle(t, "b", 1, nil)
	send(t, a, "b", Control, 0, "first", 0)
	await(t, "the connection", func() bool { return len(there.frames()) == 1 && len(seen.ups()) == 1 })
	other := &talker{host: a}
	if err := a.Register(Communicators, other); err != nil {
		t.Fatal(err)
	}
	if err := a.Channel("b", Control).Send(&Send{Service: Communicators, Body: []byte("one"), Number: 7}); err != nil {
		t.Fatal(err)
	}
	send(t, a, "b", Control, 0, "second", 8)
	await(t, "both to be notified", func() bool { _, ok := seen.outcome(8); return ok && other.reports.Load() == 1 })
}

// TestLargeWithoutNumberIsCopied: of class Large, too, the payload is both parts, and who
// is notified, nothing may use its memory again.
func TestLargeWithoutNumberIsCopied(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, nil)
	_, there := w.settle(t, "b", 1, nil)
	l := a.Channel("b", Large)
	head, body := []byte("he"), []byte("llo")
	if err := l.Send(&Send{Service: testService, Stream: 2, Head: head, Body: body}); err != nil {
		t.Fatal(err)
	}
	copy(head, "xx")
	copy(body, "xxx")
	l.Flush(testService, nil)
	await(t, "the frame", func() bool { return len(there.frames()) == 1 })
	if got := there.frames()[0]; got != "a 2/2 hello" {
		t.Error(got)
	}
}

// TestNamesThatCannotBe: nobody is called by a name that no greeting has room for.
func TestNamesThatCannotBe(t *testing.T) {
	a, seen := newTown().settle(t, "a", 1, func(c *Config) {
		c.Resolve = func(context.Context, string) (string, error) { return "127.0.0.1:1", nil }
	})
	for i, name := range []string{"", strings.Repeat("x", 256), strings.Repeat("x", 70_000)} {
		number := uint64(i + 1)
		send(t, a, name, Control, 0, "x", number)
		await(t, "what becomes of it", func() bool { _, ok := seen.outcome(number); return ok })
		if err, _ := seen.outcome(number); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("a name of %d bytes: %.80v", len(name), err)
		}
	}
}

// TestRefusedDoNotLinger: who is refused holds a bounded number of places, too, though
// it never reads why.
func TestRefusedDoNotLinger(t *testing.T) {
	a, _ := newTown().settle(t, "a", 1, func(c *Config) { c.GreetWithin = time.Hour })
	const callers = 2 * refusedMost
	for i := range callers {
		conn := dialRaw(t, a.Addr())
		if _, err := conn.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		await(t, "the refusal", func() bool { return a.Counters().Malformed == uint64(i+1) })
	}
	await(t, "the others to be closed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.conns) <= refusedMost
	})
}

// TestStrangersHaveNoMemory: who has begun to shake hands under TLS, and says no more, has
// no buffer.
func TestStrangersHaveNoMemory(t *testing.T) {
	all := sources(t, "a")
	a, _ := newTown().settle(t, "a", 1, func(c *Config) { c.TLS = all["a"]; c.GreetWithin = time.Hour })
	conn := dialRaw(t, a.Addr())
	if _, err := conn.Write([]byte{handshake, 3, 1, 1, 0, 1}); err != nil {
		t.Fatal(err)
	}
	s := &seal{Conn: conn, early: []byte{handshake}}
	var b [64]byte
	if n, err := s.Read(b[:]); n != 1 || err != nil || s.in != nil || b[0] != handshake {
		t.Fatalf("%d, %v, %v", n, err, s.in != nil)
	}
}

// TestIncarnationsFarAhead: who has had a host's certificate cannot keep the host's next life out by an
// incarnation that it will never reach.
func TestIncarnationsFarAhead(t *testing.T) {
	at := func(ahead time.Duration) uint64 { return uint64(time.Now().Add(ahead).UnixNano()) }
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, seen := w.settle(t, "a", at(0), trust("a"))
		fails := func(from *Host, of *witness, to string) {
			t.Helper()
			send(t, from, to, Control, 0, "x", 1)
			await(t, "what becomes of it", func() bool { _, ok := of.outcome(1); return ok })
			if err, _ := of.outcome(1); err == nil || !strings.Contains(err.Error(), "ahead of the clock") {
				t.Errorf("%s to %s: %v", from.Name(), to, err)
			}
		}
		thief, theirs := w.settle(t, "b", at(25*time.Hour), trust("b"))
		fails(thief, theirs, "a")
		fails(a, seen, "b")
		for number, ahead := range []time.Duration{0, 23 * time.Hour} {
			t.Run(ahead.String(), func(t *testing.T) {
				b, _ := w.settle(t, "b", at(ahead), trust("b"))
				send(t, b, "a", Control, 0, "y", 1)
				await(t, "its frame", func() bool { return len(seen.frames()) == number+1 })
			})
		}
	})
}
