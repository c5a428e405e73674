package gossip

import (
	"encoding/binary"
	"fmt"
)

// PreambleSize is the size of a Preamble.
const PreambleSize = 20

// Preamble is what each end of a stream sends first: the four bytes TrG1, and 16
// random ones.
type Preamble [PreambleSize]byte

// MakePreamble returns the preamble with these random bytes.
func MakePreamble(random [16]byte) Preamble {
	var p Preamble
	copy(p[:], "TrG1")
	copy(p[4:], random[:])
	return p
}

// Check reports whether p begins a stream of this version; the error wraps
// ErrVersion.
func (p Preamble) Check() error {
	if string(p[:4]) != "TrG1" {
		return fmt.Errorf("%w: a stream that begins with %q, want TrG1", ErrVersion, p[:4])
	}
	return nil
}

// Stream seals what one end of a stream sends and opens what it receives. It is
// not safe for concurrent use.
type Stream struct {
	ring         *Keyring
	ours, theirs Preamble
	out          *keys
	in           [16]*keys
	sent, taken  uint64
}

// Stream returns the stream between two preambles.
func (k *Keyring) Stream(ours, theirs Preamble) *Stream {
	s := &Stream{ours: ours, theirs: theirs}
	s.Rekey(k)
	return s
}

// Rekey has the stream seal and open with the keys of k from now on. Frames are
// counted on, so that none of an earlier time with the same key can be repeated.
func (s *Stream) Rekey(k *Keyring) {
	s.ring, s.out, s.in = k, nil, [16]*keys{}
	if k.sealing != nil {
		s.out = newKeys(k.sealing.number, k.sealing.secret, "stream", string(s.ours[:]), string(s.theirs[:]))
	}
}

// Seal appends the frame of a packet that is not sealed: its length, and the
// packet. Frames are sealed in the order in which they are sent.
func (s *Stream) Seal(to, b []byte) []byte {
	seal := 0
	if s.out != nil {
		seal = macSize
	}
	to = binary.BigEndian.AppendUint32(to, uint32(len(b)+seal))
	from := len(to)
	to = append(to, b...)
	if s.out == nil {
		return to
	}
	to[from] |= s.out.number
	var count [nonceSize]byte
	binary.BigEndian.PutUint64(count[4:], s.sent)
	s.sent++
	if !s.ring.encrypt {
		return append(to, s.out.tag(count[:], to[from:])[:macSize]...)
	}
	to[from+1] |= encrypted
	header := [headerSize]byte(to[from:])
	return s.out.box.Seal(to[:from+headerSize], count[:], b[headerSize:], header[:])
}

// Open returns the packet of a frame, whose length has been taken off, in the
// order in which frames were received. It overwrites b, in which the packet lies.
// After an error the stream is of no use. The error wraps ErrSeal, ErrVersion or
// ErrMalformed.
func (s *Stream) Open(b []byte) ([]byte, error) {
	if _, err := TypeOf(b); err != nil {
		return nil, err
	}
	if s.out != nil && s.ours == s.theirs {
		return nil, fmt.Errorf("%w: the stream's other end repeats what this one says", ErrSeal)
	}
	shared, err := s.ring.sealedBy(b)
	if shared == nil {
		return b, err
	}
	sealed := s.in[shared.number]
	if sealed == nil {
		sealed = newKeys(shared.number, shared.secret, "stream", string(s.theirs[:]), string(s.ours[:]))
		s.in[shared.number] = sealed
	}
	var count [nonceSize]byte
	binary.BigEndian.PutUint64(count[4:], s.taken)
	s.taken++
	if b[1]&encrypted == 0 {
		return sealed.check(count[:], b, macSize)
	}
	return sealed.unbox(count[:], b, b[headerSize:])
}
