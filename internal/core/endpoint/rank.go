package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/epoch"
	"github.com/tributary-fabric/tributary/internal/core/hosttree"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// MaxRadix is the largest radix of a tree of hosts.
const MaxRadix = 256

// FirstEpoch is the epoch in which every group begins, on its tree of hosts.
const FirstEpoch = 1

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("rank: invalid configuration")

// Config is what all members agree upon when the group is formed, and the
// member's own rank.
type Config struct {
	Group      uint32      // number of the group on its tree of hosts
	Cookie     wire.Cookie // of the tree of hosts, 48 bits
	Rank       uint32
	Size       int    // members
	Radix      int    // of the k-nomial tree of hosts, 2 to MaxRadix; 0: 2
	ChunkBytes int    // largest payload of a packet, for the group's life
	Window     uint32 // the largest window of any epoch, and that on the tree of hosts
	First      uint32 // number of the first chunk
	Timing     session.Timing
	// Linger is how long a member that has left waits for its neighbours to say
	// the same; 0: as long as that takes.
	Linger time.Duration
}

// DefaultLinger is the Linger of communicators.
const DefaultLinger = 5 * time.Second

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Size < 1 || c.Size > wire.MaxRank+1:
		return fmt.Errorf("%w: a group of %d members, want 1 to %d", ErrConfig, c.Size, wire.MaxRank+1)
	case int(c.Rank) >= c.Size:
		return fmt.Errorf("%w: rank %d in a group of %d", ErrConfig, c.Rank, c.Size)
	case c.Radix != 0 && (c.Radix < 2 || c.Radix > MaxRadix):
		return fmt.Errorf("%w: radix %d, want 2 to %d", ErrConfig, c.Radix, MaxRadix)
	case c.Cookie&^wire.CookieMask != 0:
		return fmt.Errorf("%w: a cookie of more than 48 bits", ErrConfig)
	}
	return c.session().Validate()
}

func (c Config) session() session.Config {
	return session.Config{Rank: c.Rank, Members: c.Size, ChunkBytes: c.ChunkBytes, Window: c.Window, Timing: c.Timing}
}

// Tree returns the group's tree of hosts, whose edges are the host connections
// that the members keep.
func (c Config) Tree() ranktree.Tree { return ranktree.KNomial(c.Size, max(c.Radix, 2)) }

// Kind is the kind of an Input.
type Kind uint8

// The kinds of inputs, with the fields that they use.
const (
	Start     Kind = iota + 1 // Operation
	Packet                    // From, Bytes, Size: a datagram from a switch, or several
	Frame                     // Rank, Bytes: from a neighbour
	Connected                 // Rank: the connection to that neighbour is new
	Dead                      // Rank, News.Reason: that neighbour is dead
	Offer                     // News.Link: the manager offers a tree
	Withdraw                  // News.Epoch, News.Reason: the manager takes an offer back
	Notice                    // News.Notice: at rank 0, what the manager said of the group
	Cancel                    // News.Reason: this member gives up
	Failed                    // News.Fail: so another communicator of these members has ended, or this one was revoked
	Rest                      // nothing was started for a while: give back what can be
)

// Input is one input. It is small, since there is one for every packet, and
// what it points to is read during Step only.
type Input struct {
	Kind      Kind
	Rank      uint32
	From      netip.AddrPort
	Bytes     []byte
	Size      int // if not 0: Bytes are datagrams of so many bytes each, but for the last
	Operation *session.Operation
	News      *News
}

// News is what comes rarely: of connections, of the manager, of the caller.
type News struct {
	Link   session.Link
	Epoch  uint32
	Reason string
	Notice wire.Notice
	Fail   wire.Fail
}

// Datagram is a packet for the leaf switch.
type Datagram = session.Send

// Message is a frame for a neighbour in the tree of hosts: Head and Body
// follow each other. Both are lent until the next Step.
type Message struct {
	To   uint32
	Head []byte
	Body []byte
}

// Entered reports that an epoch was entered.
type Entered struct {
	Epoch   uint32
	Offload bool
	Link    session.Link // the way into it
	Reason  string       // why the epoch before it ended
}

