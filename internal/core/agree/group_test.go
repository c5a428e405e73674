package agree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// group is members with messages on their way. It is the oracle, too: it knows who has given
// what, and who is dead.
type group struct {
	members []*Core
	flight  []flying
	isDead  []bool
	watches [][]uint32   // by rank: whose death has to be reported
	given   [][]uint64   // by agreement and rank
	started [][]bool     // the same
	known   [][][]uint32 // by agreement and rank: deaths that it knew of when it gave its flags
	decided [][]*Value   // by agreement and rank
	sent    []int        // messages, by rank
	agreed  int          // the agreements of this group
}

type flying struct {
	from, to uint32
	bytes    []byte
}

func newGroup(n, agreements int) *group {
	g := &group{isDead: make([]bool, n), watches: make([][]uint32, n), sent: make([]int, n), agreed: agreements}
	for rank := range n {
		c, err := New(Config{Rank: uint32(rank), Size: n})
		if err != nil {
			panic(err)
		}
		g.members = append(g.members, c)
	}
	for range agreements {
		g.given = append(g.given, make([]uint64, n))
		g.started = append(g.started, make([]bool, n))
		g.known = append(g.known, make([][]uint32, n))
		g.decided = append(g.decided, make([]*Value, n))
	}
	return g
}

// step gives a member an input; it dies when it has sent as many messages, unless that is
// negative. The error is a violated invariant.
func (g *group) step(rank int, in Input, dies int) error {
	if g.isDead[rank] {
		return nil
	}
	var out Output
	c := g.members[rank]
	c.Step(0, []Input{in}, &out)
	if out.Malformed > 0 || out.Expelled {
		return fmt.Errorf("rank %d: %+v", rank, out)
	}
	for i, s := range out.Sends {
		if i == dies {
			break
		}
		if int(s.To) == rank || g.isDead[s.To] {
			continue
		}
		g.sent[rank]++
		g.flight = append(g.flight, flying{uint32(rank), s.To, s.Bytes})
	}
	g.watches[rank] = append(g.watches[rank], out.Watch...)
	if dies >= 0 { // it may have decided, and its caller may have acted on that
		g.isDead[rank] = true
	}
	for _, d := range out.Decided {
		v := d.Value
		if err := g.decide(int(d.Number)-1, rank, &v); err != nil {
			return err
		}
	}
	return g.bounded(c)
}

// decide checks a decision against what is allowed.
func (g *group) decide(number, rank int, v *Value) error {
	if g.decided[number][rank] != nil {
		return fmt.Errorf("rank %d decides %d again", rank, number+1)
	}
	for other, w := range g.decided[number] {
		if w != nil && !equal(*v, *w) {
			return fmt.Errorf("agreement %d: rank %d decides %+v, but rank %d %+v", number+1, rank, *v, other, *w)
		}
	}
	g.decided[number][rank] = v
	least, most := ^uint64(0), ^uint64(0)
	for other := range g.members {
		isFailed := slices.Contains(v.Failed, uint32(other))
		switch {
		case isFailed && !g.isDead[other]:
			return fmt.Errorf("agreement %d: rank %d lives, and is among the failed", number+1, other)
		case isFailed:
		case !g.started[number][other]:
			return fmt.Errorf("agreement %d is decided, but rank %d has not started", number+1, other)
		default:
			most &= g.given[number][other]
			for _, k := range g.known[number][other] {
				if !slices.Contains(v.Failed, k) {
					return fmt.Errorf("agreement %d: rank %d knew that %d is dead, which the decision does not: %+v", number+1, other, k, *v)
				}
			}
		}
		if g.started[number][other] {
			least &= g.given[number][other]
		}
	}
	if v.Flags&^most != 0 || least&^v.Flags != 0 {
		return fmt.Errorf("agreement %d: flags %x, want between %x and %x", number+1, v.Flags, least, most)
	}
	return nil
}

// bounded checks the member's memory.
func (g *group) bounded(c *Core) error {
	logarithm := 1
	for 1<<logarithm < len(g.members) {
		logarithm++
	}
	for _, r := range []*round{c.last, c.next} {
		if r != nil && len(r.pending) > logarithm {
			return fmt.Errorf("%d children", len(r.pending))
		}
	}
	return nil
}

// start has a member give its flags for its next agreement, if it may.
func (g *group) start(rank int, flags uint64, dies int) error {
	c := g.members[rank]
	number := int(c.Number()) - 1
	if g.isDead[rank] || number >= g.agreed || c.HasStarted() {
		return nil
	}
	g.given[number][rank], g.started[number][rank] = flags, true
	g.known[number][rank] = c.dead.list()
	return g.step(rank, Input{Kind: Start, Flags: flags}, dies)
}

