package peer

import (
	"slices"
	"sync"
)

// bufferClasses are the sizes of what waits to be sent: each fits so many frames of 64 KiB,
// or records of TLS, with a little beside.
var bufferClasses = [...]int{4 << 10, 20 << 10, 64<<10 + 4<<10, 256<<10 + 8<<10, 1<<20 + 64<<10, 4 << 20}

// buffers are the memory of what waits to be sent, while it does, by class.
var buffers [len(bufferClasses)]sync.Pool

// buffer is memory of buffers that grows. Its zero value has none.
type buffer struct {
	b   []byte
	box *[]byte // that goes back to the pool; nil: none does
}

// reserve makes room for n more bytes.
func (b *buffer) reserve(n int) {
	need := len(b.b) + n
	if need <= cap(b.b) {
		return
	}
	next := lend(need, cap(b.b))
	next.b = append(next.b, b.b...)
	b.release()
	*b = next
}

// lend returns memory for at least so many bytes, in place of less.
func lend(need, before int) buffer {
	class := slices.IndexFunc(bufferClasses[:], func(n int) bool { return need <= n })
	if class < 0 {
		return buffer{b: make([]byte, 0, max(need, 2*before))}
	}
	box, _ := buffers[class].Get().(*[]byte)
	if box == nil {
		box = new(make([]byte, 0, bufferClasses[class]))
	}
	return buffer{*box, box}
}

// append appends bytes.
func (b *buffer) append(p []byte) {
	b.reserve(len(p))
	b.b = append(b.b, p...)
}

// keep has the memory not be used again by others when it is outgrown.
func (b *buffer) keep() { b.box = nil }

// release gives the memory back.
func (b *buffer) release() {
	if b.box != nil {
		*b.box = b.b[:0]
		if class := slices.Index(bufferClasses[:], cap(b.b)); class >= 0 {
			buffers[class].Put(b.box)
		}
	}
	*b = buffer{}
}
