package agree

import (
	"flag"
	"fmt"
	"hash/maphash"
	"testing"
)

var explore = flag.Int("explore", 3, "up to how many members TestAllStates explores with two deaths")

// TestAllStates goes through all states that a small group can get into: members start at any
// time, messages arrive in any order, up to two members die at any event, each with any of its
// messages on their way, and who watches a dead member finds out at any time. -explore=4 takes ten
// seconds.
func TestAllStates(t *testing.T) {
	for n := 1; n <= *explore; n++ {
		states, ends, err := allStates(n, min(n, 2))
		if err != nil {
			t.Fatalf("%d members: %v", n, err)
		}
		t.Logf("%d members, %d deaths: %d states, of which %d are ends", n, min(n, 2), states, ends)
	}
}

// explorer is where an exploration is.
type explorer struct {
	seed         maphash.Seed
	seen         map[uint64]struct{}
	stack        []candidate
	states, ends int
}

type candidate struct {
	g      *group
	deaths int // that may come yet
}

func allStates(n, deaths int) (states, ends int, err error) {
	x := explorer{seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
	x.push(newGroup(n, 1), deaths)
	for len(x.stack) > 0 {
		s := x.stack[len(x.stack)-1]
		x.stack = x.stack[:len(x.stack)-1]
		if err := x.expand(s); err != nil {
			return 0, 0, err
		}
	}
	return x.states, x.ends, nil
}

// push takes a state that was not seen yet.
func (x *explorer) push(g *group, deaths int) {
	key := maphash.String(x.seed, fmt.Sprint(deaths, g.key()))
	if _, is := x.seen[key]; is {
		return
	}
	x.seen[key] = struct{}{}
	x.states++
	x.stack = append(x.stack, candidate{g, deaths})
}

// expand takes all states that follow one.
func (x *explorer) expand(s candidate) error {
	isEnd := true
	next := func(rank int, act func(g *group) error) error {
		isEnd = false
		g := s.g.clone()
		g.members[rank] = g.members[rank].clone()
		if err := act(g); err != nil {
			return fmt.Errorf("%w\n%s", err, s.g.key())
		}
		x.push(g, s.deaths)
		return nil
	}
	for rank, c := range s.g.members {
		if s.g.isDead[rank] || c.Number() > 1 || c.HasStarted() {
			continue
		}
		if err := next(rank, func(g *group) error { return g.start(rank, ^uint64(1<<rank), -1) }); err != nil {
			return err
		}
	}
	for i, f := range s.g.flight {
		if err := next(int(f.to), func(g *group) error { return g.deliver(i, -1) }); err != nil {
			return err
		}
	}
	for _, p := range s.g.unreported() {
		if err := next(p[0], func(g *group) error { return g.report(p[0], p[1], -1) }); err != nil {
			return err
		}
	}
	for rank := range s.g.members {
		if s.deaths == 0 || s.g.isDead[rank] {
			continue
		}
		mine := 0
		for _, f := range s.g.flight {
			if int(f.from) == rank {
				mine++
			}
		}
		for keep := range 1 << mine {
			g, i := s.g.clone(), 0
			g.kill(rank, func() bool { i++; return keep>>(i-1)&1 != 0 })
			x.push(g, s.deaths-1)
		}
	}
	if !isEnd {
		return nil
	}
	x.ends++
	if err := s.g.finished(); err != nil {
		return fmt.Errorf("%w\n%s", err, s.g.key())
	}
	return nil
}
