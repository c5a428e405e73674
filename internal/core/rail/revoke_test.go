package rail

import (
	"errors"
	"fmt"
	"testing"
)

// TestRevoke releases and revokes a region at every event of a load, with and
// without a rail that fails. The request is done, or fails with ErrRegion; nobody uses the
// region any more once the transport has returned what was lent, the fragments of the data;
// or at once, if it has written them.
func TestRevoke(t *testing.T) {
	cases := 0
	for at := range 60 {
		for rail := range 3 { // the third: none fails
			for cut := range 12 {
				for _, f := range []fate{lost, now, soon} {
					if rail == 2 && (cut > 0 || f != lost) {
						continue
					}
					for _, isWritten := range []bool{false, true} {
						cases++
						revokeAt(t, at, isWritten, failure{event: cut, rail: uint8(rail), fates: [2]fate{f, f}})
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

func revokeAt(t *testing.T, at int, isWritten bool, cut failure) {
	var memory Memory
	c := Config{Eager: 4, Fragment: 8}
	owner := c
	owner.Regions = &memory
	w := newWorld(2, [2]Config{c, owner}, func() scheduler { return &even{} }, nil)
	var lines []string
	w.trace = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	var u outcome
	region := fill(40, 9)
	h := memory.Register(MayRead, 77, region[:7], region[7:])
	r := &RecvRequest{Data: make([]byte, 20), Handle: h, Offset: 5, User: &u}
	w.call(0, func(p *Peer, out *Output) { p.Get(r, 0, out) })
	w.after(at, event{what: calls, side: 1, do: func() {
		w.log("revoke")
		memory.Release(h)
		w.call(1, func(p *Peer, out *Output) { _ = p.Revoke(h, 0, out) })
		if isWritten {
			down := w.peers[1].hasDataOnDownPath()
			w.call(1, func(p *Peer, _ *Output) { p.Unlend(h) })
			if isHeld := len(memory.regions) > 0; isHeld != down {
				w.fail("the region is held: %v, and some of it is on a path that has ended: %v", isHeld, down)
			}
		}
		w.check = func() {
			if len(memory.regions) > 0 && !w.peers[1].hasData() {
				w.fail("the region is held though nothing of it is lent")
			}
		}
		w.check()
	}})
	if cut.rail < 2 {
		w.run(cut)
	} else {
		w.run()
	}
	switch {
	case u.times != 1:
		w.fail("the request is done %d times", u.times)
	case u.err != nil && !errors.Is(u.err, ErrRegion):
		w.fail("the request: %v", u.err)
	case u.err == nil && !same(u.got, region[5:25]):
		w.fail("loaded: % x", u.got)
	}
	if len(memory.regions) > 0 {
		w.fail("the region is in use %d times", memory.regions[h].uses)
	}
	for side, p := range w.peers {
		if err := p.isEmpty(); err != nil {
			w.fail("side %d: %v", side, err)
		}
	}
	if w.err != nil {
		for _, line := range lines {
			t.Log(line)
		}
		t.Fatalf("event %d, written %v, failure %+v: %v", at, isWritten, cut, w.err)
	}
}

// hasDataOnDownPath reports whether the transport has fragments of data on a path that has ended.
func (p *Peer) hasDataOnDownPath() bool {
	for i := range p.net.flights {
		f := &p.net.flights[i]
		if f.isUsed && layouts[f.head.kind].class == Fragment && p.net.paths[Fragment][f.path].life == f.life && p.net.up[Fragment]&(1<<f.path) != 0 {
			continue
		}
		if f.isUsed && layouts[f.head.kind].class == Fragment {
			return true
		}
	}
	return false
}

// hasData reports whether the transport has fragments of data.
func (p *Peer) hasData() bool {
	for i := range p.net.flights {
		if f := &p.net.flights[i]; f.isUsed && layouts[f.head.kind].class == Fragment {
			return true
		}
	}
	return false
}
