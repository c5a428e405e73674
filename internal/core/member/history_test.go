package member

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	histories = flag.Int("histories", 300, "how many histories TestHistories makes of each Theta")
	one       = flag.Uint64("history", 0, "make this history alone, of all Thetas")
)

// TestEventualEquality (2): after any deaths, starts at the same address or
// another, leaves, partitions, impaired nodes and directions of links, lost
// datagrams and orders of arrival, once nothing changes any more all views are
// equal, and nobody is dead in one and alive in another.
func TestEventualEquality(t *testing.T) {
	for theta := 1; theta <= 3; theta++ {
		t.Run(fmt.Sprintf("Theta=%d", theta), func(t *testing.T) { rapid.Check(t, eventualEquality(theta)) })
	}
}

// FuzzEventualEqualityOfTwo is the same where two have to agree that a node has
// failed.
func FuzzEventualEqualityOfTwo(f *testing.F) { f.Fuzz(rapid.MakeFuzz(eventualEquality(2))) }

func eventualEquality(theta int) func(t *rapid.T) {
	return func(t *rapid.T) {
		makeHistory(t, theta, func(low, high int) int { return rapid.IntRange(low, high).Draw(t, "n") })
	}
}

// TestHistories is TestEventualEquality by seed, which is faster. 100,000 of them:
//
//	go test -run Histories ./internal/core/member -histories 33334 -timeout 2h
func TestHistories(t *testing.T) {
	for theta := 1; theta <= 3; theta++ {
		t.Run(fmt.Sprintf("Theta=%d", theta), func(t *testing.T) {
			from, to := uint64(1), uint64(*histories)
			if *one > 0 {
				from, to = *one, *one
			}
			for seed := from; seed <= to; seed++ {
				random := rand.New(rand.NewPCG(seed, uint64(theta)))
				makeHistory(historian{t, seed}, theta, func(low, high int) int { return low + random.IntN(high-low+1) })
			}
		})
	}
}

// historian has a test report which history it was that failed.
type historian struct {
	*testing.T
	seed uint64
}

func (h historian) Fatalf(format string, args ...any) {
	h.Helper()
	h.T.Fatalf("history %d: %s", h.seed, fmt.Sprintf(format, args...))
}

// makeHistory makes one of some nodes, and fails unless all views are equal at
// its end.
func makeHistory(t tester, theta int, draw func(low, high int) int) {
	s := DefaultSettings()
	s.Theta, s.Ks, s.Kr = theta, theta, draw(1, 3)
	w := newCluster(t, draw(2, 7), s)
	for range draw(0, 60) {
		p := w.members[draw(0, len(w.members)-1)]
		switch draw(0, 12) {
		case 0:
			if p.Core != nil {
				w.kill(p)
			}
		case 1:
			if p.Core == nil {
				w.start(p)
			}
		case 2:
			if p.Core != nil {
				w.step(p, Input{Kind: Depart})
			}
		case 3:
			p.side = draw(0, 1)
		case 10:
			p.impaired = impairment(draw(0, int(impairments)-1))
		case 11:
			way := [2]*participant{p, w.members[draw(0, len(w.members)-1)]}
			w.blocked[way] = !w.blocked[way]
		case 12:
			if p.Core == nil && p != w.members[0] && p != w.members[1] {
				w.move(p)
			}
		case 4:
			w.settle(time.Duration(draw(1, 3000)) * time.Millisecond)
		default:
			for range draw(1, 20) {
				if len(w.flying) > 0 {
					w.deliver(draw(0, len(w.flying)-1), draw(0, 1) == 1)
				}
			}
			w.now = w.now.Add(time.Duration(draw(0, 100)) * time.Millisecond)
			w.due()
		}
	}
	for _, p := range w.members {
		p.side, p.impaired = 0, 0
	}
	clear(w.blocked)
	for _, p := range w.members[:2] { // the bootstrap set: others find nobody without it
		if p.Core == nil {
			w.start(p)
		}
	}
	w.settle(calm)
	for end := w.now.Add(patience); w.equal() != nil && w.now < end; {
		w.settle(calm)
	}
	w.settle(calm) // and so they stay
	if err := w.equal(); err != nil {
		t.Fatalf("%v", err)
	}
}

// TestImpairedNode: however others die, leave and start again, there or elsewhere,
// a node whose datagrams are lost, in any direction and for ever, has nobody
// suspected who is there, nor is it; and views come out equal. As TestHistories, by
// seed.
func TestImpairedNode(t *testing.T) {
	for theta := 1; theta <= 3; theta++ {
		t.Run(fmt.Sprintf("Theta=%d", theta), func(t *testing.T) {
			from, to := uint64(1), uint64(*histories)
			if *one > 0 {
				from, to = *one, *one
			}
			for seed := from; seed <= to; seed++ {
				random := rand.New(rand.NewPCG(seed, uint64(theta)))
				liveWithImpaired(historian{t, seed}, theta, func(low, high int) int { return low + random.IntN(high-low+1) })
			}
		})
	}
}

func liveWithImpaired(t tester, theta int, draw func(low, high int) int) {
	s := DefaultSettings()
	s.Theta, s.Ks, s.Kr = theta, theta, draw(1, 3)
	w := newCluster(t, draw(3, 8), s)
	w.settle(calm)
	w.leaves = func(observer *participant, n Notice) {
		who := w.find(observer.dir.ID(n.Node))
		if n.Cause == Suspected && who != nil && who.Core != nil && n.Version.Incarnation == who.incarnation {
			t.Fatalf("at %v %s holds %s for dead", time.Duration(w.now), observer.name, who.name)
		}
	}
	impaired := w.members[draw(0, 1)] // the other one is in the bootstrap set, and stays
	impaired.impaired = impairment(draw(1, 3))
	for range draw(1, 12) {
		if p := w.members[draw(2, len(w.members)-1)]; p.Core == nil {
			if draw(0, 1) == 0 {
				w.start(p)
			} else {
				w.move(p)
			}
		} else if draw(0, 3) == 0 {
			w.step(p, Input{Kind: Depart})
		} else {
			w.kill(p)
		}
		w.settle(time.Duration(draw(0, 3000)) * time.Millisecond)
	}
	w.settle(calm)
	for end := w.now.Add(patience); w.equal() != nil && w.now < end; {
		w.settle(calm)
	}
	if err := w.equal(); err != nil {
		t.Fatalf("%v", err)
	}
}

// Views are looked at after each calm, and have to be equal when patience ends.
const (
	calm     = 5 * time.Second
	patience = 90 * time.Second
)
