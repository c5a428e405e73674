package peering

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// slow is the rule for the paths of a connection that this host has dialled, as plain as it can
// be: it looks at every pair of rails every millisecond.
type slow struct {
	now   int // milliseconds
	pairs [greeting.MaxPaths]slowPair
	ended bool
}

// slowPair is one of rails. Its state is '.': no path, 'c': it is called, 'p': it is up, 't': it
// waits for its time.
type slowPair struct {
	is       bool // it is there
	state    byte
	since    int // called, or up
	until    int // waits
	notUntil int // it is called
	failures int
}

func (s *slow) set(p *slowPair, state byte) { p.state, p.since = state, s.now }

func (s *slow) living() (n int) {
	for i := range s.pairs {
		n += strings.Count(string(s.pairs[i].state), "p")
	}
	return n
}

// fail has a pair wait.
func (s *slow) fail(p *slowPair) {
	s.set(p, '.')
	if p.is {
		s.set(p, 't')
		p.until = s.now + min(10<<min(p.failures, 10), 200)
		p.failures++
	}
}

// end ends the path on a pair.
func (s *slow) end(p *slowPair) {
	if s.ended = s.living() == 1; s.ended {
		return
	}
	if s.now-p.since >= 200 {
		p.failures = 0
	}
	s.fail(p)
}

// paired sets which pairs there are.
func (s *slow) paired(pairs uint8) {
	for i := range s.pairs {
		p := &s.pairs[i]
		p.is = pairs>>i&1 != 0
		switch {
		case p.is && p.state == '.' && s.now < p.notUntil:
			s.set(p, 't')
			p.until = p.notUntil
		case p.is && p.state == '.':
			s.set(p, 'c')
		case !p.is && p.state == 't':
			p.notUntil = p.until
			s.set(p, '.')
		case !p.is && p.state == 'c':
			p.notUntil = s.now + min(10<<min(p.failures, 10), 200)
			p.failures++
			s.set(p, '.')
		}
	}
}

// tick lets a millisecond pass.
func (s *slow) tick() {
	s.now++
	for i := range s.pairs {
		switch p := &s.pairs[i]; {
		case p.state == 'c' && s.now-p.since == 1000:
			s.fail(p)
		case p.state == 't' && p.until == s.now:
			s.set(p, 'c')
		}
	}
}

func (s *slow) String() string {
	var b strings.Builder
	for i := range s.pairs {
		b.WriteByte(s.pairs[i].state)
	}
	return b.String()
}

// TestPathsFollowTheSlowRule: whatever becomes of paths and calls, and whichever pairs there are,
// the core does what slow does.
func TestPathsFollowTheSlowRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTrial(func(c *Config) { c.KeepAlive, c.DeadAfter = time.Hour, 2*time.Hour })
		w.do("want b 0; answer d1 accept")
		k := w.c.peers["b"].channels[0].conn
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)) // rapid prefers the small numbers
		first := random.IntN(8)
		s := &slow{}
		for i := range s.pairs {
			s.pairs[i].state = '.'
		}
		s.pairs[first].state = 'p'
		for n := random.IntN(200); n > 0 && !s.ended; n-- {
			i := random.IntN(8)
			p, id := &s.pairs[i], k.id
			if k.paths != nil && k.paths.of[i].path != nil {
				id = k.paths.of[i].path.id
			}
			what := random.IntN(12)
			switch {
			case what == 0 || k.paths == nil:
				pairs := uint8(random.Uint32() | random.Uint32())
				if k.paths == nil {
					pairs |= 1 << first
				}
				s.paired(pairs)
				w.step(Input{Kind: Paired, ID: k.id, Pairs: pairs, First: uint8(first)})
			case what < 3 && p.state == 'p':
				s.end(p)
				w.step(Input{Kind: Ended, ID: id, Err: errors.New("it broke")})
			case what < 3 && p.state == 'c':
				s.fail(p)
				w.step(Input{Kind: Ended, ID: id, Err: errors.New("nobody answers")})
			case what < 7 && p.state == 'c':
				s.set(p, 'p')
				w.step(Input{Kind: Answered, ID: id, Answer: greeting.Answer{Incarnation: 5}})
			case what < 8 && p.state == 'c':
				s.fail(p)
				w.step(Input{Kind: Answered, ID: id, Answer: greeting.Answer{Code: greeting.Busy, Incarnation: 5, Reason: "no"}})
			case what >= 8:
				ms := 1 + random.IntN([...]int{10, 30, 300, 1200}[what-8])
				for range ms {
					s.tick()
				}
				w.pass(time.Duration(ms) * time.Millisecond)
			}
			w.c.check(t)
			if isUp := k.state == up && w.c.conns[k.id] == k; isUp == s.ended {
				t.Fatalf("the connection is up: %v", isUp)
			}
			if got := k.states(first); !s.ended && got != s.String() {
				t.Fatalf("at %v: %s, want %s", w.now, got, s)
			}
		}
	})
}

// states returns those of a dialled connection's pairs, as slow has them.
func (k *conn) states(first int) string {
	if k.paths == nil {
		return strings.Repeat(".", first) + "p" + strings.Repeat(".", greeting.MaxPaths-1-first)
	}
	text := strings.Trim(k.paths.String(), " []")
	return strings.ReplaceAll(text, "1", "p") + strings.Repeat(".", greeting.MaxPaths-len(text))
}
