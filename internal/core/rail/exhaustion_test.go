package rail

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// scenario is one exchange of messages, whose flow is what the test is about.
type scenario struct {
	name   string
	put    bool // RNDV, PUT
	get    bool // RGET
	size   int
	room   int  // of the first receive
	late   int  // receives are posted so many events later than the messages are sent
	at     int  // receives are posted at this event; 0: not so
	isBack bool // B sends as well
	store  bool
	load   bool
	isBuff bool

	edges map[edge]int // of the world
}

var scenarios = []scenario{
	{name: "match", size: 3, room: 3},
	{name: "match-unexpected", size: 4, room: 2, late: 2},
	{name: "match-buffered", size: 4, room: 4, isBuff: true, isBack: true},
	{name: "frag", size: 20, room: 20},
	{name: "frag-unexpected", size: 20, room: 24, late: 2},
	{name: "frag-truncated", size: 20, room: 9, isBack: true},
	{name: "frag-no-room", size: 20, room: 0},
	{name: "frag-later", size: 20, room: 24, late: 14},
	{name: "get-later", size: 20, room: 24, late: 14, get: true},
	{name: "put", size: 20, room: 20, put: true},
	{name: "put-unexpected", size: 20, room: 20, put: true, late: 2},
	{name: "get", size: 20, room: 20, get: true},
	{name: "get-unexpected", size: 20, room: 20, get: true, late: 2},
	{name: "store", size: 20, store: true},
	{name: "load", size: 20, load: true},
}

// order is in which order the events of several paths come.
type order int

var orders = []func(n int) int{
	nil, // as they arise
	func(n int) int { return n - 1 },
	func(n int) int { return n / 2 },
}

// play runs a scenario and reports what is wrong.
func (s scenario) play(old *world, o order, rails int, trace func(string, ...any), failures ...failure) (events int, err error) {
	c := Config{Eager: 4, Fragment: 8, FirstSequence: ^uint32(0), MaxUnexpected: 64, MaxHeads: 16, Seed: 1}
	if s.put {
		c.PutFrom = 1
	}
	if s.get {
		c.GetFrom = 1
	}
	var memory [2]Memory
	configs := [2]Config{c, c}
	for i := range configs {
		configs[i].Seed += uint64(i)
		configs[i].Regions = &memory[i]
	}
	w := newWorld(rails, configs, func() scheduler { return &even{} }, old)
	w.trace, w.pick, w.edges = trace, orders[o], s.edges

	var wants [][]byte
	var outcomes []*outcome
	var errs []error
	send := func(side uint8, size int, m byte, room int) {
		full := fill(size, m)
		var want error
		if room < size {
			want = ErrTruncated
		}
		wants, errs = append(wants, full[:min(size, room)]), append(errs, want)
		u := &outcome{}
		outcomes = append(outcomes, u)
		r := &RecvRequest{Context: 7, Tag: 5, Data: make([]byte, room), User: u}
		post := func() { w.call(1-side, func(p *Peer, out *Output) { p.Recv(r, 0, out) }) }
		switch {
		case s.at > 0:
			before := w.due
			w.dueAt, w.due = s.at, func() {
				if before != nil {
					before()
				}
				post()
			}
		case s.late == 0:
			post()
		}
		q := &SendRequest{Context: 7, Tag: 5, Data: fill(size, m), Buffered: s.isBuff}
		w.events = append(w.events, event{what: calls, do: func() {
			w.call(side, func(p *Peer, out *Output) { p.Send(q, 0, out) })
		}})
		if s.late > 0 {
			w.after(s.late, event{what: calls, do: post})
		}
	}
	target, local := fill(32, 99), fill(s.size, 1)
	switch {
	case s.store:
		h := memory[1].Register(MayWrite, 77, target)
		q := &SendRequest{Data: local, Handle: h, Offset: 5}
		wants = append(wants, fill(s.size, 1))
		w.events = append(w.events, event{what: calls, do: func() { w.call(0, func(p *Peer, out *Output) { p.Put(q, 0, out) }) }})
	case s.load:
		h := memory[1].Register(MayRead, 77, target[:3], nil, target[3:17], target[17:])
		u := &outcome{}
		wants, outcomes, errs = append(wants, target[5:5+s.size]), append(outcomes, u), append(errs, nil)
		r := &RecvRequest{Data: local, Handle: h, Offset: 5, User: u}
		w.events = append(w.events, event{what: calls, do: func() { w.call(0, func(p *Peer, out *Output) { p.Get(r, 0, out) }) }})
	default:
		send(0, s.size, 1, s.room)
		send(0, 2, 2, 2)
		if s.isBack {
			send(1, s.size, 3, s.size)
		}
	}
	events = w.run(failures...)
	check := func(when string) {
		sends := 0
		for side := range w.done {
			for _, d := range w.done[side] {
				if d.Send != nil {
					sends++
					if d.Err != nil {
						w.fail("%s: a send: %v", when, d.Err)
					}
				}
			}
		}
		if sends != len(wants) && !s.load {
			w.fail("%s: %d sends of %d are done", when, sends, len(wants))
		}
		for i, u := range outcomes {
			if u.times != 1 || !errors.Is(u.err, errs[i]) || !same(u.got, wants[i]) {
				w.fail("%s: receive %d is done %d times: %v, % x instead of % x", when, i, u.times, u.err, u.got, wants[i])
			}
		}
		if s.store {
			want := fill(32, 99)
			copy(want[5:], wants[0])
			if !same(target, want) {
				w.fail("%s: % x is stored instead of % x", when, target, want)
			}
			memory[1].Release(Handle{1, 77})
			scribble(target)
		}
		if s.load && !memory[1].Release(Handle{1, 77}) {
			w.fail("%s: the region is held", when)
		}
	}
	check("at the end")
	if len(w.last) > 0 && w.err == nil {
		w.afterlife()
		for i, u := range outcomes {
			if u.times != 1 {
				w.fail("after late fragments, receive %d is done %d times", i, u.times)
			}
		}
		for _, b := range target {
			if s.store && b != 0xee {
				w.fail("a late fragment has written into released memory")
			}
		}
	}
	for side, p := range w.peers {
		if err := p.isEmpty(); err != nil && w.err == nil {
			w.fail("side %d: %v", side, err)
		}
	}
	return events, w.err
}

