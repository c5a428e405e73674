package peer

import (
	"slices"
	"sync"
)

// bufferClasses are the sizes of what waits to be sent: each fits so many frames of 64 KiB,
// or records of TLS, with a little beside.
var bufferClasses = [...]int{4 << 10, 20 << 10, 64<<10 + 4<<10, 256<<10 + 8<<10, 1<<20 + 64<<10, 4<<20 + 256<<10}

// buffersKept are how many of a class are kept. A sync.Pool keeps none of the large ones:
// each collection, which they bring about, empties it.
var buffersKept = [...]int{64, 64, 64, 16, 8, 4}

// buffers are the memory of what waits to be sent, while it does, by class.
var buffers [len(bufferClasses)]struct {
	mu   sync.Mutex
	free spares[[]byte]
}

// buffer is memory of buffers that grows. Its zero value has none.
type buffer struct {
	b      []byte
	isKept bool // it is not used again
}

// reserve makes room for n more bytes.
func (b *buffer) reserve(n int) {
	need := len(b.b) + n
	if need <= cap(b.b) {
		return
	}
	next := append(lend(need, cap(b.b)), b.b...)
	b.release()
	b.b = next
}

// lend returns memory for at least so many bytes, in place of less.
func lend(need, before int) []byte {
	class := slices.IndexFunc(bufferClasses[:], func(n int) bool { return need <= n })
	if class < 0 {
		return make([]byte, 0, max(need, 2*before))
	}
	p := &buffers[class]
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.free.take(); ok {
		return b
	}
	return make([]byte, 0, bufferClasses[class])
}

// append appends bytes.
func (b *buffer) append(p []byte) {
	b.reserve(len(p))
	b.b = append(b.b, p...)
}

// keep has the memory not be used again by others when it is outgrown.
func (b *buffer) keep() { b.isKept = true }

// release gives the memory back.
func (b *buffer) release() {
	class := slices.Index(bufferClasses[:], cap(b.b))
	if class >= 0 && !b.isKept {
		p := &buffers[class]
		p.mu.Lock()
		p.free.put(b.b[:0], buffersKept[class])
		p.mu.Unlock()
	}
	*b = buffer{}
}
