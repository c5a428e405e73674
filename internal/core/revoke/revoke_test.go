package revoke

import (
	"flag"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

var explore = flag.Int("explore", 3, "up to how many members TestAllOrders explores")

// TestRevoke: members are formed, revoke and die at any time, connections break and lose what is on them,
// notices arrive in any order, also those of an earlier communicator and of strangers. In the end,
// when all connections have been made anew, all that live are notified if one is, each once, by
// what one has revoked; and nobody has sent anything if none has.
func TestRevoke(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "members")
		s := newScene(n)
		rank := func(what string) uint32 { return uint32(rapid.IntRange(0, n-1).Draw(t, what)) }
		revokers := make([]bool, n)
		isAny, isLossy, deaths := false, false, 0
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		act := map[string]func(*rapid.T){
			"form": func(*rapid.T) { check(s.step(rank("who"), Input{Kind: Formed, Life: life})) },
			"revoke": func(*rapid.T) {
				by := rank("who")
				if c := s.members[by]; c.state == idle && !s.isDead[by] {
					revokers[by], isAny = true, true
				}
				check(s.step(by, Input{Kind: Revoke, From: by, Reason: 100 + by}))
			},
			"deliver": func(t *rapid.T) {
				if len(s.flight) > 0 {
					check(s.deliver(rapid.IntRange(0, len(s.flight)-1).Draw(t, "notice")))
				}
			},
			"cut": func(*rapid.T) {
				s.cut(rank("a"), rank("b"))
				isLossy = true
			},
			"connect": func(*rapid.T) { check(s.connect(rank("a"), rank("b"))) },
			"kill": func(t *rapid.T) {
				if who := rank("who"); deaths < Degree(n)-1 && !s.isDead[who] {
					deaths++
					s.kill(who, func() bool { return rapid.Bool().Draw(t, "arrives") })
				}
			},
			"report": func(*rapid.T) {
				if who := rank("dead"); s.isDead[who] {
					check(s.step(rank("who"), Input{Kind: Dead, From: who}))
				}
			},
			"intrude": func(t *rapid.T) {
				to, from := rank("to"), rank("from")
				old := noticeOf(life-1, rank("by"))
				switch own := noticeOf(life, rank("by")); rapid.IntRange(0, 3).Draw(t, "what") {
				case 0:
					check(s.step(to, Input{Kind: Message, From: from, Bytes: old.Append(nil)}))
				case 1:
					check(s.step(to, Input{Kind: Message, From: uint32(n) + from, Bytes: own.Append(nil)}))
				case 2:
					check(s.step(to, Input{Kind: Message, From: from, Bytes: own.Append(nil)[1:]}))
				default:
					if !AreNeighbours(n, to, from) {
						check(s.step(to, Input{Kind: Message, From: from, Bytes: own.Append(nil)}))
					}
				}
			},
		}
		act[""] = func(t *rapid.T) {
			for rank, k := range s.delivered {
				notice, is := s.members[rank].Notice()
				if k > 1 || is != (k == 1) || is && !revokers[notice.By] || is && notice != noticeOf(life, notice.By) {
					t.Fatalf("rank %d has delivered %d times: %+v", rank, k, notice)
				}
			}
			if !isAny && len(s.flight) > 0 {
				t.Fatal("a notice, although nobody has revoked")
			}
		}
		t.Repeat(act)

		for rank := range uint32(n) {
			check(s.step(rank, Input{Kind: Formed, Life: life}))
			for other := range uint32(n) {
				if s.isDead[other] {
					check(s.step(rank, Input{Kind: Dead, From: other}))
				}
				if s.isCut[ends(rank, other)] {
					check(s.connect(rank, other))
				}
			}
		}
		for len(s.flight) > 0 {
			check(s.deliver(rapid.IntRange(0, len(s.flight)-1).Draw(t, "notice")))
		}
		act[""](t)
		var are [2]bool
		for rank, c := range s.members {
			if s.isDead[rank] {
				continue
			}
			_, is := c.Notice()
			if are[map[bool]int{false: 0, true: 1}[is]] = true; are[0] && are[1] {
				t.Fatalf("rank %d is notified: %v, unlike others: %v", rank, is, s.members)
			}
			for other := range uint32(n) {
				if !c.IsAwaited(other) {
					continue
				}
				if isHeard := s.members[other].heard&placeOf(n, other, uint32(rank)) != 0; !isLossy || !isHeard {
					t.Fatalf("rank %d waits for %d: %v", rank, other, s.members)
				}
			}
		}
	})
}

