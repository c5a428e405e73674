package sim

import "math/bits"

// lender lends buffers by size class, powers of two.
type lender struct {
	free [32][][]byte
}

// give returns a buffer that holds head and body.
func (l *lender) give(head, body []byte) []byte {
	size := len(head) + len(body)
	if size == 0 {
		return nil
	}
	class := bits.Len(uint(size - 1))
	var b []byte
	if n := len(l.free[class]); n > 0 {
		b = l.free[class][n-1][:0]
		l.free[class] = l.free[class][:n-1]
	} else {
		b = make([]byte, 0, 1<<class)
	}
	return append(append(b, head...), body...)
}

// take takes back what give gave.
func (l *lender) take(b []byte, poison bool) {
	if cap(b) == 0 {
		return
	}
	if poison {
		for i := range b {
			b[i] = 0xdb
		}
	}
	class := bits.Len(uint(cap(b) - 1))
	l.free[class] = append(l.free[class], b)
}
