package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// outcomes returns what was reported of numbers.
func (w *witness) outcomes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reported
}

// TestAnchorLostIsReported: what was sent before there were several paths is reported, and its
// memory given back, where the first path is lost before the other side has confirmed that.
func TestAnchorLostIsReported(t *testing.T) {
	for _, class := range []Class{Data, Large} {
		t.Run(fmt.Sprint(class), func(t *testing.T) {
			w := newTown()
			out, in := newLedger(), &slowLedger{newLedger(), make(chan struct{})}
			defer close(in.permits)
			settle := func(name string, at byte, l Handler) *Host {
				h, _ := w.settle(t, name, 1, func(c *Config) {
					withRails(at, 1)(c)
					c.Handlers = map[Service]Handler{testService: l}
				})
				return h
			}
			a, b := settle("a", 1, out), settle("b", 2, in)
			l := a.Channel("b", class)
			times, size := uint64(40), 1<<20
			if class == Data {
				times, size = 600, 60<<10
			}
			for i := range times {
				if err := l.Send(&Send{Service: testService, Body: numbered(i, size), Number: i + 1}); err != nil {
					t.Fatal(err)
				}
				out.Sent(l.Flush(testService, nil), nil)
			}
			for at, h := range []*Host{a, b} {
				if err := h.SetRails(t.Context(), railsOf(byte(at+1), 2)); err != nil {
					t.Fatal(err)
				}
			}
			await(t, "the second path", func() bool { return len(pathsOf(a, "b", class)) == 2 })
			pathsOf(a, "b", class)[0].raw.Close()
			await(t, "the end", func() bool { return len(out.downs()) > 0 })
			await(t, "all reports", func() bool { return out.outcomes() == int(times) })
		})
	}
}

