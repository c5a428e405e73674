package sim

import "github.com/tributary-fabric/tributary/internal/core"

// due is what an event is about.
type due uint8

const (
	timerDue    due = iota // node: its deadline may have come
	wakeDue                // node: takes its inbox
	datagramDue            // path, port, from, bytes
	itemDue                // path, stream, token: the item's number
	connectDue             // path, token: of the connection's last attempt
	patienceDue            // path, token: of the connection's last attempt or cut
	callDue                // call
)

type event struct {
	kind       due
	stream     uint8
	from, port uint16
	node       NodeID
	path       int32
	token      uint64
	bytes      []byte
	call       *call
}

// call is a function to be called by the world.
type call struct {
	name string
	do   func()
}

// queue is a heap of events by time, those of equal time in the order in which
// they were pushed. The heap's own entries are small, since they are what moves.
type queue struct {
	heap   []key
	events []event // by key.slot
	free   []int32
	pushed uint64
}

type key struct {
	at   core.Time
	seq  uint64
	slot int32
}

func (k key) before(l key) bool { return k.at < l.at || k.at == l.at && k.seq < l.seq }

// fan is the children of a node of the heap: with four the tree is half as
// high as with two, and all four lie in two lines of cache.
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
		if !k.before(q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = k
}

func (q *queue) empty() bool { return len(q.heap) == 0 }

// top returns the time of the next event, and the event until the next push or
// pop.
func (q *queue) top() (core.Time, *event) {
	return q.heap[0].at, &q.events[q.heap[0].slot]
}

// pop removes and returns the next event.
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
	for {
		first := i*fan + 1
		if first >= n {
			break
		}
		least := first
		for child := first + 1; child < min(first+fan, n); child++ {
			if q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if !q.heap[least].before(k) {
			break
		}
		q.heap[i] = q.heap[least]
		i = least
	}
	q.heap[i] = k
	return e
}
