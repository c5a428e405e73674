package broadcast

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// A cluster is some nodes with a network that works in rounds: in each, every
// node gets one of its messages through, which is the published model with
// o = l = 1. Callbacks run at once unless they are held.
type cluster struct {
	clock core.Time
	names []broadcastmsg.Node
	nodes map[broadcastmsg.Node]*testNode
	log   strings.Builder
	round int
	shape broadcastmsg.Tree
	trace bool                                        // note callbacks
	lags  func(from broadcastmsg.Node, p packet) bool // it goes when nothing else moves; nil: nothing does
	world *Members
	keys  bool                // requests are proven
	allow func(Caller) string // of the service
}

// testNode is a node, the network's and the service's side of it.
type testNode struct {
	*cluster
	*Core
	name     broadcastmsg.Node
	out      Output
	queue    []packet
	failing  error               // of every Send
	mute     bool                // what it sends is lost
	asked    []broadcastmsg.Node // to find out whether they can be reached
	held     map[CallKind]bool
	calls    []Call // that are held
	errs     map[CallKind]error
	noReply  bool // post-reply gives none
	noBuffer bool
	room     int // of reply buffers
	tags     int // it saw in its last request

	ran      int                 // requests run
	called   map[CallKind]int    // callbacks
	bodies   map[uint64][][]byte // replies of children, by request
	seen     []ChildReply
	payload  [][]byte
	ends     []End
	group    uint64 // of the last Created
	created  []error
	denials  []Denial
	memory   map[uint64][]byte // exposed
	bulk     map[uint64][]byte // of requests
	after    func(n *testNode, call Call)
	pulling  func(p *Pull) error // after the memory was read
	slowPull func(p Pull)        // instead of reading it; the test answers
}

type packet struct {
	to    broadcastmsg.Node
	bytes []byte
}

const testService = 7

var binomial = broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: 2}

func newCluster(n int, shape broadcastmsg.Tree) *cluster {
	return newClusterOf(&cluster{shape: shape}, n)
}

// newProven is newCluster of nodes whose requests are proven.
func newProven(n int, shape broadcastmsg.Tree) *cluster {
	return newClusterOf(&cluster{shape: shape, keys: true}, n)
}

func newClusterOf(c *cluster, n int) *cluster {
	c.nodes = map[broadcastmsg.Node]*testNode{}
	for i := range n {
		c.add(broadcastmsg.Node(fmt.Sprintf("n%d", i)), 1)
	}
	return c
}

// add starts a node, or restarts it.
func (c *cluster) add(name broadcastmsg.Node, incarnation uint64) *testNode {
	cfg := DefaultConfig(name, incarnation)
	cfg.RoundTrip = 10 * time.Millisecond
	if c.keys {
		seed := sha256.Sum256(fmt.Appendf(nil, "%s %d", name, incarnation))
		cfg.Key, cfg.Secret = ed25519.NewKeyFromSeed(seed[:]), [16]byte(seed[:])
	}
	k, err := New(cfg)
	if err != nil {
		panic(err)
	}
	if err := k.Register(Service{ID: testService, OutOfBand: true, Allow: c.allow}); err != nil {
		panic(err)
	}
	n := &testNode{
		cluster: c, Core: k, name: name, room: 4096,
		held: map[CallKind]bool{}, errs: map[CallKind]error{}, called: map[CallKind]int{},
		bodies: map[uint64][][]byte{}, memory: map[uint64][]byte{}, bulk: map[uint64][]byte{},
	}
	if c.nodes[name] == nil {
		c.names = append(c.names, name)
	}
	c.nodes[name] = n
	return n
}

func (c *cluster) node(i int) *testNode { return c.nodes[c.names[i]] }

// targets returns all nodes, each with two entities.
func (c *cluster) targets() []broadcastmsg.Target {
	var all []broadcastmsg.Target
	for i, name := range c.names {
		all = append(all, broadcastmsg.Target{Node: name, Tags: []broadcastmsg.Tag{{byte(i), 1}, {byte(i), 2}}})
	}
	return all
}

func (c *cluster) members() *Members {
	m, err := NewMembers(testService, c.targets())
	if err != nil {
		panic(err)
	}
	return m
}

func (n *testNode) step(inputs ...Input) {
	n.Core.Step(n.clock, inputs, &n.out)
	n.settleOutput()
}