// TestSetRailsAfterClose: a host that is closed listens nowhere any more.
func TestSetRailsAfterClose(t *testing.T) {
	h, _ := newTown().settle(t, "a", 1, withRails(1, 1))
	h.rails.close() // Close comes no further for now
	if err := h.SetRails(t.Context(), railsOf(1, 2)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if err := h.SetRails(t.Context(), railsOf(1, 2)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// deadRail has rail 1 swallow what is written, while neither side sees an end.
type deadRail struct {
	isOn atomic.Bool
	mu   sync.Mutex
	open []net.Conn
}

type deadConn struct {
	net.Conn
	r *deadRail
}

func (c deadConn) Write(b []byte) (int, error) {
	if c.r.isOn.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c deadConn) Close() error {
	if c.r.isOn.Load() {
		return c.SetReadDeadline(time.Unix(1, 0))
	}
	return c.Conn.Close()
}

func (r *deadRail) wrap(c net.Conn) net.Conn {
	r.mu.Lock()
	r.open = append(r.open, c)
	r.mu.Unlock()
	if local, remote := addressOf(c.LocalAddr()).As4(), addressOf(c.RemoteAddr()).As4(); local[1] == 2 || remote[1] == 2 {
		return deadConn{c, r}
	}
	return c
}

// newDeadRail returns one whose connections are closed when the test ends.
func newDeadRail(t *testing.T) *deadRail {
	r := &deadRail{}
	t.Cleanup(func() {
		r.isOn.Store(false)
		for _, c := range r.open {
			_ = c.Close() // most are closed
		}
	})
	return r
}

// settleBoth makes hosts a and b with two rails each.
func settleBoth(t *testing.T, w *town, wrap func(net.Conn) net.Conn, handlers [2]Handler) (a, b *Host) {
	var hosts [2]*Host
	for i, name := range []string{"a", "b"} {
		hosts[i], _ = w.settle(t, name, 1, func(c *Config) {
			withRails(byte(i+1), 2)(c)
			c.Wrap = wrap
			c.Handlers = map[Service]Handler{testService: handlers[i]}
		})
	}
	return hosts[0], hosts[1]
}

// say sends a frame, whatever service there is.
func say(t *testing.T, h *Host, to string) {
	t.Helper()
	l := h.Channel(to, Control)
	if err := l.Send(&Send{Service: testService, Body: []byte("12345678")}); err != nil {
		t.Fatal(err)
	}
	l.Flush(testService, nil)
}

// on returns the path on a rail of the host's own.
func on(all []*Path, rail string) *Path {
	for _, p := range all {
		if r := p.Rails(); r != nil && r.Own.Name == rail {
			return p
		}
	}
	return nil
}

// TestAnswerOfADeadPath: a side whose path has ended unseen by the other one, and cannot be made
// again, says so when it is asked, whichever of the two decides.
func TestAnswerOfADeadPath(t *testing.T) {
	for _, caller := range []string{"a", "b"} {
		t.Run(caller, func(t *testing.T) {
			w, dead := newTown(), newDeadRail(t)
			a, b := settleBoth(t, w, dead.wrap, [2]Handler{newLedger(), newLedger()})
			from, to := a, "b"
			if caller == "b" {
				from, to = b, "a"
			}
			say(t, from, to)
			await(t, "both paths", func() bool { return isWhole(a, "b", Control, 2) && isWhole(b, "a", Control, 2) })
			dead.isOn.Store(true)
			lost := on(pathsOf(b, "a", Control), "rail1")
			on(pathsOf(a, "b", Control), "rail1").close(errors.New("a reset that this side alone has seen"))
			for range 3 {
				say(t, b, "a")
			}
			await(t, "the end of the path at the other side", func() bool { return lost.reason.Load() != nil })
		})
	}
}

// swallower is a connection that swallows what is written, and counts it.
type swallower struct {
	net.Conn
	writes *atomic.Int32
}

func (c swallower) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return len(b), nil
}

// TestAnswerNeverArrives: a rail carries the call for a further path, and not the answer. The host
// that was called sends nothing on it.
func TestAnswerNeverArrives(t *testing.T) {
	w, in := newTown(), newLedger()
	var answers atomic.Int32
	a, _ := w.settle(t, "a", 1, func(c *Config) {
		withRails(1, 2)(c)
		c.GreetWithin = time.Hour
		c.Handlers = map[Service]Handler{testService: in}
	})
	b, _ := w.settle(t, "b", 1, func(c *Config) {
		withRails(2, 2)(c)
		c.Wrap = func(raw net.Conn) net.Conn {
			if addressOf(raw.LocalAddr()).As4()[1] == 2 {
				return swallower{raw, &answers}
			}
			return raw
		}
	})
	say(t, a, "b")
	await(t, "the answer", func() bool { return answers.Load() > 0 })
	const frames = 300
	for i := range uint64(frames) {
		l := b.Channel("a", Control)
		if err := l.Send(&Send{Service: testService, Body: numbered(i, 1000)}); err != nil {
			t.Fatal(err)
		}
		l.Flush(testService, nil)
	}
	await(t, "all frames", func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return in.next["b 0"] == frames
	})
	if n := answers.Load(); n != 1 {
		t.Errorf("%d writes on the rail, want the answer alone", n)
	}
}

// TestProvedPathStays: a path on which something has come after the answer outlives the time in
// which that has to come.
func TestProvedPathStays(t *testing.T) {
	const within = 200 * time.Millisecond
	w := newTown()
	var hosts [2]*Host
	for i, name := range []string{"a", "b"} {
		hosts[i], _ = w.settle(t, name, 1, func(c *Config) {
			withRails(byte(i+1), 2)(c)
			c.GreetWithin = within
			c.Handlers = map[Service]Handler{testService: newLedger()}
		})
	}
	say(t, hosts[0], "b")
	await(t, "both paths", func() bool { return isWhole(hosts[0], "b", Control, 2) && isWhole(hosts[1], "a", Control, 2) })
	before := pathsOf(hosts[1], "a", Control)
	l := hosts[0].Channel("b", Control)
	for end := time.Now().Add(4 * within); time.Now().Before(end); {
		if err := l.Send(&Send{Service: testService, Body: []byte("12345678")}); err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		l.Flush(testService, nil)
	}
	for _, p := range before {
		if r := p.reason.Load(); r != nil {
			t.Error(*r)
		}
	}
}

// TestLoseRailUnderLoad: the loss of a rail is said, however much waits on the others.
func TestLoseRailUnderLoad(t *testing.T) {
	w, dead := newTown(), newDeadRail(t)
	in := newLedger()
	a, b := settleBoth(t, w, dead.wrap, [2]Handler{in, newLedger()})
	put := func(h *Host, to string, n uint64) {
		l := h.Channel(to, Large)
		if err := l.Send(&Send{Service: testService, Body: numbered(n, 1<<20)}); err != nil {
			t.Fatal(err)
		}
		l.Flush(testService, nil)
	}
	put(a, "b", 0)
	await(t, "both paths", func() bool { return isWhole(a, "b", Large, 2) && isWhole(b, "a", Large, 2) })
	other := on(pathsOf(a, "b", Large), "rail0")
	other.channel.mu.Lock()
	other.isReady = false // as if the kernel took nothing for a moment
	other.channel.mu.Unlock()
	const times = 60
	for i := range uint64(times) {
		put(a, "b", i+1)
	}
	dead.isOn.Store(true)
	a.LoseRail("rail1", errors.New("no carrier"))
	other.channel.mu.Lock()
	other.isReady = true
	other.channel.mu.Unlock()
	other.Flush()
	for i := range uint64(times) {
		put(b, "a", i)
	}
	await(t, "all frames of the other side", func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return in.next["b 2"] == times
	})
}

