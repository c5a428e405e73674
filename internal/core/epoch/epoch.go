package epoch

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("epoch: invalid configuration")

// NoParent is the parent of the lowest rank.
const NoParent = -1

// Config places a member in the tree of hosts.
type Config struct {
	Rank     uint32
	Parent   int      // rank of the parent, or NoParent
	Children []uint32 // ranks of the children, rising
	Window   uint32   // the group's largest window, in chunks, at most session.MaxWindow
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.Parent >= int(c.Rank) || (c.Parent < 0) != (c.Rank == 0) {
		return fmt.Errorf("%w: rank %d has parent %d", ErrConfig, c.Rank, c.Parent)
	}
	last := c.Rank
	for _, r := range c.Children {
		if r <= last || r > wire.MaxRank {
			return fmt.Errorf("%w: rank %d has children %v", ErrConfig, c.Rank, c.Children)
		}
		last = r
	}
	if c.Window == 0 || c.Window > session.MaxWindow {
		return fmt.Errorf("%w: window %d, want 1 to %d", ErrConfig, c.Window, session.MaxWindow)
	}
	return nil
}

// Member is the rest of the member, which the agreement drives. The calls come
// from within Step.
type Member interface {
	// Freeze stops the session and returns what it holds.
	Freeze() session.Report
	// Enter begins an epoch: by the offer's link, or, where link is nil, on the
	// tree of hosts.
	Enter(now core.Time, epoch uint32, link *session.Link, d session.Decision, reason string) error
	// Kept returns the data of a number's result and its exponent, if the
	// member has it.
	Kept(n uint32) (data []byte, exponent int8, ok bool)
	// Fill takes the data of a number's result and its exponent, if the member
	// awaits it.
	Fill(now core.Time, n uint32, data []byte, exponent int8)
	// FinishLast ends the last barrier and reports whether it could be ended.
	FinishLast(now core.Time) bool
	// Forget reports that every member has all results before number n.
	Forget(n uint32)

	// End ends the communicator.
	End(f wire.Fail)
}

// Kind is the kind of an Input.
type Kind uint8

// The kinds of inputs, with the fields that they use.
const (
	Message   Kind = iota + 1 // From, Frame: as wire.ReadFrame returned it
	Connected                 // From: the connection to that neighbour is new
	Dead                      // From, Reason: that neighbour is dead
	Offered                   // Link: an offer of the manager's
	Withdrawn                 // Epoch, Reason: the manager takes an offer back
	Lost                      // Epoch, Reason: the member found its tree lost
	Failed                    // Fail: the member found that the communicator has ended, or was notified of a revoke
	Noticed                   // Notice: what the manager said to the lowest rank
	LastDone                  // the member's session has ended the last barrier
	Rested                    // Number: the member has all results before it, and nothing was started for a while
)

// Input is one input.
type Input struct {
	Kind   Kind
	From   uint32
	Frame  any
	Link   session.Link
	Epoch  uint32
	Reason string
	Fail   wire.Fail
	Notice wire.Notice
	Number uint32
}

// Send is a frame for a neighbour in the tree of hosts. If the connection is
// down it may be dropped: Connected repeats what matters.
type Send struct {
	To    uint32
	Frame []byte
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends  []Send
	Notice *wire.Notice // the manager's word, at every rank once
	Gone   bool         // the last barrier is done and every neighbour knows
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0]} }

type phase uint8

const (
	running phase = iota
	collecting
	left
	ended
)

// offer is a tree of the manager's that the member may enter.
type offer struct {
	link      session.Link
	withdrawn string // why the manager took it back; it may still be decided upon
}

// child is what the member knows of a child in the tree of hosts.
type child struct {
	rank    uint32
	holding []uint32     // offers that the child's whole subtree holds
	report  *wire.Report // in the present round
	lack    wire.Numbers // of the last decision: what is to be sent down
	give    wire.Numbers // of the last decision: what it is to send up
	gone    bool         // it said goodbye
	settled settled      // of its subtree
}

// Core is one member's part in the agreement. Its methods are not safe for
// concurrent use.
type Core struct {
	cfg    Config
	member Member

	phase phase
	epoch uint32 // the present epoch: rises only

	offers    []offer // of epochs above the present one, rising
	announced uint32  // newest offer that was reported to the parent, or that began a round
	children  []child
	parentGone,
	gone bool

	round    uint32      // the round being collected, or the last one decided
	report   wire.Report // what was reported in it
	reported bool
	own      session.Report
	decide   *wire.Decide      // the last decision as it came, to be repeated
	passing  map[uint32][]byte // results, as frames, that were passed on after it, and that this member does not keep itself
	alarm    *wire.Alarm       // of the present epoch; repeated until it ends
	fail     *wire.Fail        // reported to the parent and awaiting its word, or, once ended, the word
	notice   *wire.Notice

	rested  settled // this member's own
	beneath settled // of the subtree, as reported to the parent
	all     settled // of all members

	out *Output
}

