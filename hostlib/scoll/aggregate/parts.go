package aggregate

import (
	"encoding/binary"
	"iter"
	"math"
)

// Parts is replies one behind the other, each as the length of its source's name
// (1), the name, its own length (4) and itself: what is concatenated from such
// Parts are Parts again, so that a node can also pass its children's on as they
// come without gathering them. Its zero value is empty.
type Parts struct{ body []byte }

// A Part is one node's reply.
type Part struct {
	Source string // 1 to MaxSource bytes
	Body   []byte
}

// PartSize returns the bytes of a part.
func PartSize(source string, bytes int) int { return 1 + len(source) + 4 + bytes }

// AppendPart appends a part to dst. It panics where the source's name is not of
// 1 to MaxSource bytes, or the body has more than 4 GiB.
func AppendPart(dst []byte, source string, body []byte) []byte {
	if source == "" || len(source) > MaxSource || len(body) > math.MaxUint32 {
		panic("aggregate: a part without a name, or too large")
	}
	dst = append(append(dst, byte(len(source))), source...)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)))
	return append(dst, body...)
}

// Put adds this node's own reply.
func (p *Parts) Put(source string, body []byte) { p.body = AppendPart(p.body, source, body) }

// Add implements Aggregator. The child's number does not matter.
func (p *Parts) Add(_ int, body []byte) error {
	if err := CheckParts(body); err != nil {
		return err
	}
	p.body = append(p.body, body...)
	return nil
}

// AppendTo implements Aggregator.
func (p *Parts) AppendTo(dst []byte) []byte { return append(dst, p.body...) }

// All returns the parts in their order. Their bodies are parts of p's memory.
func (p *Parts) All() iter.Seq[Part] {
	return func(yield func(Part) bool) {
		for rest := p.body; len(rest) > 0; {
			part, next, _ := cutPart(rest)
			if !yield(part) {
				return
			}
			rest = next
		}
	}
}

// CheckParts reports whether body is Parts; errors wrap ErrBody.
func CheckParts(body []byte) error {
	for at := 0; at < len(body); {
		_, rest, ok := cutPart(body[at:])
		if !ok {
			return wrong("parts are cut off at byte %d of %d", at, len(body))
		}
		at = len(body) - len(rest)
	}
	return nil
}

// SplitParts returns the parts of a body, which are parts of its memory. Errors
// wrap ErrBody.
func SplitParts(body []byte) ([]Part, error) {
	if err := CheckParts(body); err != nil {
		return nil, err
	}
	var all []Part
	for len(body) > 0 {
		var part Part
		part, body, _ = cutPart(body)
		all = append(all, part)
	}
	return all, nil
}

// cutPart takes the part off the front of b.
func cutPart(b []byte) (p Part, rest []byte, ok bool) {
	if len(b) == 0 || b[0] == 0 || len(b) < 1+int(b[0])+4 {
		return Part{}, nil, false
	}
	end := 1 + int(b[0]) // not of a byte: the longest name would end at 0
	name, b := b[1:end], b[end:]
	size := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; size > uint64(len(b)) {
		return Part{}, nil, false
	}
	return Part{string(name), b[:size:size]}, b[size:], true
}