// TestEarlyAcknowledgement: what is acknowledged before it was written is not reported, and ends
// the connection: the memory of what waits is the service's no sooner than that.
func TestEarlyAcknowledgement(t *testing.T) {
	out := newPathWitness()
	h, _ := newTown().settle(t, "a", 1, func(c *Config) { c.Handlers[Messages] = out })
	conn := callAs(t, h, greeting.Greeting{Class: uint8(Fragment), From: "b", Incarnation: 1, To: "a", Call: 1})
	defer conn.Close()
	await(t, "the path", func() bool { return len(out.up(Fragment)) == 1 })
	p, body := out.up(Fragment)[0], make([]byte, 1<<20)
	const times = 16 // more than the sockets hold: nobody reads
	for n := range uint64(times) {
		if err := p.Send(&Send{Service: Messages, Body: body, Number: n + 1}); err != nil {
			t.Fatal(err)
		}
		p.Flush()
	}
	var b [ackSize]byte
	b[0] = ack
	binary.BigEndian.PutUint32(b[4:], times)
	if _, err := conn.Write(appendFrame(nil, itself, 0, b[:], nil)); err != nil {
		t.Fatal(err)
	}
	await(t, "the last report", func() bool { _, ok := out.outcome(times); return ok })
	if err, _ := out.outcome(times); err == nil {
		t.Error("the last frame is reported as sent")
	}
	if why := *p.reason.Load(); !errors.Is(why, ErrFrame) {
		t.Error(why)
	}
}

// TestMalformedSegment: a malformed segment ends the connection, not its path alone: what of its
// frames was handed on is not known any more.
func TestMalformedSegment(t *testing.T) {
	a, seen := newTown().settle(t, "a", 1, nil)
	first := callAs(t, a, greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 1})
	defer first.Close()
	await(t, "the connection", func() bool { return len(seen.ups()) == 1 })
	second := callAs(t, a, greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 2, Path: 2, Joins: 1})
	defer second.Close()
	segmentOf := func(number uint64, payload []byte) []byte {
		return appendFrame(nil, segments, 0, binary.BigEndian.AppendUint64(nil, number), payload)
	}
	whole := appendFrame(nil, testService, 0, []byte("12345678"), nil)
	bad := appendFrame(nil, itself, 0, make([]byte, 60<<10), nil)
	if _, err := second.Write(append(segmentOf(1, whole[:12]), segmentOf(2, append(whole[12:len(whole):len(whole)], bad...))...)); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the connection", func() bool { return len(seen.downs()) == 1 })
	if n := len(seen.frames()); n > 1 {
		t.Errorf("%d frames", n)
	}
}

// listOf is the frame of a list of rails.
func listOf(version uint32, list []rail.Rail) []byte {
	var head [listHead]byte
	head[0] = railList
	binary.BigEndian.PutUint32(head[4:], version)
	return appendFrame(nil, itself, 0, head[:], rail.Append(nil, list))
}

// TestNeverAcknowledged: connections that are given up end in time, though the other side never
// acknowledges what was sent on them.
func TestNeverAcknowledged(t *testing.T) {
	a, seen := newTown().settle(t, "a", 1, func(c *Config) {
		withRails(1, 2)(c)
		c.GreetWithin, c.DeadAfter = 200*time.Millisecond, 200*time.Millisecond
	})
	list := []rail.Rail{railsOf(9, 2)[0].Rail, railsOf(9, 2)[1].Rail}
	for k := range list {
		list[k].Address = netip.AddrPortFrom(list[k].Address.Addr(), 7)
	}
	for i := range 20 {
		conn := callAs(t, a, greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: uint64(i + 1)})
		defer conn.Close()
		await(t, "the connection", func() bool { return len(seen.ups()) == i+1 })
		if _, err := conn.Write(listOf(1, list)); err != nil {
			t.Fatal(err)
		}
		c := copied(&seen.mu, &seen.conns)[i]
		await(t, "the stripe", func() bool {
			c.channel.mu.Lock()
			defer c.channel.mu.Unlock()
			return c.stripe != nil || c.isOver
		})
		send(t, a, "b", Control, 0, "x", 0)
	}
	await(t, "the end of all but the last", func() bool { return a.Counters().Open <= 1 })
}

