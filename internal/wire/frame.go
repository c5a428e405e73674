package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// FrameKind is the first byte of a frame on a host connection.
type FrameKind uint8

// The kinds of frames. docs/protocol.md, "Host connections", gives their bytes.
const (
	FramePacket  FrameKind = 1  // both ways: a packet of the data plane, on a tree of hosts
	FrameAlarm   FrameKind = 2  // up: the epoch's tree is lost
	FrameCollect FrameKind = 3  // down: report for a round
	FrameReport  FrameKind = 4  // up: what a subtree of members holds
	FrameDecide  FrameKind = 5  // down: the next epoch
	FrameFill    FrameKind = 6  // both ways: a chunk's result, from who holds it to who lacks it
	FrameHolding FrameKind = 7  // up: a whole subtree holds an offer
	FrameFail    FrameKind = 8  // up: reported to the lowest rank; down: the communicator has ended
	FrameGoodbye FrameKind = 9  // both ways: the last barrier is done
	FrameNotice  FrameKind = 10 // down: the manager's group, or why there is none
	FrameSettled FrameKind = 11 // up: a whole subtree has all results before a number; down: all members have
	FrameMissing FrameKind = 12 // both ways: who is not there yet, while the group is formed
)

// Limits of frames, so that a receiver's memory is bounded.
const (
	MaxReason = 512     // bytes of a reason's text
	MaxOffers = 8       // offers named in a report
	MaxSpan   = 1 << 13 // numbers that a set in a frame spans

	MaxMissing = 8 // ranks named as missing
)

// ErrFrame is wrapped by all errors in reading a frame.
var ErrFrame = errors.New("wire: malformed frame")

// Alarm reports to the lowest rank that an epoch's tree is lost.
type Alarm struct {
	Epoch  uint32
	Rank   uint32 // who says so
	Reason string
}

// Collect asks for reports.
type Collect struct {
	Round uint32
	Epoch uint32 // the epoch that ends
}

// Report is what a member and all beneath it in the tree of hosts hold.
type Report struct {
	Round  uint32
	Base   uint32   // oldest number that any of them has not done
	Offers []uint32 // epochs that all of them hold, rising
	Held   Numbers  // whose result a sink among them holds
	Lack   Numbers  // that a sink among them lacks, and none of its ancestors up to the reporter holds
}

// Decide begins an epoch.
type Decide struct {
	Round  uint32
	Epoch  uint32
	Base   uint32
	Rank   uint32 // whose alarm began the round
	Held   Numbers
	Give   Numbers // whose results the receiver or one beneath it sends up
	Reason string
}

// Fill carries a result to who lacks it.
type Fill struct {
	Round    uint32
	Chunk    uint32
	Exponent int8 // of a chunk of reduce.Block32; 0 otherwise
	Data     []byte
}

// Holding reports that a member and all beneath it hold an offer.
type Holding struct{ Epoch uint32 }

// Settled reports that a member and all beneath it, or all members, have every result
// before Number.
type Settled struct{ Number uint32 }

// FailKind reports why a communicator has ended.
type FailKind uint8

// The kinds of failure.
const (
	FailDisagree FailKind = 1 // members disagree about an operation: Error says how
	FailDead     FailKind = 2 // the member Rank is dead
	FailCancel   FailKind = 3 // the member Rank gave up
	FailInternal FailKind = 4 // the member Rank met a state that must not be
)

// Fail ends a communicator.
type Fail struct {
	Kind   FailKind
	Rank   uint32
	Error  ErrorBody // FailDisagree only
	Reason string
}

// Notice reports what the manager said to the lowest rank.
type Notice struct {
	Group  uint32 // the manager's number of the group; 0: there is none, and Reason says why
	Reason string
}

// Missing reports who has not come yet: up, of those beneath the sender; down, of
// all. Without ranks all are there. A rank stands for those beneath it, too.
type Missing struct {
	Ranks []uint32
	More  bool // there are others
}

// Append functions write a frame behind b.

// AppendPacket appends a frame that holds a packet of the data plane.
func AppendPacket(b []byte, head *[HeaderSize]byte, body []byte) []byte {
	b = append(b, byte(FramePacket))
	b = append(b, head[:]...)
	return append(b, body...)
}

// Append appends m as a frame.
func (m *Alarm) Append(b []byte) []byte {
	b = append(b, byte(FrameAlarm))
	b = binary.BigEndian.AppendUint32(b, m.Epoch)
	b = binary.BigEndian.AppendUint32(b, m.Rank)
	return appendText(b, m.Reason)
}

// Append appends m as a frame.
func (m *Collect) Append(b []byte) []byte {
	b = append(b, byte(FrameCollect))
	b = binary.BigEndian.AppendUint32(b, m.Round)
	return binary.BigEndian.AppendUint32(b, m.Epoch)
}

// Append appends m as a frame.
func (m *Report) Append(b []byte) []byte {
	b = append(b, byte(FrameReport))
	b = binary.BigEndian.AppendUint32(b, m.Round)
	b = binary.BigEndian.AppendUint32(b, m.Base)
	b = append(b, byte(len(m.Offers)))
	for _, e := range m.Offers {
		b = binary.BigEndian.AppendUint32(b, e)
	}
	b = appendNumbers(b, &m.Held)
	return appendNumbers(b, &m.Lack)
}

// Append appends m as a frame.
func (m *Decide) Append(b []byte) []byte {
	b = append(b, byte(FrameDecide))
	b = binary.BigEndian.AppendUint32(b, m.Round)
	b = binary.BigEndian.AppendUint32(b, m.Epoch)
	b = binary.BigEndian.AppendUint32(b, m.Base)
	b = binary.BigEndian.AppendUint32(b, m.Rank)
	b = appendNumbers(b, &m.Held)
	b = appendNumbers(b, &m.Give)
	return appendText(b, m.Reason)
}

