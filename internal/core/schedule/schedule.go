package schedule

import "iter"

// Buffer names memory of the member.
type Buffer uint8

// The buffers. In and Out are the caller's, Temp has Schedule.Temp bytes.
const (
	In Buffer = iota
	Out
	Temp
)

// Part is a part of a buffer, in bytes. Piece is the rank whose piece it lies in, of a buffer that
// consists of a piece for each rank; other buffers have the piece 0 alone.
type Part struct {
	Buffer       Buffer
	Piece        int
	Offset, Size int
}

// Transfer is a message to a member, or from one. It may have no bytes.
type Transfer struct {
	Peer int
	Part
}

// Local copies A to To or, where B is not NoPart, reduces: To = A op B. All have one size. To may
// be A or B.
type Local struct{ To, A, B Part }

// NoPart is none.
var NoPart = Part{Size: -1}

// IsCopy reports that nothing is reduced.
func (l *Local) IsCopy() bool { return l.B.Size < 0 }

// Round is what a member does at once.
type Round struct {
	Sends, Recvs []Transfer
	Locals       []Local
}

func (r *Round) reset() { r.Sends, r.Recvs, r.Locals = r.Sends[:0], r.Recvs[:0], r.Locals[:0] }

func (r *Round) copy(to, from Part)   { r.Locals = append(r.Locals, Local{to, from, NoPart}) }
func (r *Round) reduce(to, a, b Part) { r.Locals = append(r.Locals, Local{to, a, b}) }

// Schedule is one member's part in an operation.
type Schedule struct {
	Temp   int              // bytes of temporary memory
	Rounds iter.Seq[*Round] // each valid until the next
}

// maker makes the rounds of a schedule, in one Round's memory.
type maker struct {
	*Call
	Round
	yield   func(*Round) bool
	stopped bool
}

func (m *maker) send(to int, p Part) { m.Sends = append(m.Sends, Transfer{m.actual(to), p}) }

// hand sends to a child that has others below it, before children that have fewer. A long message goes
// alone: all at once would share the link, and the first one come when the last one does.
func (m *maker) hand(to int, p Part) {
	if m.send(to, p); p.Size > EagerBytes {
		m.end()
	}
}

func (m *maker) recv(from int, p Part) { m.Recvs = append(m.Recvs, Transfer{m.actual(from), p}) }

// end ends a round, if anything is to be done in it. It reports false where no more are wanted.
func (m *maker) end() bool {
	if !m.stopped && len(m.Sends)+len(m.Recvs)+len(m.Locals) > 0 {
		m.stopped = !m.yield(&m.Round)
	}
	m.reset()
	return !m.stopped
}

// rounds returns the rounds that make makes.
func (c *Call) rounds(make func(m *maker)) iter.Seq[*Round] {
	return func(yield func(*Round) bool) {
		m := &maker{Call: c, yield: yield}
		make(m)
		m.end()
	}
}
