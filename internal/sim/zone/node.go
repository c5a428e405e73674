package zone

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// item is something that arrives at a node.
type item struct {
	input member.Input
	from  int32 // of a datagram
	size  int   // of an attachment

	checked bool // births were
}

// cost returns how long an item takes its receiver.
func (w *World) cost(it *item) int64 {
	switch c := &w.cfg.Cost; it.input.Kind {
	case member.Beat:
		return int64(c.Beat)
	case member.Received, member.Datagram:
		return int64(c.of(it.input.Message))
	case member.Attached:
		return int64(c.Message) + int64(c.Byte)*int64(it.size)>>10
	}
	return 0
}

// arrive gives an item to a node, or lays it into its inbox.
func (w *World) arrive(i int32, it *item) {
	n := &w.nodes[i]
	if it.input.Kind == member.Datagram && it.from >= 0 && w.dropped(it.from, i) {
		return
	}
	if !n.up || n.dead {
		return
	}
	if m := it.input.Message; m != nil && m.Type == gossip.Births && it.input.Kind == member.Received && !it.checked {
		w.check(i, it)
		return
	}
	if n.busy > w.now || n.head < len(n.inbox) {
		n.inbox = append(n.inbox, *it)
		w.await(i)
		return
	}
	w.take(i, it)
}

// await sees to it that a busy node takes what has come.
func (w *World) await(i int32) {
	if n := &w.nodes[i]; !n.waiting {
		n.waiting = true
		w.queue.Push(max(n.busy, w.now), event{kind: readyDue, node: i})
	}
}

func (w *World) ready(i int32) {
	n := &w.nodes[i]
	n.waiting = false
	if n.head == len(n.inbox) {
		return
	}
	it := n.inbox[n.head]
	n.inbox[n.head] = item{}
	if n.head++; n.head == len(n.inbox) {
		n.inbox, n.head = n.inbox[:0], 0
	}
	if n.up && !n.dead {
		w.take(i, &it)
	}
	if n.head < len(n.inbox) {
		w.await(i)
	}
}

// take steps a node with an item; what it sends leaves when the item's time is
// over.
func (w *World) take(i int32, it *item) {
	n := &w.nodes[i]
	n.busy = w.now + core.Time(w.cost(it))
	w.one[0] = it.input
	w.step(i, w.one[:])
}

func (w *World) timer(i int32) {
	n := &w.nodes[i]
	if n.timer != w.now {
		return // superseded by an earlier one
	}
	n.timer = core.Never
	switch {
	case !n.up || n.dead:
	case n.deadline > w.now:
		w.arm(i)
	case n.busy > w.now:
		n.timer = n.busy
		w.queue.Push(n.busy, event{kind: timerDue, node: i})
	default:
		w.step(i, nil)
	}
}

// arm sees to it that a node is stepped at its deadline.
func (w *World) arm(i int32) {
	n := &w.nodes[i]
	if at := max(n.deadline, w.now); n.deadline != core.Never && at < n.timer {
		n.timer = at
		w.queue.Push(at, event{kind: timerDue, node: i})
	}
}

// step steps a node and does what it wants.
func (w *World) step(i int32, batch []member.Input) {
	n := &w.nodes[i]
	w.out.Reset()
	n.step.Step(w.now, batch, &w.out)
	w.perform(i)
	n.deadline = n.step.Deadline()
	w.arm(i)
	w.judge(i)
	if w.cfg.Observe != nil {
		w.cfg.Observe(int(i), w.now, &w.out)
	}
	if w.out.Stopped && n.up {
		w.end(i)
	}
}

// judge keeps count of whose view is as it should be.
func (w *World) judge(i int32) {
	n := &w.nodes[i]
	agree := n.up && n.core.Census() == w.expected
	if agree != n.agree {
		n.agree = agree
		if agree {
			w.agreeing++
		} else {
			w.agreeing--
		}
	}
}

// expect changes who is up.
func (w *World) expect(life gossip.Life) {
	w.expected ^= life
	for i := range w.nodes {
		w.judge(int32(i))
	}
}

// perform does what a node's step wants done.
func (w *World) perform(i int32) {
	n, out := &w.nodes[i], &w.out
	at := max(w.now, n.busy)
	for k := range out.Dials {
		w.dial(i, at, out.Dials[k])
	}
	for k := range out.Sends {
		s := &out.Sends[k]
		w.count(s.Message)
		w.Traffic.Frames++
		w.write(i, at, s.Link, item{input: member.Input{Kind: member.Received, Message: s.Message}})
	}
	for k := range out.Attached {
		a := &out.Attached[k]
		w.Traffic.Frames++
		w.Traffic.ByType[gossip.Attributes]++
		w.write(i, at, a.Link, item{input: member.Input{Kind: member.Attached, Payload: a.Payload}, size: a.Size})
	}
	for k := range out.Packets {
		w.packet(i, at, out.Packets[k].To, out.Packets[k].Message)
	}
	for k := range out.Pulses {
		p := &out.Pulses[k]
		w.Traffic.Beats++
		if !w.lost() {
			w.queue.Push(at.Add(w.delay()), event{kind: pulseDue, node: int32(p.To), conn: i, pulse: p.Pulse})
		}
	}
	for _, link := range out.Closes {
		w.close(i, at, link)
	}
}

func (w *World) count(m *member.Message) {
	w.Traffic.Entries += uint64(entries(m))
	w.Traffic.ByType[m.Type]++
	w.mix(uint64(m.Type)<<32 ^ uint64(entries(m)))
}

// packet sends a datagram, in as many pieces as it takes.
func (w *World) packet(from int32, at core.Time, to member.Index, m *member.Message) {
	for k := range pieces(m) {
		p := m
		if pieces(m) > 1 {
			cut := *m
			low := min(k*entriesInDatagram, len(m.Alives))
			cut.Alives = m.Alives[low:min(low+entriesInDatagram, len(m.Alives))]
			if k > 0 {
				cut.Leaves, cut.Suspicions = nil, nil
			}
			p = &cut
		}
		w.count(p)
		w.Traffic.Packets++
		if !w.lost() {
			w.queue.Push(at.Add(w.delay()), event{kind: packetDue, node: int32(to), item: &item{input: member.Input{Kind: member.Datagram, Message: p}, from: from}})
		}
	}
}

func (w *World) pulse(e *event) {
	if w.dropped(e.conn, e.node) {
		return
	}
	w.arrive(e.node, &item{input: member.Input{Kind: member.Beat, Pulse: e.pulse}, from: e.conn})
}
