package rail

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

var errOver = errors.New("no rail is left")

// loseAll ends the session at both sides. Fragments that failed are reported before, as a driver
// does that has no path left, or after.
func (x *exchange) loseAll(areReported bool) {
	for i := range x.rails {
		if !x.rails[i].dead {
			x.cut(uint8(i), [2]fate{})
		}
	}
	for _, e := range append([]event(nil), x.events[x.first:]...) {
		if e.what == handled { // it was acknowledged
			x.happen(e)
		}
	}
	x.keep(func(e event) bool { return e.what == calls || e.what == errBack })
	x.delayed, x.last = nil, nil
	for side := range uint8(2) {
		for i := range x.rails {
			if x.rails[i].up[side] {
				x.down(side, uint8(i))
			}
		}
		if areReported {
			all := append([]event(nil), x.events[x.first:]...)
			x.keep(func(e event) bool { return e.what != errBack || e.side != side })
			for _, e := range all {
				if e.what == errBack && e.side == side {
					x.happen(e)
				}
			}
		}
		x.call(side, func(p *Peer, out *Output) { p.Fail(errOver, x.time, out) })
	}
	for i := range x.rails {
		x.raise(uint8(i))
	}
}

// TestSessions ends a session in the midst of random traffic. Every request is done; each
// message arrives at most once, in order, and once if its sender has a completion; the next
// session is as any other.
func TestSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExchange(t)
		x.minSize = 1
		x.drawTraffic(t)
		x.stop = rapid.IntRange(1, 150).Draw(t, "end")
		x.drawFailures(t)
		x.stop = 0
		x.keep(func(e event) bool { return e.what != calls })
		x.loseAll(rapid.Bool().Draw(t, "reported"))
		x.run()
		x.checkEnded()
		x.sent, x.posted, x.loads, x.stores, x.calls = [2][]*post{}, [2][]*post{}, nil, nil, 0
		x.done = [2][]Done{}
		for side := range x.regions {
			copy(x.regions[side], fill(regionSize, byte(40+side)))
		}
		x.drawTraffic(t)
		x.drawFailures(t)
		x.finish(t)
	})
}

// keep forgets the other events.
func (x *exchange) keep(is func(event) bool) {
	kept := x.events[x.first:x.first]
	for _, e := range x.events[x.first:] {
		if is(e) {
			kept = append(kept, e)
		}
	}
	x.events = x.events[:x.first+len(kept)]
}

// checkEnded checks the requests of a session that is over, and receives what has stayed of it.
func (x *exchange) checkEnded() {
	for side := range uint8(2) {
		for _, context := range []uint64{0, 16 << spaceShift} {
			for {
				e, ok := x.peers[side].Probe(context, 0, AnyTag)
				if !ok {
					break
				}
				x.receive(side, &post{context: context, ignore: AnyTag, room: int(e.Size)})
				x.run()
			}
		}
		if bytes, heads := x.peers[side].Held(); bytes != 0 || heads != 0 {
			x.fail("%d bytes in %d messages are held", bytes, heads)
		}
		if err := x.peers[side].isEmpty(); err != nil {
			x.fail("side %d: %v", side, err)
		}
	}
	for side := range uint8(2) {
		at := map[[2]uint64]int{} // by context and tag: the place of the last message
		arrived := map[byte]bool{}
		for _, r := range x.posted[side] {
			u := &r.outcome
			if u.times > 1 || u.times == 0 && r.request.state != 0 || u.times == 1 && u.err != nil && !errors.Is(u.err, errOver) {
				x.fail("side %d: a receive is done %d times, %v, %s", side, u.times, u.err, r.request.state)
			}
			if len(u.got) == 0 {
				continue
			}
			for i, m := range x.sent[1-side] {
				if m.bytes[0] != u.got[0] {
					continue
				}
				key := [2]uint64{m.context, m.tag}
				if arrived[u.got[0]] || !same(u.got, m.bytes) || m.tag != u.tag {
					x.fail("side %d: message %d arrives as % x of tag %d", side, i, u.got, u.tag)
				}
				if r.ignore == 0 && at[key] > i {
					x.fail("side %d: message %d arrives after %d", side, i, at[key])
				}
				arrived[u.got[0]], at[key] = true, max(i, at[key])
			}
		}
		for _, d := range x.done[1-side] {
			if d.Send == nil || d.Send.Handle != (Handle{}) {
				continue
			}
			if first := d.Send.User.(byte); d.Err == nil && !d.Send.Buffered && !arrived[first] {
				x.fail("side %d: a message with a completion has not arrived, % x", side, first)
			}
		}
	}
}