// Refused reports that an operation was not started.
type Refused struct {
	ID  uint64
	Err error
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Datagrams   []Datagram
	Messages    []Message
	Completions []session.Completion
	Refused     []Refused
	Entered     []Entered
	Loss        *session.Loss // this member found its epoch's tree lost
	Demand      uint32        // at rank 0: window that the operations can use from now on, in chunks; 0: as before
	Notice      *wire.Notice  // the manager's word on the group
	Ended       *wire.Fail    // the communicator has failed; no operation completes any more
	Left        bool          // the last barrier is done
	Gone        bool          // and every neighbour knows, or Config.Linger is over

	// TakesBatches, which the caller sets and Reset keeps, says that a Datagram may
	// be a batch of them.
	TakesBatches bool
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	o.Datagrams, o.Messages, o.Completions = o.Datagrams[:0], o.Messages[:0], o.Completions[:0]
	o.Refused, o.Entered = o.Refused[:0], o.Entered[:0]
	o.Loss, o.Demand, o.Notice, o.Ended, o.Left, o.Gone = nil, 0, nil, nil, false, false
}

// Core is one member of a communicator. Its methods are not safe for
// concurrent use.
type Core struct {
	cfg     Config
	session *session.Session
	epoch   *epoch.Core
	node    *hosttree.Core

	ended bool
	left  bool      // the last barrier is done
	gone  bool      // and every neighbour knows, or the time for that is over
	until core.Time // where left: the end of that time

	out  *Output
	sOut session.Output
	eOut epoch.Output
	nOut hosttree.Output

	// Packets between the session and its own node, and frames of packets.
	toNode    []hosttree.Input
	toSession []session.Input
	up, down  arena // their bytes: reset when nothing is queued
	frames    arena // of this Step's Messages
}

// New returns a member that has begun in FirstEpoch.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c := &Core{cfg: cfg}
	var err error
	if c.session, err = session.New(cfg.session(), cfg.First); err != nil {
		return nil, err
	}
	t := cfg.Tree()
	place := epoch.Config{Rank: cfg.Rank, Parent: epoch.NoParent, Window: cfg.Window}
	if p, ok := t.Parent(int(cfg.Rank)); ok {
		place.Parent = p
	}
	for _, r := range t.Children(int(cfg.Rank)) {
		place.Children = append(place.Children, uint32(r))
	}
	if c.epoch, err = epoch.New(place, FirstEpoch, (*member)(c)); err != nil {
		return nil, err
	}
	c.node = hosttree.New(hosttree.Config{
		Group: cfg.Group, Cookie: cfg.Cookie, Rank: cfg.Rank, Tree: t,
		ChunkBytes: cfg.ChunkBytes, Window: cfg.Window,
	})
	link := c.node.Enter(0, FirstEpoch)
	return c, c.session.Enter(0, link, session.Decision{Base: cfg.First}, &c.sOut)
}

// Epoch returns the present epoch.
func (c *Core) Epoch() uint32 { return c.epoch.Epoch() }

// Counters returns what the member's session has counted.
func (c *Core) Counters() session.Counters { return c.session.Counters() }

// Streams reports whether more than that many of the member's contributions are
// on their way, and further ones wait until there is room.
func (c *Core) Streams(most int) bool { return c.session.Streams(most) }

// Deadline returns the next moment at which the member wants to be stepped.
func (c *Core) Deadline() core.Time {
	switch {
	case c.ended || c.gone:
		return core.Never
	case c.left:
		return c.until
	}
	return c.session.Deadline()
}

// Step takes inputs in order, and then sends what the window allows. What
// follows from a batch of packets is brought about at once.
func (c *Core) Step(now core.Time, in []Input, out *Output) {
	c.out = out
	if c.gone {
		c.repeat(now, in)
		c.out = nil
		return
	}
	c.frames.reset()
	c.sOut.Reset()
	c.sOut.TakesBatches = out.TakesBatches
	for i := range in {
		c.take(now, &in[i])
	}
	c.settle(now)
	if c.left && !c.gone && now >= c.until {
		c.gone, out.Gone = true, true
	}
	c.out = nil
}

// repeat has a member that is gone say goodbye again where that may be lost. It does nothing else,
// whatever comes: a lease that it renewed would keep a tree that nobody uses.
func (c *Core) repeat(now core.Time, in []Input) {
	for i := range in {
		switch in[i].Kind {
		case Start:
			c.out.Refused = append(c.out.Refused, Refused{ID: in[i].Operation.ID, Err: ErrEnded})
		case Connected:
			c.agree(now, epoch.Input{Kind: epoch.Connected, From: in[i].Rank})
		}
	}
}

func (c *Core) take(now core.Time, in *Input) {
	switch in.Kind {
	case Start:
		c.start(in)
	case Packet:
		c.packet(in)
	case Frame:
		c.frame(now, in.Rank, in.Bytes)
	default:
		c.settleQueued(now)
		c.news(now, in)
	}
}

