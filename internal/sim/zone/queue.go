package zone

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// what is due.
type due uint8

const (
	timerDue  due = iota // node: its deadline may have come
	readyDue             // node: takes the next of its inbox
	packetDue            // node: item
	pulseDue             // node: tag, sequence, turns
	dialDue              // conn: the dial is at the other end
	answerDue            // conn: its answer is back
	streamDue            // conn, side: the next of its stream
	callDue              // call
)

type event struct {
	kind  due
	side  uint8
	node  int32
	life  uint32
	conn  int32
	pulse gossip.Pulse
	item  *item
	call  func()
}

// queue is a heap of events by time, those of equal time in the order in which
// they were pushed.
type queue struct {
	heap   []key
	events []event
	free   []int32
	pushed uint64
}

type key struct {
	at   core.Time
	seq  uint64
	slot int32
}

func (k *key) before(l *key) bool { return k.at < l.at || k.at == l.at && k.seq < l.seq }

const fan = 4

func (q *queue) push(at core.Time, e event) {
	var slot int32
	if n := len(q.free); n > 0 {
		slot, q.free = q.free[n-1], q.free[:n-1]
		q.events[slot] = e
	} else {
		slot = int32(len(q.events))
		q.events = append(q.events, e)
	}
	k := key{at, q.pushed, slot}
	q.pushed++
	i := len(q.heap)
	q.heap = append(q.heap, k)
	for i > 0 {
		parent := (i - 1) / fan
		if !k.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = k
}

func (q *queue) next() core.Time {
	if len(q.heap) == 0 {
		return core.Never
	}
	return q.heap[0].at
}

func (q *queue) pop() event {
	slot := q.heap[0].slot
	e := q.events[slot]
	q.events[slot] = event{}
	q.free = append(q.free, slot)
	n := len(q.heap) - 1
	k := q.heap[n]
	q.heap = q.heap[:n]
	if n == 0 {
		return e
	}
	i := 0
	for first := 1; first < n; first = i*fan + 1 {
		least := first
		for child := first + 1; child < min(first+fan, n); child++ {
			if q.heap[child].before(&q.heap[least]) {
				least = child
			}
		}
		if !q.heap[least].before(&k) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = k
	return e
}