// settleOutput does what the core asks for until it asks for nothing.
func (n *testNode) settleOutput() {
	for {
		o := n.out
		n.out = Output{}
		if len(o.Sends)+len(o.Calls)+len(o.Pulls)+len(o.Exposes)+len(o.Revokes)+len(o.Ends) == 0 {
			return
		}
		for _, key := range o.Revokes {
			delete(n.memory, key)
		}
		for _, e := range o.Exposes {
			if n.memory[e.Key] = e.Bytes; e.Bytes == nil {
				n.memory[e.Key] = n.bulk[e.Request]
			}
		}
		n.ends = append(n.ends, o.Ends...)
		n.denials = append(n.denials, o.Denials...)
		for _, e := range o.Ends {
			if n.trace && e.Root {
				n.note("end, ran %d of %d, error: %v", e.Outcome.Ran, e.Outcome.Nodes, e.Err)
			} else if n.trace && e.Err != nil {
				n.note("end, error: %v", e.Err)
			}
		}
		for _, s := range o.Sends {
			failed := n.failing
			if failed == nil && n.nodes[s.To] == nil {
				failed = errors.New("nobody is there")
			}
			if len(s.Bytes) == 0 {
				n.asked = append(n.asked, s.To)
			} else if failed == nil && !n.mute {
				n.queue = append(n.queue, packet{s.To, bytes.Clone(s.Bytes)})
			}
			n.Core.Step(n.clock, []Input{{Kind: Sent, Number: s.Number, Err: failed}}, &n.out)
		}
		for _, p := range o.Pulls {
			n.pull(p)
		}
		for _, call := range o.Calls {
			if n.held[call.Kind] {
				n.calls = append(n.calls, call)
				continue
			}
			n.run(call)
		}
	}
}

func (n *testNode) pull(p Pull) {
	if n.slowPull != nil {
		n.slowPull(p)
		return
	}
	var err error
	from := n.nodes[p.From].memory[p.Key]
	if uint64(len(from)) != p.Length {
		err = errors.New("nothing is there")
	}
	into := p.Into
	if into == nil {
		into = n.bulk[p.Request]
	}
	copy(into, from)
	if n.pulling != nil && err == nil {
		p.Into = into
		err = n.pulling(&p)
	}
	n.Core.Step(n.clock, []Input{{Kind: Pulled, Request: p.Request, Err: err}}, &n.out)
}

func (n *testNode) note(format string, args ...any) {
	fmt.Fprintf(&n.log, "%s: %s\n", n.name, fmt.Sprintf(format, args...))
}

// release runs the callbacks that are held.
func (n *testNode) release() {
	clear(n.held)
	calls := n.calls
	n.calls = nil
	for _, call := range calls {
		n.run(call)
	}
	n.settleOutput()
}

// run is the service: its reply names itself and all whose replies it has.
func (n *testNode) run(call Call) {
	n.called[call.Kind]++
	in := Input{Kind: Returned, Call: call.Kind, Request: call.Request, Err: n.errs[call.Kind]}
	if n.trace {
		n.notify(call)
	}
	v, _ := n.Request(call.Request)
	switch call.Kind {
	case Created:
		n.group = call.Group
		n.created = append(n.created, call.Err)
		return
	case Map:
		in.Members = n.world
	case PreRequest:
		n.payload = append(n.payload, bytes.Clone(v.Payload))
		for i := range v.Children {
			if !n.noBuffer && in.Err == nil {
				_ = n.PostReplyBuffer(call.Request, i, nil, n.room) // the root may have done it
			}
		}
		if !v.IsRoot {
			n.bulk[call.Request] = make([]byte, min(v.Bulk, 64<<20)) // forged ones have more
		}
		in.BulkRoom = uint64(len(n.bulk[call.Request]))
	case IncomingRequest:
		n.ran++
		n.tags = len(v.Tags)
		clear(v.Payload) // the copy is the service's
	case IncomingReply:
		in.Child = call.Reply.Child
		n.seen = append(n.seen, call.Reply)
		if call.Reply.Status == broadcastmsg.OK {
			n.bodies[call.Request] = append(n.bodies[call.Request], bytes.Clone(call.Reply.Body))
		}
	case PostReply:
		if !n.noReply && in.Err == nil {
			n.answer(call.Request)
		}
	case ReplyOut:
	}
	if n.after != nil {
		n.after(n, call)
	}
	n.Core.Step(n.clock, []Input{in}, &n.out)
}

func (n *testNode) notify(call Call) {
	switch call.Kind {
	case IncomingReply:
		r := call.Reply
		n.note("incoming-reply of %s: %v %q", r.Source, r.Status, r.Body)
	case Created, ReplyOut:
		n.note("%v, error: %v", call.Kind, call.Err)
	default:
		n.note("%v", call.Kind)
	}
}

// answer replies with the names of this node and of those beneath it.
func (n *testNode) answer(id uint64) {
	names := []string{string(n.name)}
	for _, body := range n.bodies[id] {
		names = append(names, string(body))
	}
	slices.Sort(names)
	_ = n.Reply(n.clock, id, []byte(strings.Join(names, " ")), false, &n.out)
}

// create makes a group of all nodes from node i.
func (c *cluster) create(i int, delayed bool) error {
	n := c.node(i)
	_, err := n.CreateGroup(n.clock, Creation{
		Service: testService, Name: "g", Targets: c.targets(), Tree: c.shape, Delayed: delayed,
	}, &n.out)
	n.settleOutput()
	return err
}

