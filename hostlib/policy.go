package hostlib

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/core/setting"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/pathsel"
)

// policy is what a member chooses the ways of operations by: the same at all members for each
// operation (package setting), whatever each of them knows of the tree at that moment.
type policy struct {
	costs    *pathsel.Costs
	switches bool // the communicator's tree is taken to be one of switches
	measured bool // rates are of this fabric, not those that are built in
	coded    []byte
}

// newPolicy returns that by costs, of hosts that share so many processors and have such links, unless these
// say so.
func newPolicy(costs *pathsel.Costs, switches bool, processors int, links pathsel.Links) *policy {
	if costs.Processors > 0 {
		processors = costs.Processors
	}
	if costs.Links.Rate > 0 {
		links = costs.Links
	}
	if processors != costs.Processors || links != costs.Links {
		costs = &pathsel.Costs{Rates: costs.Rates, Processors: processors, Links: links}
	}
	t := &policy{costs: costs, switches: switches, measured: costs.Rates != pathsel.DefaultCosts().Rates, coded: []byte{0}}
	if switches {
		t.coded[0] = 1
	}
	for _, x := range []uint64{uint64(costs.Processors), uint64(costs.Links.Rate), uint64(costs.Links.Uplink), uint64(costs.Links.Leaf)} {
		t.coded = binary.AppendUvarint(t.coded, x)
	}
	for f := range costs.Rates {
		for k := range costs.Rates[f] {
			for _, d := range costs.Rates[f][k] {
				t.coded = binary.AppendUvarint(t.coded, uint64(d))
			}
		}
	}
	return t
}

var errPolicy = errors.New("hostlib: malformed policy")

// lastPolicy are those that were read last: most communicators of a process have the same.
var lastPolicy atomic.Pointer[policy]

func readPolicy(b []byte) (*policy, error) {
	if t := lastPolicy.Load(); t != nil && bytes.Equal(t.coded, b) {
		return t, nil
	}
	if len(b) == 0 || b[0] > 1 {
		return nil, errPolicy
	}
	costs, rest, isWhole := new(pathsel.Costs), b[1:], true
	number := func() uint64 {
		x, n := binary.Uvarint(rest)
		if n <= 0 {
			rest, isWhole = nil, false
			return 0
		}
		rest = rest[n:]
		return x
	}
	costs.Processors = int(number())
	costs.Links = pathsel.Links{Rate: int64(number()), Uplink: int64(number()), Leaf: int(number())}
	for f := range costs.Rates {
		for k := range costs.Rates[f] {
			for i := range costs.Rates[f][k] {
				costs.Rates[f][k][i] = time.Duration(number())
			}
		}
	}
	if !isWhole || len(rest) > 0 || costs.Validate() != nil {
		return nil, errPolicy
	}
	t := &policy{costs: costs, switches: b[0] == 1, measured: costs.Rates != pathsel.DefaultCosts().Rates, coded: b}
	lastPolicy.Store(t)
	return t, nil
}

// isPolicy reports whether members can choose by b.
func isPolicy(b []byte) bool {
	_, err := readPolicy(b)
	return err == nil
}

// promised are the operations beyond those that a member has called that it may call before the
// members' next decision. More wait for it, for a round trip of the tree of hosts at most; and all of
// them are chosen by the policy as they were.
const promised = 4

// agreed is the policy of a member's next operations.
type agreed struct {
	now   *policy   // nil: the communicator is not formed, or has one member
	next  []planned // that follow
	bound uint32    // position that operations must not have before decided is closed,
	wait  chan struct{}
}

// planned is the policy of operations from a position on.
type planned struct {
	position uint32
	*policy
}

// position returns that of the next operation. It is called for who holds the lock.
func (m *messaging) position() uint32 {
	if m.past == nil {
		return 0
	}
	return m.past.position
}

// promise returns a position that no operation of this member has, and none will have before decide.
func (m *messaging) promise() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := &m.agreed
	if a.wait == nil {
		a.bound, a.wait = m.position()+promised, make(chan struct{})
	}
	return a.bound
}

// decide takes the members' decision.
func (m *messaging) decide(p planned) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agreed.next = append(m.agreed.next, p)
	if m.agreed.wait != nil {
		close(m.agreed.wait)
		m.agreed.wait = nil
	}
}

// policy returns that of the next operation. It may have to wait for the members' decision.
func (c *Communicator) policy() *policy {
	for {
		t, wait := c.messaging.agree()
		if wait == nil {
			return t
		}
		select {
		case <-wait:
		case <-c.over: // the operation fails
			return t
		case <-c.loop.Done():
			return t
		}
	}
}

// agree returns the policy of the next operation, and what is to be waited for first, if anything.
func (m *messaging) agree() (t *policy, wait <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, at := &m.agreed, m.position()
	for len(a.next) > 0 && int32(at-a.next[0].position) >= 0 {
		a.now, a.next = a.next[0].policy, a.next[1:]
	}
	if a.wait != nil && int32(at-a.bound) >= 0 {
		wait = a.wait
	}
	if a.now == nil {
		return lonely, wait
	}
	return a.now, wait
}

// lonely is the policy of a group of one, in which nothing differs.
var lonely = newPolicy(pathsel.DefaultCosts(), false, 0, pathsel.Links{})

// wanted returns the policy that the lowest rank wants.
func (c *Communicator) wanted() *policy {
	c.mu.Lock()
	switches := c.manager != nil && (c.status.offload || !c.status.isFinal && !c.status.isLate)
	links := c.status.links
	c.mu.Unlock()
	return newPolicy(c.host.costs.Load(), switches, c.sharedProcessors(), links)
}

// sharedProcessors returns this machine's, where all members have one address; 0: members have
// processors of their own.
func (c *Communicator) sharedProcessors() int {
	own, _, _ := net.SplitHostPort(c.members[0].Addr)
	for _, m := range c.members {
		if at, _, err := net.SplitHostPort(m.Addr); err != nil || at != own {
			return 0
		}
	}
	return runtime.NumCPU()
}

// learn takes the manager's costs, for groups whose lowest rank is here.
func (h *Host) learn(costs *pathsel.Costs) {
	h.costs.Store(costs)
	for _, c := range h.counts.all() {
		c.wish()
	}
}

// wish has the lowest rank find out whether it wants another policy. It is not called by the loop.
func (c *Communicator) wish() {
	if c.rank == 0 && len(c.members) > 1 && c.sub.of == nil {
		c.post(item{wish: true})
	}
}

// settingLoop is what the loop knows of the members' agreement on a policy.
type settingLoop struct {
	core   *setting.Core // nil: the communicator is not formed
	inputs []setting.Input
	out    setting.Output
	isDue  bool // the lowest rank may want another policy
}

// takes reports whether an item is for the agreement, and notes it.
func (l *settingLoop) takes(it *item) bool {
	if it.wish {
		l.isDue = true
		return true
	}
	if it.in.Kind != endpoint.Frame || len(it.in.Bytes) == 0 || wire.FrameKind(it.in.Bytes[0]) != wire.FrameSetting {
		return false
	}
	read, err := wire.ReadFrame(it.in.Bytes)
	if err != nil {
		return false // the member's core ends the communicator for it
	}
	m := read.(*wire.Setting)
	if m.Step == wire.SettingDecide && !isPolicy(m.Value) {
		return false
	}
	l.inputs = append(l.inputs, setting.Input{Kind: setting.Frame, From: it.in.Rank, Message: m})
	return true
}

// connected notes a new stream: what was sent on another may be dropped.
func (l *settingLoop) connected(it *item) {
	l.inputs = append(l.inputs, setting.Input{Kind: setting.Connected, From: it.in.Rank})
}

// agreesFirst has the members, which are all there, agree on a policy to begin with.
func (s *stepper) agreesFirst() {
	first := s.gathered.core.Setting()
	t, err := readPolicy(first)
	if err != nil { // never: see gathering.takes
		return
	}
	parent, children := s.neighbours()
	s.policies.core, s.policies.isDue = setting.New(parent, children, t.coded), s.rank == 0
	s.messaging.mu.Lock()
	s.messaging.agreed.now = t
	s.messaging.mu.Unlock()
}

// agrees steps the agreement, if there is anything to do.
func (s *stepper) agrees(out *endpoint.Output) {
	l := &s.policies
	if l.core == nil {
		l.inputs = l.inputs[:0]
		return
	}
	if l.isDue && s.rank == 0 {
		l.inputs = append(l.inputs, setting.Input{Kind: setting.Wish, Value: s.wanted().coded})
	}
	l.isDue = false
	for len(l.inputs) > 0 {
		l.out.Reset()
		l.core.Step(l.inputs, &l.out)
		clear(l.inputs)
		l.inputs = l.inputs[:0]
		for _, m := range l.out.Sends {
			out.Messages = append(out.Messages, endpoint.Message{To: m.To, Head: m.Frame})
		}
		for _, d := range l.out.Decided {
			if t, err := readPolicy(d.Value); err == nil { // always: see takes
				s.messaging.decide(planned{d.Position, t})
			}
		}
		if l.out.Asked {
			l.inputs = append(l.inputs, setting.Input{Kind: setting.Promise, Position: s.messaging.promise()})
		}
	}
}