// isEmpty reports what a Peer still has though all is done.
func (p *Peer) isEmpty() error {
	for i := range p.sends.places {
		if s := p.sends.places[i].item; s != nil {
			return fmt.Errorf("it has a send in state %s", s.state)
		}
	}
	for i := range p.recvs.places {
		if r := p.recvs.places[i].item; r != nil {
			return fmt.Errorf("it has a receive in state %s", r.state)
		}
	}
	for i := range p.net.flights {
		if p.net.flights[i].isUsed {
			return fmt.Errorf("it has a fragment %s", p.net.flights[i].head.kind)
		}
	}
	if p.box.held != (heap{}) {
		return fmt.Errorf("it holds %v", p.box.held)
	}
	return nil
}

var allDoubles = flag.Bool("all", false, "TestExhaustion: every pair of failures, instead of every few")

// TestExhaustion fails rails at every event of every flow, once and twice. The last one comes back.
func TestExhaustion(t *testing.T) {
	stride := 149
	switch {
	case *allDoubles:
		stride = 1
	case testing.Short():
		stride = 503
	}
	var once, twice atomic.Int64
	t.Run("flows", func(t *testing.T) {
		for _, s := range scenarios {
			for rails := 1; rails <= 3; rails++ {
				t.Run(fmt.Sprintf("%s/rails=%d", s.name, rails), func(t *testing.T) {
					t.Parallel()
					a, b := s.exhaust(t, rails, stride)
					once.Add(a)
					twice.Add(b)
				})
			}
		}
	})
	t.Logf("%d cases: one failure %d, two failures %d (one in %d)", once.Load()+twice.Load(), once.Load(), twice.Load(), stride)
}

func (s scenario) exhaust(t *testing.T, rails, stride int) (once, twice int64) {
	old := &world{}
	for o := range orders {
		o := order(o)
		total, err := s.play(old, o, rails, nil)
		if err != nil {
			s.report(t, o, rails, err)
		}
		for f := range failuresAt(0, total+1, rails, true) {
			once++
			n, err := s.play(old, o, rails, nil, f)
			if err != nil {
				s.report(t, o, rails, err, f)
			}
			if f.fates[0] != f.fates[1] {
				continue
			}
			i := int(once)
			for g := range failuresAt(f.event, n+1, rails, false) {
				if i++; i%stride != 0 {
					continue
				}
				twice++
				if _, err := s.play(old, o, rails, nil, f, g); err != nil {
					s.report(t, o, rails, err, f, g)
				}
			}
		}
	}
	return once, twice
}

// TestExhaustionOfPosting fails a rail at every event of every flow, and posts the receives at
// every event.
func TestExhaustionOfPosting(t *testing.T) {
	stride := 11
	switch {
	case *allDoubles:
		stride = 1
	case testing.Short():
		stride = 101
	}
	var cases atomic.Int64
	t.Run("flows", func(t *testing.T) {
		for _, s := range scenarios {
			if s.late > 0 || s.store || s.load {
				continue
			}
			for rails := 1; rails <= 3; rails++ {
				t.Run(fmt.Sprintf("%s/rails=%d", s.name, rails), func(t *testing.T) {
					t.Parallel()
					cases.Add(s.exhaustPosting(t, rails, stride))
				})
			}
		}
	})
	t.Logf("%d cases (one in %d)", cases.Load(), stride)
}

func (s scenario) exhaustPosting(t *testing.T, rails, stride int) (cases int64) {
	old := &world{}
	i := 0
	for o := range orders {
		total, err := s.play(old, order(o), rails, nil)
		if err != nil {
			s.report(t, order(o), rails, err)
		}
		for f := range failuresAt(0, total+1, rails, *allDoubles) {
			for at, most := 1, 1; at <= most; at++ { // until it is posted when all else is over
				if i++; i%stride != 0 && at > 1 {
					continue
				}
				s.at = at
				cases++
				n, err := s.play(old, order(o), rails, nil, f)
				if err != nil {
					s.report(t, order(o), rails, err, f)
				}
				most = max(most, n)
			}
			s.at = 0
		}
	}
	return cases
}

// undisturbed are the changes of state of requests that do not restart.
var undisturbed = map[edge]bool{
	{Sender, "offered", "streaming"}: true, {Sender, "streaming", "gone"}: true, {Sender, "streaming", "finishing"}: true, {Receiver, "taking", "gone"}: true,
}

// rare are those of the table that take more failures at once than the test has.
var rare = map[edge]bool{
	{Receiver, "draining", "gone"}: true, {Receiver, "draining", "asking"}: true, {Receiver, "draining", "resetting"}: true, {Receiver, "draining", "overtaken"}: true,
	{Sender, "streaming", "ending"}: true, {Sender, "answered", "ending"}: true, {Receiver, "ready", "overtaken"}: true,
}

// TestDanceOfExhaustion: each change of a request's state that comes up while rails fail is in
// the table, and each of the table's comes up. A state that a request leaves when nothing of it
// is outstanding may be passed at once.
func TestDanceOfExhaustion(t *testing.T) {
	inTable, seen := map[edge]bool{}, map[edge]int{}
	for _, d := range Dance {
		inTable[edge{d.Side, d.State, d.Next}] = true
	}
	for _, s := range scenarios {
		if s.isBack || s.store || s.load || s.late > 0 {
			continue
		}
		for o := range orders {
			total, _ := s.play(nil, order(o), 2, nil)
			i := 0
			for f := range failuresAt(0, total+1, 2, false) {
				s.edges = seen
				if _, err := s.play(nil, order(o), 2, nil, f); err != nil {
					t.Fatal(err)
				}
				for g := range failuresAt(f.event, total+20, 2, false) {
					if i++; i%53 != 0 {
						continue
					}
					if _, err := s.play(nil, order(o), 2, nil, f, g); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	for e, n := range seen {
		isPassing := slices.ContainsFunc([]string{"draining", "resetting", "overtaken", "ending"}, func(mid string) bool {
			return inTable[edge{e.side, e.from, mid}] && inTable[edge{e.side, mid, e.to}]
		})
		if e.from != e.to && !inTable[e] && !undisturbed[e] && !isPassing {
			t.Errorf("not in the table, %d times: %v", n, e)
		}
	}
	for e := range inTable {
		isOfAMessage := e.from == "unmatched" || e.from == "awaited" || e.from == "gone" // which has no receive, or none any more
		if e.from != e.to && seen[e] == 0 && !isOfAMessage && !rare[e] {
			t.Errorf("never seen: %v", e)
		}
	}
}

// failuresAt yields all failures at events from one on.
func failuresAt(from, to, rails int, isMixed bool) func(yield func(failure) bool) {
	return func(yield func(failure) bool) {
		for e := from; e < to; e++ {
			for rail := range rails {
				for v := range views {
					for a := range fates {
						for b := range fates {
							if (isMixed || a == b) && !yield(failure{e, uint8(rail), v, [2]fate{a, b}}) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// report fails the test with the trace of a case.
func (s scenario) report(t *testing.T, o order, rails int, err error, failures ...failure) {
	var b strings.Builder
	_, _ = s.play(nil, o, rails, func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }, failures...)
	t.Fatalf("%s, order %d, %d rails, failures %v: %v\n%s", s.name, o, rails, failures, err, b.String())
}
