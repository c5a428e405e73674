package rail

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestEndSpace: two sides end a space at any event of random traffic over failing rails. All
// its requests are done, once; nothing of it is left; and what is in the other one matches as
// if there were no other.
func TestEndSpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExchange(t)
		x.drawTraffic(t)
		for side := range uint8(2) {
			x.after(rapid.IntRange(0, 80).Draw(t, "end"), event{what: calls, side: side, do: func() { x.endSpace(side) }})
		}
		x.drawFailures(t)
		for side := range uint8(2) {
			x.endSpace(side)
		}
		x.run()
		x.finish(t)
	})
}

// TestEndWithoutPath: a space ends when all paths are down, at any event of random traffic. Its
// requests are done at once, none waits for a path; when there is one again, what is in the other
// space goes on.
func TestEndWithoutPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newExchange(t)
		x.drawTraffic(t)
		x.stop = rapid.IntRange(1, 150).Draw(t, "end")
		x.drawFailures(t)
		x.stop = 0
		for i := range x.rails {
			for side := range uint8(2) {
				if x.rails[i].up[side] {
					x.down(side, uint8(i))
				}
			}
		}
		for _, e := range x.events[x.first:] {
			if e.what == errBack {
				x.happen(e)
			}
		}
		x.keep(func(e event) bool { return e.what != errBack })
		for side := range uint8(2) {
			x.endSpace(side)
			for _, s := range x.peers[side].underway() {
				if SpaceOf(s.Context) == 16 {
					x.fail("side %d: a send is %s", side, s.state)
				}
			}
		}
		for i := range x.rails {
			x.raise(uint8(i))
		}
		x.run()
		x.finish(t)
	})
}

// TestCancelOfFin: a message whose end is lost with the only path can be cancelled.
func TestCancelOfFin(t *testing.T) {
	c := Config{Eager: 4, Fragment: 8, PutFrom: 1}
	w := newWorld(1, [2]Config{c, c}, func() scheduler { return &even{} }, nil)
	s := &SendRequest{Data: fill(20, 1)}
	var u outcome
	w.call(1, func(p *Peer, out *Output) { p.Recv(&RecvRequest{Data: make([]byte, 20), User: &u}, 0, out) })
	w.call(0, func(p *Peer, out *Output) { p.Send(s, 0, out) })
	for s.state != finishing {
		w.stop++
		w.run()
	}
	w.down(0, 0)
	w.call(0, func(p *Peer, out *Output) { p.CancelSend(s, 0, out) })
	if len(w.done[0]) != 1 || !errors.Is(w.done[0][0].Err, ErrCancelled) {
		t.Fatalf("%+v", w.done[0])
	}
	w.stop = 0
	if w.run(); u.times != 1 || u.err != nil || !same(u.got, fill(20, 1)) {
		t.Errorf("%+v", u)
	}
	for side, p := range w.peers {
		if err := p.isEmpty(); err != nil {
			t.Errorf("side %d: %v", side, err)
		}
	}
}

// underway returns the users' messages that are not done.
func (p *Peer) underway() (all []*SendRequest) {
	for i := range p.queued {
		for s := p.queued[i].first; s != nil; s = s.links.next {
			all = append(all, s)
		}
	}
	for i := range p.sends.places {
		if s := p.sends.places[i].item; s != nil && !s.isPassive {
			all = append(all, s)
		}
	}
	return all
}

func (x *exchange) endSpace(side uint8) {
	if x.ended[side] {
		return
	}
	x.ended[side] = true
	x.call(side, func(p *Peer, out *Output) { p.EndSpace(16, x.time, out) })
}

// checkCancelled checks a receive of a space that has ended.
func (x *exchange) checkCancelled(side uint8, r *post) {
	u := r.outcome
	isOne := false
	for _, m := range x.sent[1-side] {
		isOne = isOne || m.context == r.context && m.tag == u.tag && same(u.got, m.bytes[:min(r.room, len(m.bytes))])
	}
	if isFailed := errors.Is(u.err, ErrCancelled) || errors.Is(u.err, ErrWithdrawn); u.times != 1 || !isFailed && !isOne {
		x.fail("side %d, a receive of a space that has ended: %d times %v, % x of tag %d", side, u.times, u.err, u.got, u.tag)
	}
}
