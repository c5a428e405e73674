package world

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/sim"
)

// everything is how many operations TestEverything has.
//
//	go test ./internal/sim/world -run Everything -everything 100000 -timeout 60m
//	go test ./internal/sim/world -run Everything -story SEED [-deaths] -v
var everything = flag.Int("everything", 3000, "operations of all kinds that TestEverything runs")

// first is the seed of its first story.
var first = flag.Uint64("first", 1, "seed of the first story of TestEverything")

// death is that of a member's process or host.
type death struct {
	node sim.NodeID
	at   core.Time
}

// kill ends a member's process with its rails, and sometimes its host: all members on it.
func (s *story) kill(id sim.NodeID) {
	ids := []sim.NodeID{id}
	if s.fabric != nil && s.withMessages && id%2 == 0 {
		for _, all := range s.fabric.members {
			if slices.Contains(all, id) {
				ids = all
			}
		}
	}
	for _, id := range ids {
		if !s.world.Alive(id) {
			continue
		}
		s.died = append(s.died, death{id, s.world.Now()})
		for _, c := range s.crews {
			if rank := slices.Index(c.Nodes, id); rank >= 0 && c.Rails != nil {
				for _, r := range c.Rails[rank] {
					s.world.Crash(r)
				}
			}
		}
		s.world.Crash(id)
	}
}

// waiting reports what the members' operations by messages wait for.
func (s *story) waiting() string {
	var all []string
	for _, c := range s.crews {
		for r, h := range c.Hosts {
			if h.messages != nil && s.world.Alive(c.Nodes[r]) {
				all = append(all, h.messages.waiting()...)
			}
		}
	}
	return strings.Join(all, "\n")
}

// late reports a survivor that learned of a death later than it could: its neighbours in the tree of
// hosts learn of it after Death, and pass it on; faults may hold that up for as long as they last.
func (s *story) late(c *crew) error {
	earliest := core.Never
	for _, d := range s.died {
		if slices.Contains(c.Nodes, d.node) {
			earliest = min(earliest, d.at)
		}
	}
	bound := earliest.Add(detection + time.Duration(len(s.plan)+len(s.railFaults)+1)*longest)
	for r, h := range c.Hosts {
		if h.Ended != nil && h.EndedAt > bound {
			return fmt.Errorf("rank %d has ended at %v, and the first death was at %v", r, time.Duration(h.EndedAt), time.Duration(earliest))
		}
	}
	return nil
}

// detection is after how long connected nodes are notified of a death.
const detection = 5 * time.Millisecond

// newEverything draws a story of all collectives: over trees, and by messages over rails of which
// some break, too.
func newEverything(seed uint64, deaths bool, trace io.Writer) *story {
	s := drawStory(seed, deaths, true, trace)
	r := rand.New(rand.NewPCG(seed, 0xca11))
	for _, c := range s.crews {
		c.addRails(1+r.IntN(3), messagesConfig{
			rail: rail.Config{
				Eager: []int{8, 40, 200}[r.IntN(3)], Fragment: []int{16, 64, 1000}[r.IntN(3)],
				PutFrom: []int{0, 1, 100}[r.IntN(3)], GetFrom: []int{0, 1, 100}[r.IntN(3)],
				MaxUnexpected: []int{1 << 10, 1 << 20}[r.IntN(2)], MaxHeads: []int{64, 1000}[r.IntN(2)],
				Seed: r.Uint64(), FirstSequence: -r.Uint32N(40),
			},
			health: rail.Health{Every: 2 * time.Millisecond, Within: 8 * time.Millisecond}, away: time.Second, lastWord: 2 * time.Millisecond,
		})
		s.sever(c)
		s.disturbRails(c, r)
		s.employAll(c, r)
	}
	return s
}

// sever cuts, in some stories with deaths, all rails between two members for ever: each counts as dead
// for the other.
func (s *story) sever(c *crew) {
	r := rand.New(rand.NewPCG(s.seed, 0x5e7e4))
	n := len(c.Hosts)
	if !s.deaths || n < 2 || r.IntN(6) > 0 {
		return
	}
	a := r.IntN(n)
	b := (a + 1 + r.IntN(n-1)) % n
	s.railFaults = append(s.railFaults, fmt.Sprintf("all rails of ranks %d and %d: cut for ever", a, b))
	s.world.AtEvent(r.Uint64N(400<<r.IntN(7)), "all rails fail", func() {
		c.severed = []int{a, b}
		for k, rail := range c.Rails[a] {
			s.world.Cut(rail, c.Rails[b][k])
		}
	})
}