// New returns the agreement of a member that has begun in epoch first.
func New(cfg Config, first uint32, m Member) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{cfg: cfg, member: m, epoch: first}
	for _, r := range cfg.Children {
		c.children = append(c.children, child{rank: r})
	}
	return c, nil
}

// Epoch returns the present epoch.
func (c *Core) Epoch() uint32 { return c.epoch }

// Step takes inputs in order.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.out = out
	for i := range in {
		c.take(now, &in[i])
	}
	c.out = nil
}

func (c *Core) take(now core.Time, in *Input) {
	if in.Kind == Connected {
		c.connected(in.From)
		return
	}
	if c.phase == ended || c.phase == left && in.Kind != Message && in.Kind != Dead {
		return
	}
	switch in.Kind {
	case Message:
		c.message(now, in.From, in.Frame)
	case Dead:
		c.dead(in.From, in.Reason)
	case Offered:
		c.offered(now, in.Link)
	case Withdrawn:
		c.withdrawn(now, in.Epoch, in.Reason)
	case Lost:
		c.raise(now, &wire.Alarm{Epoch: in.Epoch, Rank: c.cfg.Rank, Reason: in.Reason})
	case Failed:
		c.failed(in.Fail)
	case Noticed:
		c.noticed(&in.Notice)
	case LastDone:
		c.leave()
	case Rested:
		c.rested.raise(in.Number)
		c.settle()
	}
}

func (c *Core) message(now core.Time, from uint32, frame any) {
	up := c.cfg.Parent >= 0 && from == uint32(c.cfg.Parent)
	down := c.child(from)
	if !up && down == nil {
		return
	}
	switch m := frame.(type) {
	case wire.FrameKind:
		if m == wire.FrameGoodbye {
			c.goodbye(now, from, down)
		}
	case *wire.Fill:
		c.fill(now, m, down)
	case *wire.Fail:
		if c.phase == left {
			c.parted(down)
		} else if up {
			c.end(*m)
		} else {
			c.failed(*m)
		}
	case *wire.Collect:
		if up && c.phase == running && m.Round == c.round+1 {
			c.collect(now)
		}
	case *wire.Decide:
		if up && c.phase == collecting && m.Round == c.round && c.reported {
			c.decided(now, m)
		}
	case *wire.Notice:
		if up {
			c.noticed(m)
		}
	case *wire.Report:
		if down != nil && c.phase == collecting && m.Round == c.round && down.report == nil {
			down.report = m
			c.merge(now)
		}
	case *wire.Alarm:
		if down != nil {
			c.raise(now, m)
		}
	case *wire.Settled:
		if down != nil {
			down.settled.raise(m.Number)
			c.settle()
		} else {
			c.settledAll(m.Number)
		}
	case *wire.Holding:
		if down != nil {
			c.holding(now, down, m.Epoch)
		}
	}
}

func (c *Core) child(rank uint32) *child {
	return core.Find(c.children, func(k *child) bool { return k.rank == rank })
}

func (c *Core) send(to uint32, frame []byte) {
	c.out.Sends = append(c.out.Sends, Send{To: to, Frame: frame})
}

func (c *Core) sendUp(frame []byte) {
	if c.cfg.Parent >= 0 {
		c.send(uint32(c.cfg.Parent), frame)
	}
}

func (c *Core) sendDown(frame []byte) {
	for i := range c.children {
		c.send(c.children[i].rank, frame)
	}
}

// connected repeats to a neighbour what it may have missed: the last message,
// and what was to be sent on.
func (c *Core) connected(rank uint32) {
	switch {
	case c.phase == left:
		c.send(rank, wire.AppendGoodbye(nil))
	case c.fail != nil && (c.phase == ended || int(rank) == c.cfg.Parent):
		c.send(rank, c.fail.Append(nil))
	case c.phase == ended:
	case int(rank) == c.cfg.Parent:
		c.repeatUp()
	default:
		if k := c.child(rank); k != nil {
			c.repeatDown(k)
		}
	}
}

func (c *Core) repeatUp() {
	if c.phase == running && c.beneath.isKnown {
		c.sendUp((&wire.Settled{Number: c.beneath.before}).Append(nil))
	}
	if c.announced > c.epoch {
		c.sendUp((&wire.Holding{Epoch: c.announced}).Append(nil))
	}
	if c.phase == collecting {
		if c.reported {
			c.sendUp(c.report.Append(nil))
		}
		return
	}
	if c.alarm != nil {
		c.sendUp(c.alarm.Append(nil))
	}
	if c.decide != nil {
		c.give(&c.decide.Give)
	}
}

func (c *Core) repeatDown(k *child) {
	if c.all.isKnown {
		c.send(k.rank, (&wire.Settled{Number: c.all.before}).Append(nil))
	}
	if c.notice != nil {
		c.send(k.rank, c.notice.Append(nil))
	}
	if c.decide != nil {
		c.pass(k)
	}
	if c.phase == collecting && k.report == nil {
		c.send(k.rank, (&wire.Collect{Round: c.round, Epoch: c.epoch}).Append(nil))
	}
}