func (c *Core) packet(in *Input) {
	if c.ended {
		return
	}
	from := in.From
	if !c.session.Offload() {
		from = netip.AddrPort{} // whatever it says, it is not from the own node
	}
	c.toSession = append(c.toSession, session.Input{From: from, Packet: in.Bytes, Size: in.Size})
}

// news takes what is no packet, frame or operation.
func (c *Core) news(now core.Time, in *Input) {
	n := in.News
	if n == nil {
		n = &News{}
	}
	switch in.Kind {
	case Connected:
		c.agree(now, epoch.Input{Kind: epoch.Connected, From: in.Rank})
		c.session.Reconnected(now)
	case Dead:
		c.agree(now, epoch.Input{Kind: epoch.Dead, From: in.Rank, Reason: n.Reason})
	case Offer:
		// An offer that cannot be entered is not held: the group goes on
		// without it.
		if n.Link.Validate(c.cfg.session()) == nil {
			c.agree(now, epoch.Input{Kind: epoch.Offered, Link: n.Link})
		}
	case Withdraw:
		c.agree(now, epoch.Input{Kind: epoch.Withdrawn, Epoch: n.Epoch, Reason: n.Reason})
	case Notice:
		c.agree(now, epoch.Input{Kind: epoch.Noticed, Notice: n.Notice})
	case Cancel:
		c.fail(now, wire.Fail{Kind: wire.FailCancel, Rank: c.cfg.Rank, Reason: n.Reason})
	case Failed:
		c.fail(now, n.Fail)
	case Rest:
		c.rest(now)
	}
}

// rest has the group agree what nobody will ask for any more, and gives back the
// memory of packets on their way, of which there are none.
func (c *Core) rest(now core.Time) {
	c.agree(now, epoch.Input{Kind: epoch.Rested, Number: c.session.Base()})
	if !c.session.Pending() {
		c.toNode, c.toSession, c.up, c.down, c.frames = nil, nil, arena{}, arena{}, arena{}
		c.nOut = hosttree.Output{}
		if len(c.sOut.Sends)+len(c.sOut.Completions) == 0 {
			c.sOut = session.Output{TakesBatches: c.sOut.TakesBatches}
		}
	}
}

func (c *Core) start(in *Input) {
	var err error
	switch o := in.Operation; {
	case c.ended:
		err = ErrEnded
	case int64(o.Root) >= int64(c.cfg.Size):
		err = fmt.Errorf("%w: root %d in a group of %d", session.ErrOperation, o.Root, c.cfg.Size)
	default:
		err = c.session.Start(*o)
	}
	if err != nil {
		c.out.Refused = append(c.out.Refused, Refused{ID: in.Operation.ID, Err: err})
	}
}

// ErrEnded: the communicator has failed, or was left, before the operation was started.
var ErrEnded = errors.New("rank: the communicator has ended")

// frame takes a neighbour's frame: a packet is for the node, all else for the
// agreement.
func (c *Core) frame(now core.Time, from uint32, b []byte) {
	if len(b) > 0 && wire.FrameKind(b[0]) == wire.FramePacket {
		if !c.ended && from != c.cfg.Rank {
			c.toNode = append(c.toNode, hosttree.Input{From: from, Packet: b[1:]})
		}
		return
	}
	c.settleQueued(now)
	m, err := wire.ReadFrame(b)
	if err != nil {
		c.fail(now, wire.Fail{Kind: wire.FailInternal, Rank: from, Reason: err.Error()})
		return
	}
	c.agree(now, epoch.Input{Kind: epoch.Message, From: from, Frame: m})
}

func (c *Core) fail(now core.Time, f wire.Fail) {
	c.agree(now, epoch.Input{Kind: epoch.Failed, Fail: f})
}

// agree steps the agreement and sends its frames.
func (c *Core) agree(now core.Time, in epoch.Input) {
	c.eOut.Reset()
	c.epoch.Step(now, []epoch.Input{in}, &c.eOut)
	for _, s := range c.eOut.Sends {
		c.out.Messages = append(c.out.Messages, Message{To: s.To, Head: s.Frame})
	}
	if c.eOut.Notice != nil {
		c.out.Notice = c.eOut.Notice
	}
	if c.eOut.Gone && !c.gone {
		c.gone, c.out.Gone = true, true
	}
}

// settleQueued settles what came before an input of the agreement, and belongs
// to the epoch that this may end.
func (c *Core) settleQueued(now core.Time) {
	if len(c.toSession)+len(c.toNode) > 0 {
		c.settle(now)
	}
}