// deliver hands over message i.
func (g *group) deliver(i, dies int) error {
	f := g.flight[i]
	g.flight = slices.Delete(g.flight, i, i+1)
	return g.step(int(f.to), Input{Kind: Message, Rank: f.from, Bytes: f.bytes}, dies)
}

// kill ends a member: of its messages on their way those that keep rejects are lost.
func (g *group) kill(rank int, keep func() bool) {
	g.isDead[rank] = true
	g.flight = slices.DeleteFunc(g.flight, func(f flying) bool { return int(f.to) == rank || int(f.from) == rank && !keep() })
}

// unreported returns pairs of a member and a dead one that it watches.
func (g *group) unreported() (pairs [][2]int) {
	for rank, all := range g.watches {
		for _, w := range all {
			if !g.isDead[rank] && g.isDead[w] && !g.members[rank].IsDead(w) {
				pairs = append(pairs, [2]int{rank, int(w)})
			}
		}
	}
	return pairs
}

// report has a member find out about a death.
func (g *group) report(rank, dead, dies int) error {
	return g.step(rank, Input{Kind: Dead, Rank: uint32(dead)}, dies)
}

// finished reports who lives and has not decided, when nothing is under way any more.
func (g *group) finished() error {
	for number := range g.agreed {
		for rank := range g.members {
			if !g.isDead[rank] && g.decided[number][rank] == nil {
				return fmt.Errorf("rank %d has not decided %d: %s", rank, number+1, g.members[rank])
			}
		}
	}
	return nil
}

// String describes a member's whole state.
func (c *Core) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "dead %v watches %v", c.dead.list(), c.watched.list())
	for _, r := range []*round{c.last, c.next} {
		if r == nil {
			continue
		}
		fmt.Fprintf(&b, "; %d %v wave %d.%d without %v", r.number, r.kind, r.ballot, r.stamp.wave, r.failed)
		if r.isStarted {
			fmt.Fprintf(&b, " gave %x", r.flags)
		}
		if len(r.pending) > 0 {
			fmt.Fprintf(&b, " awaits %v", r.pending)
		}
		if r.isAnswered {
			b.WriteString(" answered")
		}
		if r.acked != ^uint64(0) || r.found.is {
			fmt.Fprintf(&b, " has %x %v", r.acked, r.found)
		}
		if r.lock.is {
			fmt.Fprintf(&b, " locked %v", r.lock)
		}
	}
	return b.String()
}

// clone returns a copy that shares nothing that changes.
func (c *Core) clone() *Core {
	k := *c
	k.dead.words, k.watched.words = slices.Clone(c.dead.words), slices.Clone(c.watched.words)
	copyRound := func(r *round) *round {
		if r == nil {
			return nil
		}
		s := *r
		s.pending = slices.Clone(r.pending)
		return &s
	}
	k.last, k.next = copyRound(c.last), copyRound(c.next)
	return &k
}

func (g *group) clone() *group {
	k := *g
	k.members = slices.Clone(g.members) // each is copied before it is stepped
	k.flight, k.isDead, k.sent = slices.Clone(g.flight), slices.Clone(g.isDead), slices.Clone(g.sent)
	k.watches = slices.Clone(g.watches)
	for i := range k.watches {
		k.watches[i] = slices.Clone(g.watches[i])
	}
	copyAll := func(of [][]*Value) (all [][]*Value) {
		for _, v := range of {
			all = append(all, slices.Clone(v))
		}
		return all
	}
	k.decided = copyAll(g.decided)
	k.given, k.started, k.known = slices.Clone(g.given), slices.Clone(g.started), slices.Clone(g.known)
	for i := range k.given {
		k.given[i], k.started[i], k.known[i] = slices.Clone(k.given[i]), slices.Clone(k.started[i]), slices.Clone(k.known[i])
	}
	return &k
}

// key identifies a state: two groups with the same key go on the same way.
func (g *group) key() string {
	var b bytes.Buffer
	for rank, c := range g.members {
		if g.isDead[rank] {
			b.WriteString("dead\n")
			continue
		}
		fmt.Fprintln(&b, c)
	}
	flying := make([]string, len(g.flight))
	for i, f := range g.flight {
		flying[i] = fmt.Sprintf("%d>%d %x", f.from, f.to, f.bytes)
	}
	slices.Sort(flying)
	fmt.Fprintln(&b, flying)
	for number := range g.agreed {
		for rank := range g.members {
			fmt.Fprint(&b, g.decided[number][rank], g.started[number][rank], g.known[number][rank])
		}
	}
	return b.String()
}