// TestAllOrders goes through all states of small groups: any two members revoke, notices arrive in any
// order, and Degree-1 members die at any event, each with any of its notices on their way. -explore=4
// takes minutes.
func TestAllOrders(t *testing.T) {
	for n := 1; n <= *explore; n++ {
		states := map[string]bool{}
		var all func(s *scene, revokes, deaths int)
		copyOf := func(s *scene) *scene {
			k := *s
			k.members, k.isDead, k.delivered, k.flight = slices.Clone(s.members), slices.Clone(s.isDead), slices.Clone(s.delivered), slices.Clone(s.flight)
			for i, c := range k.members {
				m := *c
				k.members[i] = &m
			}
			return &k
		}
		all = func(s *scene, revokes, deaths int) {
			key := s.key(revokes, deaths)
			if states[key] {
				return
			}
			states[key] = true
			next := func(revokes, deaths int, do func(k *scene) error) {
				k := copyOf(s)
				if err := do(k); err != nil {
					t.Fatal(err)
				}
				all(k, revokes, deaths)
			}
			for i := range s.flight {
				next(revokes, deaths, func(k *scene) error { return k.deliver(i) })
			}
			for rank := range uint32(n) {
				if s.isDead[rank] {
					continue
				}
				if revokes > 0 && s.members[rank].state == idle {
					next(revokes-1, deaths, func(k *scene) error { return k.step(rank, Input{Kind: Revoke, From: rank, Reason: rank}) })
				}
				mine := 0
				for _, f := range s.flight {
					if f.from == rank {
						mine++
					}
				}
				for keep := range 1 << mine {
					if deaths == 0 {
						break
					}
					i := 0
					next(revokes, deaths-1, func(k *scene) error {
						k.kill(rank, func() bool { i++; return keep>>(i-1)&1 != 0 })
						return nil
					})
				}
			}
			if len(s.flight) > 0 {
				return
			}
			count := 0
			for rank := range n {
				if s.isDead[rank] || s.delivered[rank] == 1 {
					count++
				}
			}
			if living := slices.Index(s.isDead, false); living >= 0 && slices.ContainsFunc(s.members, func(c *Core) bool { return !s.isDead[c.cfg.Rank] && c.state == revoked }) && count < n {
				t.Fatalf("%d of %d are notified or dead: %v", count, n, s.members)
			}
		}
		s := newScene(n)
		for rank := range uint32(n) {
			if err := s.step(rank, Input{Kind: Formed, Life: life}); err != nil {
				t.Fatal(err)
			}
		}
		all(s, 2, Degree(n)-1)
		t.Logf("%d members: %d states", n, len(states))
	}
}

// TestLateFormation: the notices of an earlier communicator do not displace those that a member
// gets before it knows which is its own, and who has sent these is not sent them again.
func TestLateFormation(t *testing.T) {
	s := newScene(7)
	own, old := noticeOf(life, 3), noticeOf(life-1, 2)
	for _, m := range []struct {
		from   uint32
		notice Notice
	}{{1, old}, {2, own}, {4, old}, {3, old}, {5, own}, {6, old}} {
		if err := s.step(0, Input{Kind: Message, From: m.from, Bytes: m.notice.Append(nil)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.step(0, Input{Kind: Formed, Life: life}); err != nil {
		t.Fatal(err)
	}
	if got, is := s.members[0].Notice(); !is || got != own || len(s.flight) != 6 {
		t.Fatalf("%+v, %v, %d notices", got, is, len(s.flight))
	}
	for rank := range uint32(7) {
		if is, want := s.members[0].IsAwaited(rank), rank == 1 || rank == 3 || rank == 4 || rank == 6; is != want {
			t.Errorf("rank %d is waited for: %v", rank, is)
		}
	}
}

// TestDeathOfStranger: who is no neighbour is not counted as one.
func TestDeathOfStranger(t *testing.T) {
	c, err := New(Config{Size: 9, Group: group})
	if err != nil {
		t.Fatal(err)
	}
	notice := noticeOf(life, 1)
	var out Output
	in := []Input{{Kind: Formed, Life: life}, {Kind: Revoke}, {Kind: Dead, From: 3}, {Kind: Dead, From: 6}, {Kind: Dead, From: 0}, {Kind: Dead, From: 9}}
	for _, rank := range []uint32{1, 2, 4, 5, 7} {
		in = append(in, Input{Kind: Message, From: rank, Bytes: notice.Append(nil)})
	}
	if c.Step(in, &out); out.Settled || !c.IsAwaited(8) {
		t.Errorf("settled without rank 8: %v", c)
	}
	if c.Step([]Input{{Kind: Dead, From: 8}}, &out); !out.Settled {
		t.Errorf("not settled: %v", c)
	}
}

// TestMemory: a member has the same size in every communicator, and takes no memory before it is
// revoked.
func TestMemory(t *testing.T) {
	if size := unsafe.Sizeof(Core{}); size > 320 {
		t.Errorf("a member has %d bytes", size)
	}
	c, err := New(Config{Rank: 5, Size: 1 << 24, Group: group})
	if err != nil {
		t.Fatal(err)
	}
	out := Output{Sends: make([]Send, 0, 64)}
	stale := noticeOf(9, 1)
	in := []Input{{Kind: Connected, From: 6}, {Kind: Dead, From: 4}, {Kind: Message, From: 7, Bytes: stale.Append(nil)}}
	for _, input := range []Input{{Kind: Connected}, {Kind: Formed, Life: life}} {
		c.Step([]Input{input}, &out)
		if k := testing.AllocsPerRun(100, func() { c.Step(in, &out) }); k != 0 || len(out.Sends) > 0 || out.Delivered {
			t.Errorf("%v: %v allocations, %+v", input.Kind, k, out)
		}
	}
	c.Step([]Input{{Kind: Revoke}}, &out)
	if !out.Delivered || len(out.Sends) != Degree(1<<24)-1 { // rank 4 is dead
		t.Errorf("%d notices", len(out.Sends))
	}
}

// TestConfig: a rank is one of the communicator's.
func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Size: -1}, {Rank: 3, Size: 3}, {Rank: 1 << 31, Size: 3}, {Size: 1<<24 + 1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
