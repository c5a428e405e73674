package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
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
	FrameWaiting FrameKind = 13 // flooded: a member's operation is late
	FrameLate    FrameKind = 14 // flooded: a member has not called an operation that others wait in
	FrameSetting FrameKind = 15 // both ways: from which operation on members choose otherwise
)

// Limits of frames, so that a receiver's memory is bounded.
const (
	MaxReason = 512     // bytes of a reason's text
	MaxOffers = 8       // offers named in a report
	MaxSpan   = 1 << 13 // numbers that a set in a frame spans

	MaxMissing = 8    // ranks named as missing
	MaxSetting = 4096 // bytes of what members choose by
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
	FailCalls    FailKind = 5 // members disagree about an operation that hosts carry out: Calls says how
	FailRevoked  FailKind = 6 // the member Rank has revoked the communicator
)

// Fail ends a communicator.
type Fail struct {
	Kind   FailKind
	Rank   uint32
	Error  ErrorBody // FailDisagree only
	Calls  [2]Called // FailCalls only
	Reason string
}

// Called is an operation as one member called it: its tag (package schedule), and the bytes of
// the message that it sent, or awaited.
type Called struct {
	Rank  uint32
	Tag   uint64
	Bytes uint64
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
	More  bool   // there are others
	Life  uint64 // down: by which the lowest rank distinguishes this communicator from others of the same members and name

	Setting []byte // down, and without ranks: what members choose by, to begin with
}

// The steps of a Setting.
const (
	SettingAsk     = 1 // down: promise
	SettingPromise = 2 // up: no member beneath, or the sender, begins an operation at Position, or later, before it has got the decision
	SettingDecide  = 3 // down: operations at Position, and later, are chosen by Value
)

// Setting is a message of a round in which members agree by what they choose, and from which
// operation on.
type Setting struct {
	Round    uint32
	Step     uint8
	Position uint32 // of an operation among all that a member calls
	Value    []byte // of a decision
}

// Waiting reports that a member waits in an operation: at a position among all that it has
// called, with a tag that says what it is (package schedule).
type Waiting struct {
	Position uint32
	Round    uint8 // of reports
	Rank     uint32
	Tag      uint64
}

// Late reports that a member has not called the operation at a position.
type Late struct {
	Position uint32
	Round    uint8
	Rank     uint32
}

// Append functions write a frame behind b.

// AppendPacket appends a frame that holds a packet of the data plane.
func AppendPacket(b []byte, head *[HeaderSize]byte, body []byte) []byte {
	b = append(b, byte(FramePacket))
	b = append(b, head[:]...)
	return append(b, body...)
}

// AppendGoodbye appends a goodbye.
func AppendGoodbye(b []byte) []byte { return append(b, byte(FrameGoodbye)) }

// Append appends m as a frame.
func (m *Alarm) Append(b []byte) []byte { return appendFrame(b, FrameAlarm, m) }

// Append appends m as a frame.
func (m *Collect) Append(b []byte) []byte { return appendFrame(b, FrameCollect, m) }

// Append appends m as a frame.
func (m *Report) Append(b []byte) []byte { return appendFrame(b, FrameReport, m) }

// Append appends m as a frame.
func (m *Decide) Append(b []byte) []byte { return appendFrame(b, FrameDecide, m) }

// Append appends m as a frame.
func (m *Fill) Append(b []byte) []byte { return appendFrame(b, FrameFill, m) }

// Append appends m as a frame.
func (m *Settled) Append(b []byte) []byte { return appendFrame(b, FrameSettled, m) }

// Append appends m as a frame.
func (m *Holding) Append(b []byte) []byte { return appendFrame(b, FrameHolding, m) }

// Append appends m as a frame.
func (m *Fail) Append(b []byte) []byte { return appendFrame(b, FrameFail, m) }

// Append appends m as a frame.
func (m *Notice) Append(b []byte) []byte { return appendFrame(b, FrameNotice, m) }

// Append appends m as a frame.
func (m *Missing) Append(b []byte) []byte { return appendFrame(b, FrameMissing, m) }

// Append appends m as a frame.
func (m *Waiting) Append(b []byte) []byte { return appendFrame(b, FrameWaiting, m) }

// Append appends m as a frame.
func (m *Late) Append(b []byte) []byte { return appendFrame(b, FrameLate, m) }

// Append appends m as a frame.
func (m *Setting) Append(b []byte) []byte { return appendFrame(b, FrameSetting, m) }

func appendFrame(b []byte, kind FrameKind, m any) []byte {
	c := cursor.Cursor{B: append(b, byte(kind)), Writes: true}
	fields(&c, m)
	return c.B
}

// ReadFrame reads the frame b: a *Alarm, *Collect, *Report, *Decide, *Fill,
// *Holding, *Settled, *Fail, *Notice, *Missing, *Waiting, *Late or *Setting, a FrameKind for a goodbye, or the
// packet's bytes ([]byte, a part of b). Fill.Data is a part of b, too.
func ReadFrame(b []byte) (any, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrFrame)
	}
	var m any
	kind := FrameKind(b[0])
	switch kind {
	case FramePacket:
		return b[1:], nil
	case FrameAlarm:
		m = new(Alarm)
	case FrameCollect:
		m = new(Collect)
	case FrameReport:
		m = new(Report)
	case FrameDecide:
		m = new(Decide)
	case FrameFill:
		m = new(Fill)
	case FrameSettled:
		m = new(Settled)
	case FrameHolding:
		m = new(Holding)
	case FrameFail:
		m = new(Fail)
	case FrameGoodbye:
		m = FrameGoodbye
	case FrameNotice:
		m = new(Notice)
	case FrameMissing:
		m = new(Missing)
	case FrameWaiting:
		m = new(Waiting)
	case FrameLate:
		m = new(Late)
	case FrameSetting:
		m = new(Setting)
	default:
		return nil, fmt.Errorf("%w: kind %d is unknown", ErrFrame, kind)
	}
	c := cursor.Cursor{B: b[1:]}
	fields(&c, m)
	if c.Bad || len(c.B) > 0 {
		return nil, fmt.Errorf("%w: kind %d in %d bytes", ErrFrame, kind, len(b))
	}
	return m, nil
}