// TestSlotOfALatePath: a path that is added while those that it replaces are still there gets the
// place of one of them.
func TestSlotOfALatePath(t *testing.T) {
	c := &Conn{stripe: &stripe{}}
	var all []*Path
	for range rail.MaxRails + 1 {
		p := &Path{conn: c}
		all = append(all, p)
		c.stripe.add(p)
	}
	for i, p := range all[:rail.MaxRails] {
		c.setPaths(all[i+1:])
		c.stripe.remove(c, p)
	}
	if i, ok := c.stripe.rails.Choose(100, 1); !ok || c.stripe.paths[i] != all[rail.MaxRails] {
		t.Error("there is a path, and it is not chosen")
	}
}

// TestPlaceOfTheLastPath: a pair that is added where the last path lies on one that is no more
// is called, and then that path is closed.
func TestPlaceOfTheLastPath(t *testing.T) {
	w, dead := newTown(), newDeadRail(t)
	rails := func(side int) []Rail {
		all := railsOf(byte(side+1), 3)
		all[2].Kind = rail.TCP
		return all
	}
	var hosts [2]*Host
	for i, name := range []string{"a", "b"} {
		hosts[i], _ = w.settle(t, name, 1, func(c *Config) {
			c.Rails = rails(i)[:2]
			c.Listen = c.Rails[0].Address.String()
			c.Wrap = dead.wrap
		})
	}
	dead.isOn.Store(true) // rail 1 carries nothing
	a := hosts[0]
	send(t, a, "b", Control, 0, "x", 0)
	await(t, "a path", func() bool { return isWhole(a, "b", Control, 1) })
	for _, which := range [][2]int{{1, 2}, {1, 3}} {
		for i, h := range hosts {
			if err := h.SetRails(t.Context(), rails(i)[which[0]:which[1]]); err != nil {
				t.Fatal(err)
			}
		}
		await(t, "both lists", func() bool {
			c := pathsOf(a, "b", Control)[0].conn
			c.rails.mu.Lock()
			defer c.rails.mu.Unlock()
			return len(c.rails.theirs) == which[1]-which[0]
		})
	}
	await(t, "a path on the new pair, and no other", func() bool {
		all := pathsOf(a, "b", Control)
		return len(all) == 1 && on(all, "rail2") != nil
	})
}

// TestBothRemoveRails: each host removes another rail, at once: the connection stays.
func TestBothRemoveRails(t *testing.T) {
	for range 10 {
		w := newTown()
		out, in := newLedger(), newLedger()
		a, b := settleBoth(t, w, nil, [2]Handler{out, in})
		say(t, a, "b")
		await(t, "both paths", func() bool { return isWhole(a, "b", Control, 2) && isWhole(b, "a", Control, 2) })
		var both sync.WaitGroup
		both.Go(func() { _ = a.SetRails(t.Context(), railsOf(1, 2)[1:]) })
		both.Go(func() { _ = b.SetRails(t.Context(), railsOf(2, 2)[:1]) })
		both.Wait()
		await(t, "one path", func() bool { return len(pathsOf(a, "b", Control)) == 1 && len(pathsOf(b, "a", Control)) == 1 })
		if d := append(out.downs(), in.downs()...); len(d) > 0 {
			t.Fatalf("the connection has ended: %v", d)
		}
		for _, h := range []*Host{a, b} {
			for _, r := range first(h.Status()) {
				if r.Lost != 0 {
					t.Errorf("%s: %s has lost %d paths: %v", h.cfg.Name, r.Rail.Name, r.Lost, r.Fault)
				}
			}
		}
	}
}

// TestUnusedRail: a rail that joins none of the peer's, while others do, is reported.
func TestUnusedRail(t *testing.T) {
	w := newTown()
	var hosts [2]*Host
	for i, name := range []string{"a", "b"} {
		hosts[i], _ = w.settle(t, name, 1, func(c *Config) {
			withRails(byte(i+1), 2)(c)
			c.Rails[1].Kind = rail.Kind(i)
		})
	}
	a, b := hosts[0], hosts[1]
	say(t, a, "b")
	for _, h := range []*Host{a, b} {
		await(t, "the fault of the second rail", func() bool { return errors.Is(first(h.Status())[1].Fault, errUnpaired) })
		if r := first(h.Status())[0]; r.Fault != nil || r.Paths != 1 {
			t.Errorf("%s: %+v", h.cfg.Name, r)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// TestRailsOwnPort: a rail at the host's address with another port than the host's is served there.
func TestRailsOwnPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(free.Addr().String())
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	h, _ := newTown().settle(t, "a", 1, nil)
	if err := h.SetRails(t.Context(), []Rail{{Rail: rail.Rail{Name: "r", Address: at}}}); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("tcp", at.String()); err != nil {
		t.Error(err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	if r := first(h.Status()); len(r) != 1 || r[0].Rail.Address != at {
		t.Errorf("%+v", r)
	}
}