// send broadcasts from n.
func (n *testNode) send(b Broadcast) (uint64, error) {
	if b.Group == 0 {
		b.Group = n.group
	}
	id, err := n.NewRequest(b)
	if err != nil {
		return 0, err
	}
	n.bulk[id] = bytes.Repeat([]byte{'b'}, int(b.Bulk))
	err = n.Core.Send(n.clock, id, &n.out)
	n.settleOutput()
	return id, err
}

// next lets a round pass, and reports whether anything was on its way.
func (c *cluster) next() bool {
	type arrival struct {
		from broadcastmsg.Node
		packet
	}
	var all []arrival
	for _, lagging := range []bool{false, true} {
		for _, name := range c.names {
			n := c.nodes[name]
			if k := n.first(lagging); k >= 0 && (!lagging || len(all) == 0) {
				all = append(all, arrival{name, n.queue[k]})
				n.queue = slices.Delete(n.queue, k, k+1)
			}
		}
	}
	c.round++
	if c.trace && len(all) > 0 {
		fmt.Fprintf(&c.log, "round %d\n", c.round)
	}
	for _, a := range all {
		if c.trace {
			fmt.Fprintf(&c.log, "%s -> %s %s\n", a.from, a.to, describe(a.bytes))
		}
		c.nodes[a.to].step(Input{Kind: Message, Node: a.from, Bytes: a.bytes})
	}
	return len(all) > 0
}

// first returns which message a node gets through, -1 if none: what goes to one
// node stays in order.
func (n *testNode) first(lagging bool) int {
	held := map[broadcastmsg.Node]bool{}
	for k, p := range n.queue {
		if !held[p.to] && (n.lags == nil || lagging || !n.lags(n.name, p)) {
			return k
		}
		held[p.to] = true
	}
	return -1
}

// settle lets rounds pass until nothing moves.
func (c *cluster) settle() {
	for c.next() {
	}
}

// pass lets time pass, deadline by deadline, and messages move.
func (c *cluster) pass(d time.Duration) {
	until := c.clock.Add(d)
	for {
		c.settle()
		next := core.Never
		for _, name := range c.names {
			next = next.Earlier(c.nodes[name].Deadline())
		}
		if next > until {
			c.clock = until
			return
		}
		c.clock = max(c.clock, next)
		for _, name := range c.names {
			n := c.nodes[name]
			if n.Deadline() > c.clock {
				continue
			}
			if c.trace {
				fmt.Fprintf(&c.log, "time %v at %s\n", time.Duration(c.clock), name)
			}
			n.step()
		}
	}
}

// notifyAll gives every node an input.
func (c *cluster) notifyAll(in Input) {
	for _, name := range c.names {
		if name != in.Node {
			c.nodes[name].step(in)
		}
	}
}

// restart gives node i a new incarnation, which all are reported.
func (c *cluster) restart(i int, incarnation uint64) {
	name := c.names[i]
	c.add(name, incarnation)
	c.notifyAll(Input{Kind: Up, Node: name, Incarnation: incarnation})
}

func describe(b []byte) string {
	switch {
	case broadcastmsg.IsQuestion(b):
		return "question"
	case broadcastmsg.IsAnswer(b):
		return "answer"
	}
	if broadcastmsg.IsReply(b) {
		r, err := decodeReply(b)
		if err != nil {
			return err.Error()
		}
		text := fmt.Sprintf("reply %d %v ran=%d %q", r.Sequence, r.Status, r.Ran, r.Body)
		for _, m := range r.Missing {
			text += fmt.Sprintf(" missing %s(%d nodes, %v)", m.Node, m.Nodes, m.Status)
		}
		return text
	}
	r, err := decodeRequest(b)
	if err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("request %d", r.Sequence)
	if r.Creation != nil {
		text += " creates"
	}
	if r.Flags&broadcastmsg.Own != 0 {
		text += " own"
	}
	if r.Flags&broadcastmsg.Last != 0 {
		text += " last"
	}
	if r.Bulk.Length > 0 {
		text += fmt.Sprintf(" bulk=%d", r.Bulk.Length)
	}
	return text + fmt.Sprintf(" P=%v %q", r.Patience, r.Payload)
}

// leaks returns what a node holds that it should not when nothing is under way.
func (n *testNode) leaks() string {
	c := n.Counters()
	if c.LentBuffers != 0 || c.Posted != 0 || c.Exposed != 0 || c.Requests != 0 || len(n.active) != 0 || len(n.sends) != 0 || n.Deadline() != core.Never {
		return fmt.Sprintf("%s holds %+v, %d active, %d sends, deadline %v", n.name, c, len(n.active), len(n.sends), n.Deadline())
	}
	return ""
}

func decodeRequest(b []byte) (*broadcastmsg.Request, error) {
	r := new(broadcastmsg.Request)
	return r, r.Decode(b)
}

func decodeReply(b []byte) (*broadcastmsg.Reply, error) {
	r := new(broadcastmsg.Reply)
	return r, r.Decode(b)
}
