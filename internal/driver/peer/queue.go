package peer

import "slices"

// queue is what waits to be sent.
type queue struct {
	out  buffer // frames, copied
	sent int    // of out
	mark []mark // of frames in out
	lent []lent // of the classes that lend, behind out
	room []lent // that lent lies in
	size int    // bytes
}

// mark is the end, in a queue's out, of a frame with a number.
type mark struct {
	service Service
	number  uint64
	end     int
}

// lent is a frame that is sent from where it lies.
type lent struct {
	head    [headMost]byte
	heads   uint8 // bytes of head
	body    []byte
	service Service
	number  uint64
	isLent  bool // body is the service's, which waits for the writer when it is unregistered

	isTracked bool // the other side acknowledges it
}

// headMost are the most bytes before what is lent: the head of a segment, with its number,
// and that of a frame in it; or the head of a frame in class Fragment, and its Head.
const headMost = 64

// size returns the bytes of the frame.
func (f *lent) size() int { return (int(f.heads) + len(f.body) + align - 1) &^ (align - 1) }

func (q *queue) isEmpty() bool { return len(q.out.b) == q.sent && len(q.lent) == 0 && len(q.mark) == 0 }

func (q *queue) put(class Class, s *Send) {
	if class.lends() {
		f := lent{heads: HeadSize, body: s.Body, service: s.Service, number: s.Number, isLent: s.Number != 0}
		head := appendHead(f.head[:0], s.Service, s.Stream, len(s.Head)+len(s.Body))
		switch {
		case class == Fragment && s.Number != 0 && len(s.Head) <= headMost-HeadSize:
			f.heads = uint8(len(append(head, s.Head...)))
		case s.Number == 0 || len(s.Head) > 0:
			f.body = slices.Concat(s.Head, s.Body)
		}
		q.push(&f)
		return
	}
	q.copy(s)
	if s.Number != 0 {
		q.mark = append(q.mark, mark{s.Service, s.Number, len(q.out.b)})
	}
}

// push lays a frame that is lent behind those that wait.
func (q *queue) push(f *lent) {
	if n := len(q.lent); n == cap(q.lent) {
		if 2*n >= cap(q.room) {
			q.room = make([]lent, 0, max(8, 4*n))
		}
		moved := append(q.room[:0], q.lent...)
		clear(moved[n:cap(moved)])
		q.lent = moved
	}
	q.lent = append(q.lent, *f)
	q.size += f.size()
}

// copy lays a copy of a frame behind what was copied.
func (q *queue) copy(s *Send) {
	n := padded(len(s.Head) + len(s.Body))
	if len(q.out.b)+n > cap(q.out.b) && q.sent > len(q.out.b)/2 {
		q.forgetSent()
	}
	q.out.reserve(n)
	before := len(q.out.b)
	q.out.b = appendFrame(q.out.b, s.Service, s.stream(), s.Head, s.Body)
	q.size += len(q.out.b) - before
}

// forgetSent moves what is not sent to the front.
func (q *queue) forgetSent() {
	q.out.b = q.out.b[:copy(q.out.b, q.out.b[q.sent:])]
	for i := range q.mark {
		q.mark[i].end -= q.sent
	}
	q.sent = 0
}

// putLast lays what says that nothing follows behind all others.
func (q *queue) putLast(class Class) {
	s := Send{Service: itself, Body: []byte{goaway}}
	if class.lends() {
		q.put(class, &s)
	} else {
		q.copy(&s)
	}
}