// disturbRails has rails break, and one of them be bad for a while or for ever: cut, slow, or deaf in
// one direction.
func (s *story) disturbRails(c *crew, r *rand.Rand) {
	w, n, rails := s.world, len(c.Hosts), len(c.Rails[0])
	bad := r.IntN(rails)
	if n < 2 || r.IntN(3) == 0 {
		return
	}
	for range r.IntN(8) {
		a := r.IntN(n)
		b := (a + 1 + r.IntN(n-1)) % n
		on := r.IntN(rails)
		what, d := r.IntN(4), time.Duration(r.Int64N(int64(longest)))
		isForever := rails > 1 && r.IntN(3) == 0
		if what > 0 {
			on = bad
		}
		from, to := c.Rails[a][on], c.Rails[b][on]
		s.railFaults = append(s.railFaults, fmt.Sprintf("rail %d of ranks %d and %d: %s for %v (forever: %v)", on, a, b, [...]string{"break", "cut", "slow", "deaf"}[what], d, isForever))
		w.AtEvent(r.Uint64N(400<<r.IntN(7)), "a rail fails", func() {
			if !w.Alive(from) || !w.Alive(to) {
				return
			}
			switch what {
			case 0:
				w.Break(from, to)
				return
			case 1:
				w.Cut(from, to)
			default:
				l := w.DefaultLink()
				if l.Delay += d; isForever {
					l.Delay = 200 * time.Millisecond // the news of a crash comes after what is under way
				}
				if w.SetLink(from, to, l); what == 2 {
					w.SetLink(to, from, l)
				}
			}
			if isForever {
				return
			}
			w.After(d, "a rail is good again", func() {
				if !slices.Contains(c.severed, a) || !slices.Contains(c.severed, b) {
					w.Repair(from, to)
				}
				w.SetLink(from, to, w.DefaultLink())
				w.SetLink(to, from, w.DefaultLink())
			})
		})
	}
}

// employAll gives a group work of all kinds, at a pace of its own.
func (s *story) employAll(c *crew, r *rand.Rand) {
	n := len(c.Hosts)
	pace := int64(1 + r.IntN(1<<(10+r.IntN(14))))
	late := make([]int64, n)
	for i := range late {
		if late[i] = r.Int64N(pace); r.IntN(20) == 0 {
			late[i] += r.Int64N(int64(50 * time.Millisecond))
		}
	}
	length := []int{6, 20, 80}[r.IntN(3)]
	c.isBlocking = make([]bool, n)
	if r.IntN(2) == 0 {
		for i := range c.isBlocking {
			c.isBlocking[i] = r.IntN(2) == 0
		}
	}
	for range 1 + r.IntN(16) {
		isCall := r.IntN(3) > 0
		var call *callWork
		var k *work
		if isCall {
			call = c.addCall(drawCall(r, n, length))
		} else {
			k = c.add(drawWork(r, n, length))
		}
		for i := range late {
			late[i] += r.Int64N(pace)
			s.world.After(time.Duration(late[i]), fmt.Sprintf("rank %d's turn", i), func() {
				c.turn(i, func() {
					if isCall {
						c.startCall(call, i)
					} else {
						c.start(k, uint32(i))
					}
				})
			})
		}
	}
	k := c.leave()
	for i := range late {
		late[i] += r.Int64N(pace)
		s.world.After(time.Duration(late[i]), fmt.Sprintf("rank %d leaves", i), func() { c.turn(i, func() { c.start(k, uint32(i)) }) })
	}
}

// sights counts what stories of all collectives have seen.
type sights struct {
	tally
	kinds                      [schedule.Collectives][schedule.Algorithms]int
	calls, failed              int // parts of operations by messages: done, and ended by a death
	dead, ended                int // members
	resent, restarts, sessions uint64
}

func (a *sights) add(s *story) {
	a.tally.add(s)
	for _, c := range s.crews {
		for _, k := range c.calls {
			for _, p := range k.parts {
				switch {
				case !p.isDone:
				case p.err != nil:
					a.failed++
				default:
					a.calls++
					a.kinds[p.Collective][k.by]++
				}
			}
		}
		for r, h := range c.Hosts {
			switch {
			case !s.world.Alive(c.Nodes[r]):
				a.dead++
			case h.Ended != nil:
				a.ended++
			}
			for _, p := range h.messages.peers {
				if p != nil {
					a.resent += p.core.Counters().Resent
					a.restarts += p.core.Counters().Restarts
					a.sessions += uint64(p.losses)
				}
			}
		}
	}
}

// missing reports what has not been seen.
func (a *sights) missing() error {
	for _, n := range []int{a.offload, a.fallback, a.mixed, a.failed, a.dead, a.ended, int(a.resent), int(a.restarts), int(a.sessions)} {
		if n == 0 {
			return errors.New("the stories have not seen everything")
		}
	}
	for of := schedule.Allreduce; of < schedule.Collectives; of++ {
		for by := range schedule.Algorithms {
			if schedule.Has(of, by) && a.kinds[of][by] == 0 {
				return fmt.Errorf("no %s by %s", of, by)
			}
		}
	}
	return nil
}

// TestEverything: operations of all collectives by all algorithms, over trees of switches, the tree of
// hosts, and by messages; several at once, and with deaths of members, switches, links, agents, the
// manager and rails at random events. No result is wrong, no member waits for ever, and all agree.
func TestEverything(t *testing.T) {
	if *one > 0 {
		s := newEverything(*one, *deaths, trace())
		if err := s.run(&verdict{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	var a sights
	for seed := *first; a.operations < *everything; seed++ {
		for _, deaths := range []bool{false, true} {
			s := newEverything(seed, deaths, nil)
			if err := s.run(&a.verdict); err != nil {
				t.Fatal(err)
			}
			a.add(s)
		}
	}
	t.Logf("%+v", a)
	if err := a.missing(); err != nil {
		t.Error(err)
	}
}