// settle steps session and node until nothing passes between them any more.
func (c *Core) settle(now core.Time) {
	for first := true; first || len(c.toSession)+len(c.toNode) > 0; first = false {
		if c.ended {
			c.toSession, c.toNode = c.toSession[:0], c.toNode[:0]
			return
		}
		c.stepSession(now)
		c.stepNode(now)
	}
	if c.session.Left() && !c.left {
		c.left, c.out.Left, c.until = true, true, core.Never
		if c.cfg.Linger > 0 {
			c.until = now.Add(c.cfg.Linger)
		}
		c.agree(now, epoch.Input{Kind: epoch.LastDone})
	}
}

func (c *Core) stepSession(now core.Time) {
	in := c.toSession
	c.session.Step(now, in, &c.sOut)
	c.toSession = c.toSession[:0]
	c.flush()
	if d := c.sOut.Disagreement; d != nil {
		c.fail(now, wire.Fail{Kind: wire.FailDisagree, Rank: c.cfg.Rank, Error: d.Body})
	}
	if l := c.sOut.Loss; l != nil {
		c.out.Loss = l
		c.agree(now, epoch.Input{Kind: epoch.Lost, Epoch: l.Epoch, Reason: l.String()})
	}
	if c.sOut.Demand != 0 {
		c.out.Demand = c.sOut.Demand
	}
	c.sOut.Loss, c.sOut.Disagreement, c.sOut.Demand = nil, nil, 0
}

// flush passes on what the session has put out: packets to its own node or to
// the leaf switch, and completions.
func (c *Core) flush() {
	switch {
	case len(c.sOut.Sends) == 0:
	case !c.session.Offload():
		c.toOwnNode()
	case len(c.out.Datagrams) == 0: // the usual one: nothing is copied
		c.out.Datagrams, c.sOut.Sends = c.sOut.Sends, c.out.Datagrams
	default:
		c.out.Datagrams = append(c.out.Datagrams, c.sOut.Sends...)
	}
	c.out.Completions = append(c.out.Completions, c.sOut.Completions...)
	c.sOut.Sends, c.sOut.Completions = c.sOut.Sends[:0], c.sOut.Completions[:0]
}

func (c *Core) toOwnNode() {
	if len(c.toNode) == 0 {
		c.up.reset()
	}
	for i := range c.sOut.Sends {
		s := &c.sOut.Sends[i]
		c.toNode = append(c.toNode, hosttree.Input{From: c.cfg.Rank, Packet: c.up.join(s.Head[:], s.Body)})
	}
}

// stepNode steps the node in the tree of hosts.
func (c *Core) stepNode(now core.Time) {
	if len(c.toNode) == 0 {
		return
	}
	c.nOut.Reset()
	c.node.Step(now, c.toNode, &c.nOut)
	c.toNode = c.toNode[:0]
	if len(c.toSession) == 0 {
		c.down.reset()
	}
	for i := range c.nOut.Sends {
		s := &c.nOut.Sends[i]
		if s.To == c.cfg.Rank {
			c.toSession = append(c.toSession, session.Input{From: hosttree.Addr(s.To), Packet: c.down.join(s.Head[:], s.Body)})
			continue
		}
		// The node's memory may be taken over before the caller sends.
		frame := c.frames.packet(&s.Head, s.Body)
		c.out.Messages = append(c.out.Messages, Message{To: s.To, Head: frame})
	}
}

// member is the side of a Core that the agreement drives.
type member Core

func (m *member) Freeze() session.Report { return m.session.Freeze() }

func (m *member) Enter(now core.Time, e uint32, link *session.Link, d session.Decision, reason string) error {
	var way session.Link
	if link != nil {
		way = *link
	} else {
		way = m.node.Enter(now, e)
	}
	// What the session sent in the old epoch would otherwise take the new way.
	(*Core)(m).flush()
	if err := m.session.Enter(now, way, d, &m.sOut); err != nil {
		return err
	}
	m.out.Entered = append(m.out.Entered, Entered{Epoch: e, Offload: way.Offload(), Link: way, Reason: reason})
	return nil
}

func (m *member) Kept(n uint32) ([]byte, int8, bool) { return m.session.Kept(n) }

func (m *member) Fill(now core.Time, n uint32, data []byte, exponent int8) {
	m.session.Fill(now, n, data, exponent, &m.sOut)
}

func (m *member) Forget(n uint32) {
	m.session.Forget(n)
	m.node.Forget(n)
}

func (m *member) FinishLast(now core.Time) bool { return m.session.FinishLast(now, &m.sOut) }

func (m *member) End(f wire.Fail) {
	m.ended = true
	reported := f
	m.out.Ended = &reported
}
