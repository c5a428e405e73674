package fairqueue

import "container/heap"

// scale is the tag that a cost of 1 takes at a weight of 1.
const scale = 1 << 12

// MaxCost is the largest cost of a request: what is larger counts as that.
const MaxCost = 1 << 24

// Request is one who waits.
type Request[T any] struct {
	Of   T
	cost int64
	flow *turn[T] // nil: it waits no longer

	prev, next *Request[T]
}

// Waits reports whether r is in the queue.
func (r *Request[T]) Waits() bool { return r.flow != nil }

// Queue is those who wait. Its zero value is empty. It is not for concurrent use.
type Queue[T any] struct {
	classes level[T]
	waiting int
}

// turn is a class, or a flow of one.
type turn[T any] struct {
	name   string
	weight int64
	tag    int64
	place  int    // in level.heap, from 1; 0: it has nothing waiting
	order  uint64 // of its last coming into the heap, for equal tags

	of    *turn[T] // flow: its class
	flows level[T] // class

	first, last *Request[T] // flow: what waits
}

// level is all classes, or all flows of one class.
type level[T any] struct {
	all    map[string]*turn[T]
	heap   []*turn[T] // those that have something waiting, the lowest tag first
	now    int64      // the tag of what was served last
	orders uint64
	swept  int // turns that the last sweep has left
}

// Len returns how many requests wait.
func (q *Queue[T]) Len() int { return q.waiting }

// Push has one wait: in a flow, of a class with a weight of 1 or more. A flow that is of
// no class is one by itself: class is then its name.
func (q *Queue[T]) Push(class string, weight int, flow string, cost int, of T) *Request[T] {
	f := q.flow(class, weight, flow)
	r := &Request[T]{Of: of, cost: min(int64(max(cost, 1)), MaxCost), flow: f, prev: f.last}
	if f.last != nil {
		f.last.next = r
	} else {
		f.first = r
	}
	f.last = r
	q.waiting++
	f.of.flows.wait(f)
	q.classes.wait(f.of)
	return r
}

func (q *Queue[T]) flow(class string, weight int, flow string) *turn[T] {
	c := q.classes.find(class)
	c.weight = int64(max(weight, 1))
	f := c.flows.find(flow)
	f.weight, f.of = 1, c
	return f
}

// Pop serves the next one; false: nobody waits.
func (q *Queue[T]) Pop() (of T, ok bool) {
	if q.waiting == 0 {
		return of, false
	}
	c := q.classes.heap[0]
	f := c.flows.heap[0]
	r := f.first
	q.classes.now, c.flows.now = c.tag, f.tag
	c.charge(r.cost)
	f.charge(r.cost)
	c.flows.fix(f)
	q.classes.fix(c)
	q.Remove(r)
	return r.Of, true
}

// Remove has one wait no longer. It may have been removed, or served, before.
func (q *Queue[T]) Remove(r *Request[T]) {
	f := r.flow
	if f == nil {
		return
	}
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		f.first = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		f.last = r.prev
	}
	r.flow, r.prev, r.next = nil, nil, nil
	if q.waiting--; f.first == nil {
		if f.of.flows.leave(f); len(f.of.flows.heap) == 0 {
			q.classes.leave(f.of)
		}
	}
}

// Charge has a flow's later turns come later, for what it had without waiting.
func (q *Queue[T]) Charge(class string, weight int, flow string, cost int) {
	if q.waiting == 0 {
		return // nobody is delayed
	}
	f := q.flow(class, weight, flow)
	c := min(int64(max(cost, 1)), MaxCost)
	for _, x := range []struct {
		l *level[T]
		t *turn[T]
	}{{&f.of.flows, f}, {&q.classes, f.of}} {
		x.t.tag = max(x.t.tag, x.l.now)
		x.t.charge(c)
		x.l.fix(x.t)
	}
}

func (t *turn[T]) charge(cost int64) { t.tag += cost * scale / t.weight }

// find returns the turn of a name, which is there afterwards.
func (l *level[T]) find(name string) *turn[T] {
	t := l.all[name]
	if t == nil {
		if l.all == nil {
			l.all = map[string]*turn[T]{}
		}
		l.sweep()
		t = &turn[T]{name: name, tag: l.now}
		l.all[name] = t
	}
	return t
}

// sweep forgets who waits for nothing and owes nothing, once there are many.
func (l *level[T]) sweep() {
	if len(l.all) < 2*l.swept+64 {
		return
	}
	for name, t := range l.all {
		if t.place == 0 && t.tag <= l.now {
			delete(l.all, name)
		}
	}
	l.swept = len(l.all)
}

// wait has t be among those that have something waiting.
func (l *level[T]) wait(t *turn[T]) {
	if t.place > 0 {
		return
	}
	l.orders++
	t.tag, t.order = max(t.tag, l.now), l.orders
	heap.Push(l, t)
}

// leave takes t out of them. When it was the last one, all begin anew.
func (l *level[T]) leave(t *turn[T]) {
	if heap.Remove(l, t.place-1); len(l.heap) == 0 {
		*l = level[T]{}
	}
}

// fix puts t where its tag has it, if it is in the heap.
func (l *level[T]) fix(t *turn[T]) {
	if t.place > 0 {
		heap.Fix(l, t.place-1)
	}
}

func (l *level[T]) less(a, b *turn[T]) bool {
	return a.tag < b.tag || a.tag == b.tag && a.order < b.order
}

// Len implements heap.Interface, as the next methods do.
func (l *level[T]) Len() int           { return len(l.heap) }
func (l *level[T]) Less(i, j int) bool { return l.less(l.heap[i], l.heap[j]) }
func (l *level[T]) Swap(i, j int) {
	l.heap[i], l.heap[j] = l.heap[j], l.heap[i]
	l.heap[i].place, l.heap[j].place = i+1, j+1
}

func (l *level[T]) Push(x any) {
	t := x.(*turn[T])
	l.heap = append(l.heap, t)
	t.place = len(l.heap)
}

func (l *level[T]) Pop() any {
	last := len(l.heap) - 1
	t := l.heap[last]
	l.heap[last] = nil
	l.heap = l.heap[:last]
	t.place = 0
	return t
}
