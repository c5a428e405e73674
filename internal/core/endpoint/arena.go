package endpoint

import "github.com/tributary-fabric/tributary/internal/wire"

// arena lends memory until it is reset: blocks that stay where they are, so
// that what was lent before is not moved.
type arena struct {
	blocks [][]byte
	used   int // blocks in use; the last of them is filled up
}

// Blocks double in size between these bounds: a small group stays small.
const (
	firstBlock = 4 << 10
	lastBlock  = 64 << 10
)

func (a *arena) reset() {
	for i := range a.blocks[:a.used] {
		a.blocks[i] = a.blocks[i][:0]
	}
	a.used = 0
}

// grow returns a block with room for n more bytes.
func (a *arena) grow(n int) *[]byte {
	for {
		if a.used > 0 {
			if b := &a.blocks[a.used-1]; cap(*b)-len(*b) >= n {
				return b
			}
		}
		if a.used == len(a.blocks) {
			a.blocks = append(a.blocks, make([]byte, 0, max(min(firstBlock<<min(len(a.blocks), 4), lastBlock), n)))
		}
		a.used++
	}
}

// join returns head and body as one slice.
func (a *arena) join(head, body []byte) []byte {
	const align = 8 // so that elements can be reduced where they lie
	b := a.grow(len(head) + len(body) + align - 1)
	at := (len(*b) + align - 1) &^ (align - 1)
	*b = append(append((*b)[:at], head...), body...)
	return (*b)[at:len(*b):len(*b)]
}

// packet returns head and body as the frame of a packet.
func (a *arena) packet(head *[wire.HeaderSize]byte, body []byte) []byte {
	b := a.grow(1 + len(head) + len(body))
	at := len(*b)
	*b = wire.AppendPacket(*b, head, body)
	return (*b)[at:len(*b):len(*b)]
}