// Append appends m as a frame.
func (m *Fill) Append(b []byte) []byte {
	b = append(b, byte(FrameFill))
	b = binary.BigEndian.AppendUint32(b, m.Round)
	b = append(binary.BigEndian.AppendUint32(b, m.Chunk), byte(m.Exponent))
	return append(b, m.Data...)
}

// Append appends m as a frame.
func (m *Settled) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, byte(FrameSettled)), m.Number)
}

// Append appends m as a frame.
func (m *Holding) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(append(b, byte(FrameHolding)), m.Epoch)
}

// Append appends m as a frame.
func (m *Fail) Append(b []byte) []byte {
	b = append(b, byte(FrameFail), byte(m.Kind))
	b = binary.BigEndian.AppendUint32(b, m.Rank)
	if m.Kind == FailDisagree {
		at := len(b)
		b = append(b, make([]byte, ErrorBodySize)...)
		m.Error.Put(b[at:])
	}
	return appendText(b, m.Reason)
}

// AppendGoodbye appends a goodbye.
func AppendGoodbye(b []byte) []byte { return append(b, byte(FrameGoodbye)) }

// Append appends m as a frame.
func (m *Notice) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(append(b, byte(FrameNotice)), m.Group)
	return appendText(b, m.Reason)
}

// Append appends m as a frame.
func (m *Missing) Append(b []byte) []byte {
	more := byte(0)
	if m.More {
		more = 1
	}
	b = append(b, byte(FrameMissing), more, byte(len(m.Ranks)))
	for _, rank := range m.Ranks {
		b = binary.BigEndian.AppendUint32(b, rank)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	if len(s) > MaxReason {
		n := MaxReason
		for n > MaxReason-utf8.UTFMax && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

func appendNumbers(b []byte, s *Numbers) []byte {
	b = binary.BigEndian.AppendUint32(b, s.First)
	b = binary.BigEndian.AppendUint16(b, uint16(len(s.Bits)))
	for _, w := range s.Bits {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}

// ReadFrame reads the frame b: a *Alarm, *Collect, *Report, *Decide, *Fill,
// *Holding, *Settled, *Fail, *Notice or *Missing, a FrameKind for a goodbye, or the
// packet's bytes ([]byte, a part of b). Fill.Data is a part of b, too.
func ReadFrame(b []byte) (any, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrFrame)
	}
	kind, r := FrameKind(b[0]), reader{b: b[1:]}
	var m any
	switch kind {
	case FramePacket:
		return r.b, nil
	case FrameAlarm:
		m = &Alarm{Epoch: r.u32(), Rank: r.u32(), Reason: r.text()}
	case FrameCollect:
		m = &Collect{Round: r.u32(), Epoch: r.u32()}
	case FrameReport:
		m = &Report{Round: r.u32(), Base: r.u32(), Offers: r.list(MaxOffers), Held: r.numbers(), Lack: r.numbers()}
	case FrameDecide:
		m = &Decide{Round: r.u32(), Epoch: r.u32(), Base: r.u32(), Rank: r.u32(), Held: r.numbers(), Give: r.numbers(), Reason: r.text()}
	case FrameFill:
		m = &Fill{Round: r.u32(), Chunk: r.u32(), Exponent: int8(r.u8()), Data: r.rest()}
	case FrameSettled:
		m = &Settled{Number: r.u32()}
	case FrameHolding:
		m = &Holding{Epoch: r.u32()}
	case FrameFail:
		m = r.fail()
	case FrameGoodbye:
		m = FrameGoodbye
	case FrameNotice:
		m = &Notice{Group: r.u32(), Reason: r.text()}
	case FrameMissing:
		m = r.missing()
	default:
		return nil, fmt.Errorf("%w: kind %d is unknown", ErrFrame, kind)
	}
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: kind %d in %d bytes", ErrFrame, kind, len(b))
	}
	return m, nil
}

// reader takes fields from a frame and remembers whether one was missing.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if len(r.b) < n {
		r.bad, r.b = true, nil
		return make([]byte, n)
	}
	f := r.b[:n]
	r.b = r.b[n:]
	return f
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }

func (r *reader) rest() []byte { return r.take(len(r.b)) }

func (r *reader) text() string {
	n := int(r.u16())
	if n > MaxReason {
		r.bad = true
		return ""
	}
	return string(r.take(n))
}

// list reads the numbers of a list that has its length before it.
func (r *reader) list(most int) []uint32 {
	n := int(r.u8())
	if n > most {
		r.bad = true
		return nil
	}
	list := make([]uint32, 0, n)
	for range n {
		list = append(list, r.u32())
	}
	return list
}

func (r *reader) missing() *Missing {
	more := r.u8()
	m := &Missing{More: more == 1, Ranks: r.list(MaxMissing)}
	r.bad = r.bad || more > 1 || m.More && len(m.Ranks) == 0
	return m
}

func (r *reader) numbers() Numbers {
	s := Numbers{First: r.u32()}
	n := int(r.u16())
	if n > MaxSpan/64 {
		r.bad = true
		return s
	}
	s.Bits = make([]uint64, n)
	for i := range s.Bits {
		s.Bits[i] = binary.BigEndian.Uint64(r.take(8))
	}
	return s
}

func (r *reader) fail() *Fail {
	f := &Fail{Kind: FailKind(r.u8()), Rank: r.u32()}
	switch f.Kind {
	case FailDisagree:
		r.bad = !f.Error.Decode(r.take(ErrorBodySize)) || r.bad
	case FailDead, FailCancel, FailInternal:
	default:
		r.bad = true
	}
	f.Reason = r.text()
	return f
}
