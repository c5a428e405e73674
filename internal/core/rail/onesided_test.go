package rail

import (
	"errors"
	"math"
	"testing"
)

// TestRefusedStore: a store that the other side refuses fails, whichever rail fails at whichever
// event: a restart of it is not taken for the restart of one that was done.
func TestRefusedStore(t *testing.T) {
	cases := 0
	for at := range 14 {
		for rail := range uint8(2) {
			for v := range views {
				for a := range fates {
					for b := range fates {
						cases++
						var memory Memory
						c := Config{Eager: 4, Fragment: 8}
						owner := c
						owner.Regions = &memory
						w := newWorld(2, [2]Config{c, owner}, func() scheduler { return &even{} }, nil)
						w.call(0, func(p *Peer, out *Output) {
							p.Put(&SendRequest{Data: fill(20, 1), Handle: Handle{1, 2}}, 0, out)
						})
						w.run(failure{event: at, rail: rail, seen: v, fates: [2]fate{a, b}})
						if w.err != nil || len(w.done[0]) != 1 || !errors.Is(w.done[0][0].Err, ErrRegion) {
							t.Fatalf("event %d, rail %d, seen %v, fates %v, %v: %v, done %+v", at, rail, v, a, b, w.err, w.done[0])
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// TestRevokeStore revokes a region at every event of a store, with and without a rail that
// fails: the store is done, or fails with ErrRegion, and nobody uses the region afterwards.
func TestRevokeStore(t *testing.T) {
	cases, refused := 0, 0
	for at := range 40 {
		for cut := range 12 {
			for rail := range uint8(3) { // the third: none fails
				if rail == 2 && cut > 0 {
					continue
				}
				cases++
				var memory Memory
				c := Config{Eager: 4, Fragment: 8}
				owner := c
				owner.Regions = &memory
				w := newWorld(2, [2]Config{c, owner}, func() scheduler { return &even{} }, nil)
				region := make([]byte, 40)
				h := memory.Register(MayWrite, 77, region)
				w.call(0, func(p *Peer, out *Output) { p.Put(&SendRequest{Data: fill(20, 1), Handle: h, Offset: 5}, 0, out) })
				w.after(at, event{what: calls, side: 1, do: func() {
					memory.Release(h)
					w.call(1, func(p *Peer, out *Output) {
						if p.Revoke(h, 0, out) {
							w.fail("a store lends memory")
						}
					})
					if len(memory.regions) > 0 {
						w.fail("the region is held after Revoke")
					}
				}})
				if rail < 2 {
					w.run(failure{event: cut, rail: rail, fates: [2]fate{now, lost}})
				} else {
					w.run()
				}
				if w.err != nil || len(w.done[0]) != 1 {
					t.Fatalf("event %d, rail %d fails at %d: %v, done %+v", at, rail, cut, w.err, w.done[0])
				}
				switch err := w.done[0][0].Err; {
				case errors.Is(err, ErrRegion):
					refused++
				case err != nil || !same(region[5:25], fill(20, 1)):
					t.Fatalf("event %d, rail %d fails at %d: %v, stored % x", at, rail, cut, err, region)
				}
			}
		}
	}
	if t.Logf("%d cases, %d refused", cases, refused); refused == 0 || refused == cases {
		t.Error("all ended alike")
	}
}

// TestSizesOfMemory: sizes that no memory has are malformed.
func TestSizesOfMemory(t *testing.T) {
	for _, k := range []kind{kindRndv, kindRget, kindStore, kindLoad, kindAck, kindCredit} {
		for _, size := range []uint64{math.MaxInt64 + 1, math.MaxUint64} {
			h := head{kind: k}
			h.words[fieldSize] = size
			var got head
			if _, err := got.parse(h.append(nil)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%v of %d bytes: %v", k, size, err)
			}
		}
	}
}

// TestBothWantAPathForData: whoever is to get data wants a path for them as well as who has them:
// the one of the two that can call does.
func TestBothWantAPathForData(t *testing.T) {
	var memory Memory
	h := memory.Register(MayRead|MayWrite, 77, make([]byte, 40))
	for what, begin := range map[string]func(a, b *Peer, out *[2]Output){
		"message": func(a, b *Peer, out *[2]Output) {
			b.Recv(&RecvRequest{Data: make([]byte, 20)}, 0, &out[1])
			a.Send(&SendRequest{Data: fill(20, 1)}, 0, &out[0])
		},
		"load":  func(a, _ *Peer, out *[2]Output) { a.Get(&RecvRequest{Data: make([]byte, 20), Handle: h}, 0, &out[0]) },
		"store": func(a, _ *Peer, out *[2]Output) { a.Put(&SendRequest{Data: fill(20, 1), Handle: h}, 0, &out[0]) },
	} {
		var out [2]Output
		var peers [2]*Peer
		for i := range peers {
			p, err := New(Config{Eager: 4, Regions: &memory})
			if err != nil {
				t.Fatal(err)
			}
			p.PathUp(0, Message, 0, 0, 0, &out[i])
			peers[i] = p
		}
		begin(peers[0], peers[1], &out)
		wanted := [2]bool{}
		for range 4 {
			for i, p := range peers {
				frames := out[i].Frames
				wanted[i] = wanted[i] || out[i].Wanted&(1<<Fragment) != 0
				out[i] = Output{}
				for _, f := range frames {
					b := append(append([]byte(nil), f.Head...), f.Body...)
					if err := peers[1-i].Arrived(0, f.Class, b, 0, &out[1-i]); err != nil {
						t.Fatal(err)
					}
					p.Sent(f.Number, true, 0, &out[i])
				}
			}
		}
		if wanted != [2]bool{true, true} {
			t.Errorf("%s: a path is wanted by %v", what, wanted)
		}
	}
}
