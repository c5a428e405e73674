package rails

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A message of a stream begins with its number, 8 bytes, of which the highest bit says
// that it is the last one. A longer one has its length and a checksum of all that follows,
// 4 bytes each, and bytes that its number generates.
const (
	numberBytes = 8
	headBytes   = 16
	lastBit     = 1 << 63
)

// MinMessage is the size of the smallest message of a stream.
const MinMessage = numberBytes

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fill makes b the message of a number.
func fill(b []byte, n uint64, last bool) {
	head := n
	if last {
		head |= lastBit
	}
	if len(b) < headBytes {
		clear(b)
		copy(b, binary.LittleEndian.AppendUint64(nil, head))
		return
	}
	binary.LittleEndian.PutUint64(b, head)
	body := b[headBytes:]
	generate(body, n)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)))
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(body, castagnoli))
}

// generate fills b with what a number generates (xorshift64).
func generate(b []byte, n uint64) {
	x := n*0x9e3779b97f4a7c15 | 1
	for len(b) >= 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(b, x)
		b = b[8:]
	}
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

// parse reads a message; right reports whether its bytes are those that were sent.
func parse(b []byte) (n uint64, last, right bool) {
	if len(b) < numberBytes {
		return 0, false, false
	}
	head := binary.LittleEndian.Uint64(b)
	n, last = head&^uint64(lastBit), head&lastBit != 0
	if len(b) < headBytes {
		return n, last, true
	}
	return n, last, binary.LittleEndian.Uint32(b[8:]) == uint32(len(b)) &&
		binary.LittleEndian.Uint32(b[12:]) == crc32.Checksum(b[headBytes:], castagnoli)
}

// Ledger counts what has become of the messages of a stream, numbered from 0.
type Ledger struct {
	Arrived  uint64 `json:"arrived"`  // once each
	Lost     uint64 `json:"lost"`     // never
	Doubled  uint64 `json:"doubled"`  // again
	Disorder uint64 `json:"disorder"` // after a later one
	Corrupt  uint64 `json:"corrupt"`  // with other bytes

	next    uint64
	missing map[uint64]bool
}

// Add counts a message that has arrived, and reports whether it is the last one.
func (l *Ledger) Add(b []byte) (last bool) {
	n, last, right := parse(b)
	switch {
	case !right:
		l.Corrupt++
		return false // its number is no better than its bytes
	case n >= l.next:
		if n-l.next > maxMissing {
			l.Corrupt++
			return false
		}
		for ; l.next < n; l.next++ {
			if l.missing == nil {
				l.missing = map[uint64]bool{}
			}
			l.missing[l.next] = true
		}
		l.next++
	case l.missing[n]:
		delete(l.missing, n)
		l.Disorder++
	default:
		l.Doubled++
		return last
	}
	l.Arrived++
	return last
}

// maxMissing bounds the gap in numbers that is believed.
const maxMissing = 1 << 20

// End completes the counts, of so many messages that were sent.
func (l *Ledger) End(sent uint64) { l.Lost = sent - min(sent, l.Arrived) }

// Exact reports whether each message has arrived once, in order and as it was sent.
func (l *Ledger) Exact() bool { return l.Lost+l.Doubled+l.Disorder+l.Corrupt == 0 }

// String returns what is wrong in words.
func (l *Ledger) String() string {
	return fmt.Sprintf("%d arrived, %d lost, %d doubled, %d out of order, %d corrupted", l.Arrived, l.Lost, l.Doubled, l.Disorder, l.Corrupt)
}
