package broadcast

// classes are the sizes of buffers, in bytes. Larger ones are made as needed
// and not kept.
var classes = [...]int{512, 4 << 10, 64 << 10, 1<<20 + 4<<10}

// receiveClass is the class of buffers for requests.
const receiveClass = 1

// period is how many buffers of a class come back until it is asked anew how
// many are needed.
const period = 1024

// buffer is memory with several holders.
type buffer struct {
	b     []byte
	class int8 // -1: none
	refs  int32
}

// shelf is the buffers of a class. As many as were lent at once in this period
// or the last wait to be used again, and some more.
type shelf struct {
	free  []*buffer
	some  int
	lent  int
	peak  int // lent at once in this period
	past  int // and in the one before
	until int // buffers that come back in this period
}

// pool lends buffers, never refuses, and counts. As many receive buffers as it
// was to keep are ready: once half of them are lent it makes the others
// anew, before they are asked for.
type pool struct {
	shelves [len(classes)]shelf
	lent    int
	refills int
}

func newPool(ready int) *pool {
	p := &pool{shelves: [...]shelf{{some: 64}, receiveClass: {some: ready}, {some: 16}, {some: 2}}}
	p.refill()
	p.refills = 0
	return p
}

func (p *pool) refill() {
	s := &p.shelves[receiveClass]
	if len(s.free) > s.some/2 {
		return
	}
	p.refills++
	for len(s.free) < s.some {
		s.free = append(s.free, &buffer{b: make([]byte, 0, classes[receiveClass]), class: receiveClass})
	}
}

// get lends an empty buffer of at least so many bytes.
func (p *pool) get(size int) *buffer {
	p.lent++
	for class := range classes {
		if size <= classes[class] {
			b := p.shelves[class].get(class)
			if class == receiveClass {
				p.refill()
			}
			return b
		}
	}
	return &buffer{b: make([]byte, 0, size), class: -1, refs: 1}
}

func (s *shelf) get(class int) *buffer {
	s.lent++
	s.peak = max(s.peak, s.lent)
	last := len(s.free) - 1
	if last < 0 {
		return &buffer{b: make([]byte, 0, classes[class]), class: int8(class), refs: 1}
	}
	b := s.free[last]
	s.free[last] = nil
	s.free = s.free[:last]
	b.b, b.refs = b.b[:0], 1
	return b
}

// put takes a buffer back, and drops those that were not needed lately.
func (s *shelf) put(b *buffer) {
	s.lent--
	s.free = append(s.free, b)
	if s.until--; s.until <= 0 {
		s.past, s.peak, s.until = s.peak, s.lent, period
	}
	for keep := s.some + max(s.peak, s.past); len(s.free) > keep; {
		last := len(s.free) - 1
		s.free[last] = nil
		s.free = s.free[:last]
	}
}

// copyOf lends a buffer that holds what b does.
func (p *pool) copyOf(b []byte) *buffer {
	c := p.get(len(b))
	c.b = append(c.b, b...)
	return c
}

// release ends one hold of b; nil has none.
func (p *pool) release(b *buffer) {
	if b == nil {
		return
	}
	if b.refs--; b.refs > 0 {
		return
	}
	p.lent--
	if b.class >= 0 {
		p.shelves[b.class].put(b)
	}
}