// TestCancel cancels requests at every event of an exchange. The other side's are done as well.
func TestCancel(t *testing.T) {
	cases := 0
	for _, c := range []Config{{Eager: 4, Fragment: 8}, {Eager: 4, Fragment: 8, PutFrom: 1}, {Eager: 4, Fragment: 8, GetFrom: 1}, {Eager: 32}} {
		for _, isSend := range []bool{true, false} {
			for at := range 60 {
				for rail := range 3 { // the third: none fails
					for _, fate := range []fate{lost, now, soon} {
						cases++
						cancelAt(t, c, isSend, at, rail, fate)
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

func cancelAt(t *testing.T, c Config, isSend bool, at, rail int, f fate) {
	w := newWorld(2, [2]Config{c, c}, func() scheduler { return &even{} }, nil)
	var lines []string
	w.trace = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var u, last outcome
	s := &SendRequest{Data: fill(20, 1)}
	r := &RecvRequest{Data: make([]byte, 20), User: &u}
	w.call(1, func(p *Peer, out *Output) { p.Recv(r, 0, out) })
	w.call(0, func(p *Peer, out *Output) { p.Send(s, 0, out) })
	w.after(at, event{what: calls, do: func() {
		w.log("cancel")
		if isSend {
			w.call(0, func(p *Peer, out *Output) { p.CancelSend(s, 0, out) })
		} else {
			w.call(1, func(p *Peer, out *Output) { p.CancelRecv(r, 0, out) })
		}
	}})
	if rail < 2 {
		w.run(failure{event: 4, rail: uint8(rail), fates: [2]fate{f, f}})
	} else {
		w.run()
	}
	// The message that nobody has taken is for another receive, and then there is room for more.
	if _, ok := w.peers[1].Probe(0, 0, AnyTag); ok && isSend {
		w.fail("a message is not matched")
	}
	if u.times == 0 { // cancelled before it was sent, or the message went elsewhere
		w.call(1, func(p *Peer, out *Output) { p.CancelRecv(r, 0, out) })
	}
	if !isSend && errors.Is(u.err, ErrCancelled) && len(w.done[0]) == 0 {
		w.call(1, func(p *Peer, out *Output) { p.Recv(&RecvRequest{Data: make([]byte, 20), User: &last}, 0, out) })
		w.run()
	}
	w.run()
	if u.times != 1 || len(w.done[0]) != 1 {
		w.fail("the receive is done %d times, %d sends are done", u.times, len(w.done[0]))
	} else if err := w.done[0][0].Err; err != nil && !errors.Is(err, ErrCancelled) {
		w.fail("the send: %v", err)
	} else if err == nil && u.err == nil && !same(u.got, fill(20, 1)) {
		w.fail("received: % x", u.got)
	} else if u.err != nil && !errors.Is(u.err, ErrCancelled) && !errors.Is(u.err, ErrWithdrawn) {
		w.fail("the receive: %v", u.err)
	}
	for side, p := range w.peers {
		if err := p.isEmpty(); err != nil && !(isSend == false && last.times == 0 && side == 1) {
			w.fail("side %d: %v", side, err)
		}
	}
	if w.err != nil {
		for _, line := range lines {
			t.Log(line)
		}
		t.Fatalf("%+v, send %v, event %d, rail %d: %v", c, isSend, at, rail, w.err)
	}
}

// TestFirst: messages that nobody receives do not keep those that go First from going on; and of
// these, those that a receive waits for come past those that are received later, up to a bound.
func TestFirst(t *testing.T) {
	const heads = 8
	c := Config{MaxHeads: heads}
	w := newWorld(1, [2]Config{c, c}, func() scheduler { return &even{} }, nil)
	w.most = 1 << 20
	send := func(context, tag uint64) {
		w.call(0, func(p *Peer, out *Output) {
			p.Send(&SendRequest{Context: context, Tag: tag, First: context > 0}, 0, out)
		})
	}
	receive := func(tag uint64) bool {
		before := len(w.done[1])
		r := &RecvRequest{Context: 1, Tag: tag, First: true}
		w.call(1, func(p *Peer, out *Output) { p.Recv(r, 0, out) })
		w.run()
		return len(w.done[1]) == before+1 && w.done[1][before].Recv == r && w.done[1][before].Err == nil
	}
	for range 10 * heads {
		send(0, 1)
	}
	for tag := range uint64(20 * heads) {
		if send(1, tag); !receive(tag) {
			t.Fatalf("message %d waits for those that nobody receives", tag)
		}
	}
	if _, held := w.peers[1].Held(); held != heads {
		t.Errorf("%d messages are held, want %d", held, heads)
	}
	for range 5 * heads {
		send(1, 1000)
	}
	if send(1, 1001); !receive(1001) {
		t.Error("a message is not received, for which a receive waits")
	}
	for range 5 * heads {
		if !receive(1000) {
			t.Fatal("a message that was passed is gone")
		}
	}
	for range 100 * heads {
		send(1, 1000)
	}
	if receive(1002) {
		t.Error("a message is received that nobody has sent")
	}
	if _, held := w.peers[1].Held(); held != (1+mostLent)*heads+heads/4 {
		t.Errorf("%d messages are held, want %d", held, (1+mostLent)*heads+heads/4)
	}
	if w.err != nil {
		t.Error(w.err)
	}
}

// TestCreditBinds: another side that sends more than it may, or acknowledges nothing, is refused
// before it fills this one's memory.
func TestCreditBinds(t *testing.T) {
	region := fill(32, 1)
	for _, test := range []struct {
		kind kind
		key  uint64
		most int
	}{{kindMatch, 0, 10}, {kindRndv, 0, 10}, {kindRget, 0, 10}, {kindLoad, 77, 10}, {kindStore, 77, 10}, {kindLoad, 78, maxReplies + 1}, {kindStore, 78, maxReplies + 1}, {kindNotify, 0, maxReplies + 1}} {
		var memory Memory
		memory.Register(MayRead|MayWrite, 77, region)
		p, err := New(Config{MaxUnexpected: 1 << 10, MaxHeads: 8, Regions: &memory})
		if err != nil {
			t.Fatal(err)
		}
		var out Output
		for class := range classes {
			p.PathUp(0, class, 1, 0, 0, &out)
		}
		n := 0
		for ; err == nil; n++ {
			h := head{kind: test.kind}
			for _, f := range layouts[test.kind].fields {
				h.words[f] = map[field]uint64{fieldSequence: uint64(uint32(n)), fieldSize: 16, fieldSending: 1, fieldReceiving: uint64(n + 1), fieldRegion: 1, fieldKey: test.key, fieldRestart: uint64(n)}[f]
				if f == fieldRestart && test.kind != kindNotify || f == fieldReceiving && (test.kind == kindRndv || test.kind == kindRget || test.kind == kindStore) {
					h.words[f] = 0
				}
			}
			out.Reset()
			err = p.Arrived(0, Message, h.append(nil), 0, &out)
			if n > 2*maxReplies {
				t.Fatalf("%s: there is no end to it", test.kind)
			}
		}
		if !errors.Is(err, ErrMalformed) || n-1 > test.most {
			t.Errorf("%s with key %d: refused after %d: %v", test.kind, test.key, n-1, err)
		}
	}
}
