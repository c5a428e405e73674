package attribute

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// A group is members that replicate over connections that come and go, with
// views that differ: everyone hears of joins and leaves at a time of its own,
// also of leaves that were false. The group sees everything, and judges every
// notice.
type group struct {
	t     *rapid.T
	rng   *rand.Rand
	now   core.Time
	nodes []*node
	links [][2]*link // by pair of nodes
	past  map[attributes.Life][]map[string]string
	sent  int
}

// node is one member, in its present life.
type node struct {
	place int
	life  attributes.Life
	c     *Core
	out   Output
	seen  map[attributes.Life]uint64 // versions in notices
}

// link is one way of a connection.
type link struct {
	queue []attributes.Message
}

func newGroup(t *rapid.T) *group {
	g := &group{t: t, rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5)), past: map[attributes.Life][]map[string]string{}}
	n := rapid.IntRange(2, 6).Draw(t, "members")
	for i := range n {
		g.nodes = append(g.nodes, g.born(i))
	}
	for range n * n {
		g.links = append(g.links, [2]*link{})
	}
	return g
}

// lives are 100 i + k for the k-th life at place i.
func (g *group) born(place int) *node {
	life := attributes.Life(100 * (place + 1))
	if place < len(g.nodes) {
		life = g.nodes[place].life + 1
	}
	cfg := DefaultConfig(life)
	cfg.MessageBytes = MinMessageBytes
	cfg.PendingOffers = g.rng.IntN(20) + 1
	cfg.Burst = g.rng.IntN(3) + 1
	c, err := New(cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	g.past[life] = []map[string]string{{}}
	return &node{place: place, life: life, c: c, seen: map[attributes.Life]uint64{}}
}

func (g *group) pair(a, b int) *[2]*link { return &g.links[a*len(g.nodes)+b] }

func (g *group) connected(a, b int) bool { return g.pair(min(a, b), max(a, b))[0] != nil }

// connect makes a connection, breaks it loses what is under way.
func (g *group) connect(a, b int) {
	if a == b || g.connected(a, b) {
		return
	}
	*g.pair(min(a, b), max(a, b)) = [2]*link{{}, {}}
	g.step(g.nodes[a], Input{Kind: NeighbourUp, Life: g.nodes[b].life})
	g.step(g.nodes[b], Input{Kind: NeighbourUp, Life: g.nodes[a].life})
}

func (g *group) disconnect(a, b int) {
	if a == b || !g.connected(a, b) {
		return
	}
	*g.pair(min(a, b), max(a, b)) = [2]*link{}
	g.step(g.nodes[a], Input{Kind: NeighbourDown, Life: g.nodes[b].life})
	g.step(g.nodes[b], Input{Kind: NeighbourDown, Life: g.nodes[a].life})
}

// way returns the queue from a to b.
func (g *group) way(a, b int) *link {
	p := g.pair(min(a, b), max(a, b))
	if a < b {
		return p[0]
	}
	return p[1]
}

// step gives a member an input, takes what it puts out, and judges it.
func (g *group) step(m *node, in ...Input) {
	m.out.Reset()
	m.c.Step(g.now, in, &m.out)
	for _, s := range m.out.Sends {
		i := slices.IndexFunc(g.nodes, func(q *node) bool { return q.life == s.To })
		if i < 0 || !g.connected(m.place, i) {
			g.t.Fatalf("%d sends to %d, which is no neighbour", m.life, s.To)
		}
		b := s.Message.Append(nil)
		if len(b) > s.Message.Size() || len(b) > m.c.cfg.MessageBytes {
			g.t.Fatalf("a message of %d bytes, said to be %d", len(b), s.Message.Size())
		}
		read, err := attributes.Decode(b)
		if err != nil {
			g.t.Fatal(err)
		}
		g.sent++
		l := g.way(m.place, i)
		l.queue = append(l.queue, read)
	}
	for _, n := range m.out.Notices {
		g.judge(m, &n)
	}
}

// judge: "versions of one source arrive in order everywhere", each replica is
// what the owner had, and a notice names what changed.
func (g *group) judge(m *node, n *Notice) {
	past := g.past[n.Life]
	if n.From != m.seen[n.Life] || n.Version <= n.From || n.Version >= uint64(len(past)) {
		g.t.Fatalf("%d is notified that %d goes from %d to %d, having had %d of %d", m.life, n.Life, n.From, n.Version, m.seen[n.Life], len(past)-1)
	}
	m.seen[n.Life] = n.Version
	before, after := past[n.From], past[n.Version]
	for key := range maps.Keys(past[n.Version]) {
		if before[key] != after[key] && !slices.Contains(n.Keys, key) {
			g.t.Fatalf("%d: %d changed %q from %q to %q, notice %v", m.life, n.Life, key, before[key], after[key], n)
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept && !slices.Contains(n.Keys, key) {
			g.t.Fatalf("%d: %d deleted %q, notice %v", m.life, n.Life, key, n)
		}
	}
}

// check compares every replica with what its owner had at its version.
func (g *group) check() {
	for _, m := range g.nodes {
		for life, past := range g.past {
			held := map[string]string{}
			for key, value := range m.c.All(life) {
				held[key] = string(value)
			}
			if v := m.c.Version(life); !maps.Equal(held, past[v]) {
				g.t.Fatalf("%d holds %v of %d at version %d, which was %v", m.life, held, life, v, past[v])
			}
		}
		if wrong := m.c.wrong(); wrong != "" {
			g.t.Fatalf("%d: %s", m.life, wrong)
		}
	}
}

// wrong reports which invariant does not hold between two steps.
func (c *Core) wrong() string {
	for life, slot := range c.slots {
		r := &c.replicas[slot]
		bytes, last := 0, uint64(0)
		for i := range r.entries {
			bytes += r.entries[i].Size()
			if r.entries[i].Version <= last {
				return fmt.Sprintf("the entries of %d do not rise", life)
			}
			last = r.entries[i].Version
		}
		switch {
		case r.life != life || !c.Has(life):
			return fmt.Sprintf("%d is in the slot of %d", r.life, life)
		case r.version != last || r.bytes != bytes || bytes > attributes.MaxMap:
			return fmt.Sprintf("%d is at version %d with %d bytes, its entries at %d with %d", life, r.version, r.bytes, last, bytes)
		case r.sent > r.version || r.sent < r.version && !slices.Contains(c.changed, slot):
			return fmt.Sprintf("%d was sent up to %d of %d, and will not be", life, r.sent, r.version)
		case r.pending > 0 && (r.pending <= r.version || !c.isNeighbour(r.target)):
			return fmt.Sprintf("%d is pending up to %d of %d at %d", life, r.pending, r.version, r.target)
		}
	}
	if len(c.pending.owed) > c.pending.limit || len(c.pending.order) > 2*c.pending.limit {
		return fmt.Sprintf("%d pending offers of at most %d", len(c.pending.owed), c.pending.limit)
	}
	return ""
}

func (g *group) write(m *node) {
	key := "k" + strconv.Itoa(g.rng.IntN(4))
	past := g.past[m.life]
	next := maps.Clone(past[len(past)-1])
	if _, held := next[key]; held && g.rng.IntN(3) == 0 {
		if err := m.c.Delete(key); err != nil {
			g.t.Fatal(err)
		}
		delete(next, key)
	} else {
		size := 1
		if g.rng.IntN(4) == 0 {
			size = attributes.MaxValue
		}
		value := fmt.Sprintf("%-*d", size, len(past))
		if err := m.c.Set(key, []byte(value)); err != nil {
			g.t.Fatal(err)
		}
		next[key] = value
	}
	g.past[m.life] = append(past, next)
	if g.rng.IntN(20) == 0 { // as a map that is full does
		m.c.replicas[0].dropTombstones(uint64(g.rng.IntN(len(past) + 1)))
	}
}

// disturb does one random thing.
func (g *group) disturb() {
	n := len(g.nodes)
	m := g.nodes[g.rng.IntN(n)]
	other := g.nodes[g.rng.IntN(n)]
	switch g.rng.IntN(16) {
	case 0, 1, 2:
		g.write(m)
		g.step(m)
	case 3:
		g.connect(m.place, other.place)
	case 4:
		if g.rng.IntN(3) == 0 {
			g.disconnect(m.place, other.place)
		}
	case 5, 6:
		g.step(m, Input{Kind: Joined, Life: other.life})
	case 7:
		life := other.life - attributes.Life(g.rng.IntN(2))
		delete(m.seen, life)
		g.step(m, Input{Kind: Left, Life: life})
	case 8:
		if g.rng.IntN(4) == 0 {
			g.restart(m.place)
		}
	case 9:
		g.pass()
	default:
		g.deliver()
	}
}

// restart ends a life and begins another; some hear of it.
func (g *group) restart(place int) {
	for q := range g.nodes {
		g.disconnect(place, q)
	}
	g.nodes[place] = g.born(place)
}

func (g *group) pass() {
	g.now = g.now.Add(period)
	for _, m := range g.nodes {
		g.step(m)
	}
}

// deliver gives a member the oldest messages of one of its connections.
func (g *group) deliver() bool {
	n := len(g.nodes)
	for _, k := range g.rng.Perm(n * n) {
		a, b := k/n, k%n
		if a == b || !g.connected(a, b) {
			continue
		}
		l := g.way(a, b)
		if len(l.queue) == 0 {
			continue
		}
		take := g.rng.IntN(len(l.queue)) + 1
		var in []Input
		for _, message := range l.queue[:take] {
			in = append(in, Input{Kind: Message, Life: g.nodes[a].life, Message: message})
		}
		l.queue = l.queue[take:]
		g.step(g.nodes[b], in...)
		return true
	}
	return false
}

// settle lets the views become equal, at everyone at a time of its own, and the
// overlay connected, and then all that is under way arrive.
func (g *group) settle() {
	type news struct {
		at *node
		in Input
	}
	var all []news
	for i, m := range g.nodes {
		for life := range g.past {
			alive := slices.ContainsFunc(g.nodes, func(q *node) bool { return q.life == life })
			switch {
			case alive && !m.c.Has(life):
				all = append(all, news{m, Input{Kind: Joined, Life: life}})
			case !alive && m.c.Has(life):
				all = append(all, news{m, Input{Kind: Left, Life: life}})
			}
		}
		g.connect(i, (i+1)%len(g.nodes))
	}
	slices.SortFunc(all, func(a, b news) int { return int(a.in.Life) - int(b.in.Life) })
	g.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, n := range all {
		g.step(n.at, n.in)
		for range g.rng.IntN(4) {
			g.deliver()
		}
	}
	quiet := 0
	for round := 0; quiet < 2; round++ {
		if round > 100 {
			g.t.Fatal("it does not come to rest")
		}
		before := g.sent
		for g.deliver() {
		}
		g.pass()
		if quiet++; g.sent > before {
			quiet = 0
		}
	}
}

// TestReplicasBecomeEqual (13): whatever happens to a group, every replica is at all
// times what its owner had at that version, and versions rise; when it has come
// to rest, all replicas are their owners' maps, and there is no traffic any
// more.
func TestReplicasBecomeEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			g.disturb()
			g.check()
		}
		g.settle()
		g.check()
		for _, m := range g.nodes {
			for _, q := range g.nodes {
				if have, want := m.c.Version(q.life), uint64(len(g.past[q.life])-1); have != want {
					t.Fatalf("%d has version %d of %d, which is at %d", m.life, have, q.life, want)
				}
			}
			if due := m.c.Deadline(); due != core.Never {
				t.Fatalf("%d is at rest and waits for %v", m.life, due)
			}
		}
	})
}
