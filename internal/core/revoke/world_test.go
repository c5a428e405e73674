package revoke

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// world is members in virtual time. A member sends its notices one after the other, and delivers
// when the last has gone; each takes a while to arrive.
type world struct {
	members   []Core
	isDead    []bool
	delivered []bool
	hops      []int      // by rank: those of its first notice; -1: it has none
	last      int64      // when the last member has got its first
	notices   [][]byte   // by rank: what it sends,
	to        [][]uint32 // and to whom, in order
	sent      []places   // by rank: to whom it has
	messages  int
	events    []event // a heap
	now       int64
	taken     int // events
	out       Output

	isPlain bool                       // members begin with the longest links, however the notice has come
	gap     int64                      // from one notice that a member sends to the next
	latency func() int64               // of one
	isLost  func(from, to uint32) bool // of those on their way from a member that dies
	before  func()                     // each event
}

type event struct {
	at     int64
	number int32 // orders those of one time
	what   InputKind
	rank   uint32
	from   uint32 // of a Message; of sends: at which of its neighbours the member is
}

// sends is an event that is no input: the member's next notice goes.
const sends = Dead + 1

const life = 77

func newWorld(n int) *world {
	w := &world{
		members: make([]Core, n), isDead: make([]bool, n), delivered: make([]bool, n), hops: slices.Repeat([]int{-1}, n),
		notices: make([][]byte, n), to: make([][]uint32, n), sent: make([]places, n),
		latency: func() int64 { return 1000 }, isLost: func(uint32, uint32) bool { return true },
	}
	for rank := range w.members {
		w.members[rank] = formedMember(uint32(rank), n)
	}
	return w
}

func formedMember(rank uint32, n int) Core {
	return Core{cfg: Config{Rank: rank, Size: n}, state: idle, notice: Notice{Of: Identity{Life: life}}}
}

func (a *event) compare(b *event) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.number, b.number))
}

func (w *world) push(after int64, e event) {
	e.at, e.number = w.now+after, int32(len(w.events)+w.taken)
	w.events = append(w.events, e)
	h := w.events
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[i].compare(&h[up]) >= 0 {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (w *world) pop() event {
	h := w.events
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	w.events = h
	for i := 0; ; {
		least := i
		for k := 2*i + 1; k <= 2*i+2 && k < len(h); k++ {
			if h[k].compare(&h[least]) < 0 {
				least = k
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// revoke has a member revoke after a while.
func (w *world) revoke(rank uint32, after int64) { w.push(after, event{what: Revoke, rank: rank}) }

// kill ends members at once.
func (w *world) kill(ranks []uint32) {
	for _, rank := range ranks {
		w.isDead[rank] = true
	}
	w.events = slices.DeleteFunc(w.events, func(e event) bool {
		return w.isDead[e.rank] || e.what == Message && w.isDead[e.from] && w.isLost(e.from, e.rank)
	})
	slices.SortFunc(w.events, func(a, b event) int { return a.compare(&b) })
}

// run takes all events. The error is a violated invariant.
func (w *world) run() error {
	for {
		if w.before != nil {
			w.before()
		}
		if len(w.events) == 0 {
			return nil
		}
		e := w.pop()
		w.now = e.at
		w.taken++
		if err := w.take(&e); err != nil {
			return err
		}
	}
}

func (w *world) take(e *event) error {
	hops := 0
	in := Input{Kind: e.what, From: e.rank, Reason: e.rank + 1}
	switch e.what {
	case sends:
		w.send(e.rank, int(e.from))
		return nil
	case Message:
		hops = w.hops[e.from] + 1
		in.From, in.Bytes = e.from, w.notices[e.from]
	}
	out := &w.out
	out.Reset()
	w.members[e.rank].Step([]Input{in}, out)
	isFirst := w.hops[e.rank] < 0
	if out.Refused > 0 || out.Delivered != isFirst || isFirst && len(out.Sends) != Degree(len(w.members)) || !isFirst && len(out.Sends) > 0 {
		return fmt.Errorf("rank %d: %+v", e.rank, *out)
	}
	if isFirst {
		w.hops[e.rank], w.last = hops, w.now
		for _, s := range out.Sends {
			w.notices[e.rank], w.to[e.rank] = s.Bytes, append(w.to[e.rank], s.To)
		}
		if w.isPlain {
			w.to[e.rank] = slices.Collect(Neighbours(len(w.members), e.rank, 0))
		}
		w.send(e.rank, 0)
	}
	return nil
}

// send sends a member's notice to its next neighbour, and to those after it later.
func (w *world) send(rank uint32, next int) {
	if next == len(w.to[rank]) {
		w.delivered[rank] = true
		return
	}
	to := w.to[rank][next]
	w.sent[rank] |= placeOf(len(w.members), rank, to)
	w.messages++
	if !w.isDead[to] {
		w.push(w.latency(), event{what: Message, rank: to, from: rank})
	}
	w.push(w.gap, event{what: sends, rank: rank, from: uint32(next + 1)})
}

// missed returns a member that lives and has not delivered though another one that lives has.
func (w *world) missed() (rank int, is bool) {
	some := false
	rank = -1
	for r := range w.members {
		switch {
		case w.isDead[r]:
		case w.delivered[r]:
			some = true
		default:
			rank = r
		}
	}
	return rank, some && rank >= 0
}

func dice(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }
