package rail

import (
	"fmt"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// fate is what becomes of the fragments that are on their way on a path when it fails. Their
// sender gets an error for each but the acknowledged.
type fate uint8

const (
	lost  fate = iota
	now        // arrive before anybody learns of the failure
	soon       // arrive a few events later
	late       // arrive after everything else
	acked      // arrive, and their acknowledgements as well: the other direction has failed
	fates
)

// seen says who learns of a failure by itself.
type seen uint8

const (
	byBoth seen = iota
	byA
	byB
	views
)

// failure is one of a rail, before an event.
type failure struct {
	event int // -1: never
	rail  uint8
	seen  seen
	fates [2]fate // of what the sides have sent
}

func (f failure) String() string {
	return fmt.Sprintf("{event %d rail %d seen %d fates %v}", f.event, f.rail, f.seen, f.fates)
}

type happening uint8

const (
	reaches happening = iota // the other side's driver
	handled                  // by the other side's core
	ackBack                  // its sender learns that it has reached the other side
	errBack                  // its sender learns that it may be lost
	calls                    // a user calls
)

type event struct {
	what  happening
	side  uint8 // whose fragment or call
	frame int
	do    func()
}

// carried is a fragment on its way.
type carried struct {
	number uint32
	path   uint8
	class  Class
	life   int // of the rail
	bytes  []byte
	isDone bool // its sender knows what became of it
	isCut  bool // it is on a path that has failed
	at     int  // bytes of it that are placed; 0: it is read whole
	isLost bool // for some there was no place
}

// wire is a rail: a path in each class.
type wire struct {
	up   [2]bool // as the sides see it
	dead bool
	life int
}

// world is two Peers and the rails between them.
type world struct {
	peers   [2]*Peer
	out     [2]Output
	rails   []wire
	frames  [2][]carried
	events  []event
	first   int
	steps   int
	time    core.Time
	arena   []byte
	delayed []event // of fate soon
	delayAt int
	last    []event // of fate late
	done    [2][]Done
	pick    func(n int) int // of the events that can be next; nil: the first
	can     []int
	trace   func(format string, args ...any)
	err     error
	most    int          // steps
	stop    int          // step before which run returns; 0: none
	edges   map[edge]int // how often a request went from state to state; nil: nobody asks
	due     func()       // nil: nothing; called at a step, or when nothing else is to come
	dueAt   int
	check   func()             // nil: nothing; called after every call of a Peer
	places  func(left int) int // bytes of a fragment that are placed now; nil: they are read whole
}

// newWorld returns one in the memory of another, or of its own.
func newWorld(rails int, configs [2]Config, choice func() scheduler, old *world) *world {
	w := &world{}
	if old != nil {
		clear(old.events)
		w.events, w.arena, w.rails, w.can = old.events[:0], old.arena[:0], old.rails[:0], old.can
		for i := range w.frames {
			clear(old.done[i])
			w.frames[i], w.done[i], w.out[i] = old.frames[i][:0], old.done[i][:0], old.out[i]
			w.out[i].Reset()
		}
		*old = *w
		w = old
	}
	w.most = 3000
	for range rails {
		w.rails = append(w.rails, wire{})
	}
	for i := range w.peers {
		configs[i].SharedPaths = true
		p, err := newPeer(configs[i], choice)
		if err != nil {
			panic(err)
		}
		w.peers[i] = p
	}
	for i := range w.rails {
		w.raise(uint8(i))
	}
	return w
}

// raise brings a rail up at both sides.
func (w *world) raise(rail uint8) {
	r := &w.rails[rail]
	r.life++
	r.dead, r.up = false, [2]bool{true, true}
	w.log("rail %d up", rail)
	for side, p := range w.peers {
		for class := range classes {
			p.PathUp(rail, class, uint32(r.life), 0, w.time, &w.out[side])
			w.collect(uint8(side))
		}
	}
}

func (w *world) log(format string, args ...any) {
	if w.trace != nil {
		w.trace(format, args...)
	}
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// call lets a user of a side call its Peer.
func (w *world) call(side uint8, do func(p *Peer, out *Output)) {
	do(w.peers[side], &w.out[side])
	w.collect(side)
}

// collect carries out what a Peer has put out.
func (w *world) collect(side uint8) {
	o := &w.out[side]
	for i := range o.Frames {
		f := &o.Frames[i]
		at := len(w.arena)
		w.arena = append(append(w.arena, f.Head...), f.Body...)
		r := &w.rails[f.Path]
		if !r.up[side] {
			w.fail("side %d sends on rail %d, which is down", side, f.Path)
		}
		switch h := &w.peers[side].net.flights[f.Number].head; h.kind {
		case kindNotify:
			w.checkDrained(side, fieldSending, h)
		case kindRestartAck:
			w.checkDrained(side, fieldReceiving, h)
		}
		c := carried{number: f.Number, path: f.Path, class: f.Class, life: r.life, bytes: w.arena[at:len(w.arena):len(w.arena)], isCut: r.dead}
		w.frames[side] = append(w.frames[side], c)
		n := len(w.frames[side]) - 1
		if w.trace != nil {
			w.log("  %c sends %s on %d", 'A'+rune(side), describe(c.bytes), f.Path)
		}
		if !r.dead {
			w.events = append(w.events, event{what: reaches, side: side, frame: n})
		}
	}
	w.done[side] = append(w.done[side], o.Done...)
	for i := range o.Done {
		w.settle(&o.Done[i])
	}
	breaks := append([]Where(nil), o.Break...)
	o.Reset()
	for _, b := range breaks {
		if w.rails[b.Path].up[side] {
			w.down(side, b.Path)
		}
	}
	if w.check != nil {
		w.check()
	}
}

// checkDrained reports a fragment of a request that is outstanding though it restarts.
func (w *world) checkDrained(side uint8, id field, h *head) {
	own := layouts[h.kind].name
	for i := range w.frames[side] {
		c := &w.frames[side][i]
		if c.isDone {
			continue
		}
		g := &w.peers[side].net.flights[c.number].head
		if g.kind == kindRecvFin || g.kind == kindNack || g.kind == kindRefused || g.kind == kindLoad || g.words[id] != h.words[id] || h.words[id] == 0 {
			continue
		}
		isSender := g.kind == kindRndv || g.kind == kindRget || g.kind == kindStore || g.kind == kindFin || g.kind == kindNotify || layouts[g.kind].class == Fragment
		if isSender == (id == fieldSending) {
			w.fail("%s while %s is outstanding", own, describe(c.bytes))
		}
	}
}

// settle takes the memory of a request back, and writes over it.
func (w *world) settle(d *Done) {
	if d.Send != nil {
		for side := range w.frames {
			for i := range w.frames[side] {
				c := &w.frames[side][i]
				if !c.isDone && c.class == Fragment && aliases(w.peers[side].net.flights[c.number].body, d.Send.Data) {
					w.fail("a send is done while %s is outstanding", describe(c.bytes))
				}
			}
		}
		scribble(d.Send.Data)
		return
	}
	if u, ok := d.Recv.User.(*outcome); ok {
		u.got = append([]byte(nil), d.Recv.Data[:d.N]...)
		u.err, u.tag = d.Err, d.Tag
		u.times++
		scribble(d.Recv.Data)
	}
}

// outcome is what became of a receive.
type outcome struct {
	got   []byte
	err   error
	tag   uint64
	times int
}

func scribble(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
}

// down lets one side learn of a failure: all its fragments on the rail get an error.
func (w *world) down(side, rail uint8) {
	r := &w.rails[rail]
	r.up[side] = false
	if !r.dead {
		w.cut(rail, [2]fate{})
	}
	w.log("%c: rail %d down", 'A'+rune(side), rail)
	for class := range classes {
		w.peers[side].PathDown(rail, class, w.time, &w.out[side])
	}
	for i := range w.frames[side] {
		c := &w.frames[side][i]
		if c.path == rail && c.life == r.life && !c.isDone {
			c.isDone = true
			w.events = append(w.events, event{what: errBack, side: side, frame: i})
		}
	}
	w.collect(side)
}

// cut ends a rail; nobody knows yet.
func (w *world) cut(rail uint8, fates [2]fate) {
	r := &w.rails[rail]
	r.dead = true
	kept := w.events[w.first:w.first]
	var atOnce []event
	for _, e := range w.events[w.first:] {
		c := (*carried)(nil)
		if e.what == reaches || e.what == ackBack {
			c = &w.frames[e.side][e.frame]
		}
		if c == nil || c.path != rail || c.life != r.life {
			kept = append(kept, e)
			continue
		}
		f := fates[e.side]
		if e.what == ackBack {
			if f == acked {
				atOnce = append(atOnce, e)
			}
			continue // else the acknowledgement is lost
		}
		c.isCut = true
		e.what = handled
		switch f {
		case now, acked:
			atOnce = append(atOnce, e)
			if f == acked {
				atOnce = append(atOnce, event{what: ackBack, side: e.side, frame: e.frame})
			}
		case soon:
			w.delayed = append(w.delayed, e)
			w.delayAt = w.steps + 5
		case late:
			w.last = append(w.last, e)
		}
	}
	w.events = w.events[:w.first+len(kept)]
	for _, e := range atOnce {
		w.happen(e)
	}
}

// inject fails a rail.
func (w *world) inject(f failure) {
	w.log("failure %v", f)
	// A rail is the last one if no other works for both sides.
	hasOther := false
	for i := range w.rails {
		r := &w.rails[i]
		hasOther = hasOther || uint8(i) != f.rail && !r.dead && r.up[0] && r.up[1]
	}
	for i := range w.rails {
		if !hasOther && w.rails[i].dead && uint8(i) != f.rail {
			w.recover(uint8(i))
			hasOther = true
		}
	}
	if r := &w.rails[f.rail]; r.dead {
		w.recover(f.rail)
	}
	w.cut(f.rail, f.fates)
	for side := range w.peers {
		isSeen := f.seen == byBoth || f.seen == byA && side == 0 || f.seen == byB && side == 1
		if isSeen && w.rails[f.rail].up[side] {
			w.down(uint8(side), f.rail)
		}
	}
}

// recover lets all learn of a failure, and brings the rail up again.
func (w *world) recover(rail uint8) {
	for side := range w.peers {
		if w.rails[rail].up[side] {
			w.down(uint8(side), rail)
		}
	}
	w.raise(rail)
}

// isCutOff reports that no rail is left, and both sides know it: then they call each other.
func (w *world) isCutOff() bool {
	return !slices.ContainsFunc(w.rails, func(r wire) bool { return !r.dead || r.up != [2]bool{} })
}

// after lets an event happen after n others.
func (w *world) after(n int, e event) {
	if n == 0 {
		w.events = append(w.events, e)
		return
	}
	w.events = append(w.events, event{what: calls, side: e.side, do: func() { w.after(n-1, e) }})
}

// happen carries out one event.
func (w *world) happen(e event) {
	if e.what == calls {
		e.do()
		return
	}
	c := &w.frames[e.side][e.frame]
	switch e.what {
	case reaches:
		if w.places != nil && w.place(1-e.side, c, false) {
			w.events = slices.Insert(w.events, w.first, e) // before others of its path
			return
		}
		w.events = append(w.events, event{what: handled, side: e.side, frame: e.frame}, event{what: ackBack, side: e.side, frame: e.frame})
	case handled:
		to := 1 - e.side
		if w.trace != nil {
			w.log("%c gets %s on %d", 'A'+rune(to), describe(c.bytes), c.path)
		}
		defer w.observe(to)()
		if c.at > 0 {
			w.place(to, c, true)
			w.placed(to, c)
			return
		}
		if err := w.peers[to].Arrived(c.path, c.class, c.bytes, w.time, &w.out[to]); err != nil {
			w.fail("%s: %v", describe(c.bytes), err)
		}
		w.collect(to)
	case ackBack, errBack:
		if e.what == ackBack && c.isDone {
			return
		}
		c.isDone = true
		if w.trace != nil {
			w.log("%c: %s %v", 'A'+rune(e.side), describe(c.bytes), map[bool]string{true: "confirmed", false: "in error"}[e.what == ackBack])
		}
		defer w.observe(e.side)()
		w.peers[e.side].Sent(c.number, e.what == ackBack, w.time, &w.out[e.side])
		w.collect(e.side)
	}
}

// place has some of a fragment, or all, be read to its place, and reports whether more is to come.
func (w *world) place(to uint8, c *carried, isAll bool) (isMore bool) {
	size := len(c.bytes)
	if c.class != Fragment || size <= BeginSize || c.at == size {
		return false
	}
	n := size - max(c.at, BeginSize)
	if !isAll {
		n = w.places(n)
	}
	body := w.peers[to].Place(c.class, c.bytes[:BeginSize], size)
	switch {
	case body == nil && c.at == 0:
		return false
	case body == nil:
		c.isLost = true
	}
	from := max(c.at, BeginSize)
	c.at = from + n
	if head := size - len(body); body != nil {
		copy(body, c.bytes[head:BeginSize])
		copy(body[from-head:], c.bytes[from:c.at])
	}
	w.log("%c places up to %d of %d of %s: %v", 'A'+rune(to), c.at, size, describe(c.bytes), body != nil)
	return c.at < size
}

// placed hands on a fragment that was placed.
func (w *world) placed(to uint8, c *carried) {
	p, out := w.peers[to], &w.out[to]
	var err error
	if c.isLost {
		err = p.Arrived(c.path, c.class, c.bytes[:BeginSize], w.time, out)
	} else {
		err = p.Placed(c.bytes[:BeginSize], len(c.bytes), w.time, out)
	}
	if err != nil {
		w.fail("%s: %v", describe(c.bytes), err)
	}
	w.collect(to)
}

// run lets everything happen, with failures before some events. It returns the number of events.
func (w *world) run(failures ...failure) int {
	for w.err == nil {
		if w.stop > 0 && w.steps >= w.stop {
			break
		}
		if w.steps > w.most {
			w.fail("it does not end")
			break
		}
		if len(failures) > 0 && failures[0].event == w.steps {
			w.inject(failures[0])
			failures = failures[1:]
		}
		if w.isCutOff() {
			w.raise(0)
		}
		if len(w.delayed) > 0 && (w.steps >= w.delayAt || w.first == len(w.events)) {
			w.events = append(w.events, w.delayed...)
			w.delayed = nil
		}
		if due := w.due; due != nil && (w.steps >= w.dueAt || w.first == len(w.events)) {
			w.due = nil
			due()
		}
		if w.first < len(w.events) {
			w.steps++
			w.time += core.Time(10 * time.Microsecond)
			e := w.events[w.first]
			if w.pick != nil {
				i := w.choose()
				e = w.events[i]
				copy(w.events[w.first+1:i+1], w.events[w.first:i])
			}
			w.first++
			w.happen(e)
			continue
		}
		if !w.judge() {
			break
		}
	}
	return w.steps
}

// choose picks an event that can be next: those of a path and side keep their order.
func (w *world) choose() int {
	can := w.can[:0]
	for i := w.first; i < len(w.events); i++ {
		isFirst := true
		for j := w.first; j < i && isFirst; j++ {
			isFirst = !w.mustPrecede(&w.events[j], &w.events[i])
		}
		if isFirst {
			can = append(can, i)
		}
	}
	w.can = can
	return can[w.pick(len(can))]
}

func (w *world) mustPrecede(a, b *event) bool {
	if a.side != b.side || (a.what == calls) != (b.what == calls) {
		return false
	}
	if a.what == calls {
		return true
	}
	isCompletion := func(e *event) bool { return e.what == ackBack || e.what == errBack }
	c, d := &w.frames[a.side][a.frame], &w.frames[b.side][b.frame]
	return c.path == d.path && c.class == d.class && (a.what == b.what || isCompletion(a) && isCompletion(b))
}

// judge lets sides learn of dead rails, as the probes of a driver do, and else lets time
// pass. It returns false if there are none, and nothing waits for a time.
func (w *world) judge() bool {
	for i := range w.rails {
		for side := range w.peers {
			if r := &w.rails[i]; r.dead && r.up[side] {
				w.down(uint8(side), uint8(i))
				return true
			}
		}
	}
	for side, p := range w.peers {
		if at := p.Deadline(); at != core.Never {
			w.time = max(at, w.time)
			w.steps++
			p.Tick(w.time, &w.out[side])
			w.collect(uint8(side))
			return true
		}
	}
	return false
}

// afterlife delivers what comes last of all.
func (w *world) afterlife() {
	w.events = append(w.events[:w.first], w.last...)
	w.last = nil
	w.run()
}