// fields are those of a frame behind its kind; a goodbye has none.
func fields(c *cursor.Cursor, m any) {
	switch m := m.(type) {
	case *Alarm:
		cursor.Uint32(c, &m.Epoch)
		cursor.Uint32(c, &m.Rank)
		text(c, &m.Reason)
	case *Collect:
		cursor.Uint32(c, &m.Round)
		cursor.Uint32(c, &m.Epoch)
	case *Report:
		cursor.Uint32(c, &m.Round)
		cursor.Uint32(c, &m.Base)
		list(c, &m.Offers, MaxOffers)
		numbers(c, &m.Held)
		numbers(c, &m.Lack)
	case *Decide:
		cursor.Uint32(c, &m.Round)
		cursor.Uint32(c, &m.Epoch)
		cursor.Uint32(c, &m.Base)
		cursor.Uint32(c, &m.Rank)
		numbers(c, &m.Held)
		numbers(c, &m.Give)
		text(c, &m.Reason)
	case *Fill:
		cursor.Uint32(c, &m.Round)
		cursor.Uint32(c, &m.Chunk)
		cursor.Uint8(c, &m.Exponent)
		c.Part(&m.Data, len(c.B))
	case *Settled:
		cursor.Uint32(c, &m.Number)
	case *Holding:
		cursor.Uint32(c, &m.Epoch)
	case *Fail:
		cursor.Uint8(c, &m.Kind)
		cursor.Uint32(c, &m.Rank)
		if m.Kind == FailDisagree {
			disagreement(c, &m.Error)
		}
		if m.Kind == FailCalls {
			for i := range m.Calls {
				cursor.Uint32(c, &m.Calls[i].Rank)
				cursor.Uint64(c, &m.Calls[i].Tag)
				cursor.Uint64(c, &m.Calls[i].Bytes)
			}
		}
		c.Bad = c.Bad || m.Kind < FailDisagree || m.Kind > FailRevoked
		text(c, &m.Reason)
	case *Notice:
		cursor.Uint32(c, &m.Group)
		text(c, &m.Reason)
	case *Waiting:
		cursor.Uint32(c, &m.Position)
		cursor.Uint8(c, &m.Round)
		cursor.Uint32(c, &m.Rank)
		cursor.Uint64(c, &m.Tag)
	case *Late:
		cursor.Uint32(c, &m.Position)
		cursor.Uint8(c, &m.Round)
		cursor.Uint32(c, &m.Rank)
	case *Missing:
		c.Bits(&m.More)
		list(c, &m.Ranks, MaxMissing)
		cursor.Uint64(c, &m.Life)
		c.Bad = c.Bad || m.More && len(m.Ranks) == 0
		value(c, &m.Setting)
		c.Bad = c.Bad || len(m.Ranks) > 0 && len(m.Setting) > 0
	case *Setting:
		cursor.Uint32(c, &m.Round)
		cursor.Uint8(c, &m.Step)
		cursor.Uint32(c, &m.Position)
		value(c, &m.Value)
		c.Bad = c.Bad || m.Step < SettingAsk || m.Step > SettingDecide || m.Step != SettingDecide && len(m.Value) > 0
	}
}

// value is bytes behind their number.
func value(c *cursor.Cursor, v *[]byte) {
	n := len(*v)
	cursor.Uint16(c, &n)
	if c.Bad = c.Bad || n > MaxSetting; c.Bad {
		return
	}
	if !c.Writes {
		*v = make([]byte, n)
	}
	c.Bytes(*v)
}

func disagreement(c *cursor.Cursor, e *ErrorBody) {
	var b [ErrorBodySize]byte
	if c.Writes {
		e.Put(b[:])
	}
	c.Bytes(b[:])
	if !c.Writes {
		c.Bad = !e.Decode(b[:]) || c.Bad
	}
}

// text is a text behind its length in two bytes. A long one is cut when it is
// written, between two runes.
func text(c *cursor.Cursor, s *string) {
	cut := *s
	if len(cut) > MaxReason {
		n := MaxReason
		for n > MaxReason-utf8.UTFMax && !utf8.RuneStart(cut[n]) {
			n--
		}
		cut = cut[:n]
	}
	n := len(cut)
	cursor.Uint16(c, &n)
	c.Bad = c.Bad || n > MaxReason
	cursor.Chars(c, &cut, n)
	if !c.Writes {
		*s = cut
	}
}

// list is numbers behind a byte that says how many.
func list(c *cursor.Cursor, l *[]uint32, most int) {
	n := len(*l)
	cursor.Uint8(c, &n)
	if !c.Writes {
		c.Bad = c.Bad || n > most
		*l = make([]uint32, min(n, most))
	}
	for i := range *l {
		cursor.Uint32(c, &(*l)[i])
	}
}

func numbers(c *cursor.Cursor, s *Numbers) {
	cursor.Uint32(c, &s.First)
	n := len(s.Bits)
	cursor.Uint16(c, &n)
	if !c.Writes {
		c.Bad = c.Bad || n > MaxSpan/64
		s.Bits = make([]uint64, min(n, MaxSpan/64))
	}
	for i := range s.Bits {
		cursor.Uint64(c, &s.Bits[i])
	}
}
