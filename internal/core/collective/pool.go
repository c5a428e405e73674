package collective

// classes are the sizes of buffers, in bytes. Larger ones are made as needed
// and not kept.
var classes = [...]int{512, 4 << 10, 64 << 10, 1<<20 + 4<<10}

// receiveClass is the class of buffers for requests.
const receiveClass = 1

// keep is the most buffers of a class that wait to be used again, but for those
// that receive requests.
const keep = 64

// buffer is memory with several holders.
type buffer struct {
	b     []byte
	class int8 // -1: none
	refs  int32
}

// pool lends buffers, never refuses, and counts. As many receive buffers as it
// was told to keep are ready: once half of them are lent it makes the others
// anew, before they are asked for.
type pool struct {
	free    [len(classes)][]*buffer
	ready   int // receive buffers to keep ready
	lent    int
	refills int
}

func newPool(ready int) *pool {
	p := &pool{ready: ready}
	p.refill()
	p.refills = 0
	return p
}

func (p *pool) refill() {
	if len(p.free[receiveClass]) > p.ready/2 {
		return
	}
	p.refills++
	for len(p.free[receiveClass]) < p.ready {
		p.free[receiveClass] = append(p.free[receiveClass], &buffer{b: make([]byte, 0, classes[receiveClass]), class: receiveClass})
	}
}

// get lends an empty buffer of at least so many bytes.
func (p *pool) get(size int) *buffer {
	p.lent++
	for class, n := range classes {
		if size > n {
			continue
		}
		free := p.free[class]
		if len(free) == 0 {
			return &buffer{b: make([]byte, 0, n), class: int8(class), refs: 1}
		}
		b := free[len(free)-1]
		p.free[class] = free[:len(free)-1]
		b.b, b.refs = b.b[:0], 1
		if class == receiveClass {
			p.refill()
		}
		return b
	}
	return &buffer{b: make([]byte, 0, size), class: -1, refs: 1}
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
	if b.class < 0 {
		return
	}
	most := keep
	if b.class == receiveClass {
		most = p.ready
	}
	if len(p.free[b.class]) < most {
		p.free[b.class] = append(p.free[b.class], b)
	}
}
