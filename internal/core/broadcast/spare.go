package broadcast

// Bounds of what is kept to be used again, so that one large request does not
// stay in memory as long as the node lives.
const (
	spareMost     = 1024    // requests, and messages under way
	spareChildren = 64      // of a request
	spareTail     = 4 << 10 // bytes of its reply
)

// spares are structures that wait to be used again: a broadcast at a node in
// steady state takes no new memory.
type spares struct {
	requests []*request
	ended    []*request // by the call in progress, which may still look at them
	sends    []*outbound
}

// request returns an empty one.
func (s *spares) request() *request {
	r := take(&s.requests)
	r.alarm.Of = r
	return r
}

// end takes a request that has ended, to be used again after this call.
func (s *spares) end(r *request) { s.ended = append(s.ended, r) }

// recycle makes those that have ended ready to be used again.
func (s *spares) recycle() {
	for i, r := range s.ended {
		s.ended[i] = nil
		if len(s.requests) < spareMost && cap(r.children) <= spareChildren {
			r.empty()
			s.requests = append(s.requests, r)
		}
	}
	s.ended = s.ended[:0]
}

// empty forgets all but the memory that can be used again.
func (r *request) empty() {
	for i := range r.children {
		r.children[i] = child{parts: r.children[i].parts[:0]}
	}
	tail := r.tail[:0]
	if cap(tail) > spareTail {
		tail = nil
	}
	*r = request{children: r.children[:0], answer: answer{tail: tail}}
}

// place gives r its place in a tree, with a child for each branch.
func (r *request) place(t *route) {
	r.route, r.open, r.oldest = t, len(t.children), len(t.children)-1
	if cap(r.children) < r.open {
		r.children = make([]child, r.open)
	}
	r.children = r.children[:r.open]
}

// send returns an empty message under way.
func (s *spares) send() *outbound {
	o := take(&s.sends)
	o.alarm.Of = o
	return o
}

// take takes the last of a list, or makes a new one.
func take[T any](list *[]*T) *T {
	n := len(*list)
	if n == 0 {
		return new(T)
	}
	last := (*list)[n-1]
	*list = (*list)[:n-1]
	return last
}

// sent takes a message that is not under way any more.
func (s *spares) sent(o *outbound) {
	if len(s.sends) < spareMost {
		*o = outbound{}
		s.sends = append(s.sends, o)
	}
}
