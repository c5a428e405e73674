package sim

import (
	"fmt"
	"math/rand/v2"

	"github.com/tributary-fabric/tributary/internal/core"
)

// NodeID numbers the nodes of a world from 0, in the order of World.Add.
type NodeID int32

// Addr is where datagrams go to and come from.
type Addr struct {
	Node NodeID
	Port uint16
}

// Node is whatever lives in a world. The batch and the bytes in it are valid
// during Step only; it is empty where Step is called for the deadline alone. A
// Step must not crash, restart, cut or break anything; it can schedule that
// with World.After.
type Node interface {
	Step(now core.Time, batch []Delivery, h Handle)
	// Deadline returns when the node wants to be stepped even if nothing
	// arrives. It is asked after every step.
	Deadline() core.Time
}

// Kind is the kind of a Delivery.
type Kind uint8

// The kinds of deliveries, with the fields that they use.
const (
	Datagram Kind = iota // From, Port, Bytes
	Message              // From.Node, Bytes: over the connection
	Control              // From.Node, Value
	Up                   // From.Node: there is a new connection, the first one or after a break
	Dead                 // From.Node: it has crashed, or the connection was given up; also after a Restart
	Refused              // From.Node: it is not there; nothing is connected
	Closed               // From.Node: it has closed the connection
	Command              // Value: from outside the world
)

var kindNames = [...]string{"datagram", "message", "control", "up", "dead", "refused", "closed", "command"}

// String returns the kind's name as the trace has it.
func (k Kind) String() string { return kindNames[k] }

// Delivery is one thing that arrives at a node.
type Delivery struct {
	Kind  Kind
	Port  uint16 // the receiver's
	From  Addr
	Bytes []byte
	Value any
}

// Handle is a node's way into its world, valid during Step.
type Handle struct {
	w  *World
	id NodeID
}

// ID returns the node's own number.
func (h Handle) ID() NodeID { return h.id }

// World returns the world.
func (h Handle) World() *World { return h.w }

// Rand returns the world's generator.
func (h Handle) Rand() *rand.Rand { return h.w.rand }

// Send sends a datagram of head and body from one of the node's ports. Both are
// copied.
func (h Handle) Send(port uint16, to Addr, head, body []byte) {
	h.w.sendDatagram(Addr{h.id, port}, to, head, body)
}

// Dial asks for a connection to peer: an Up at both nodes follows, or Refused.
// Where there is one already, or one on its way, nothing happens.
func (h Handle) Dial(peer NodeID) { h.w.begin(h.id, peer, dialing) }

// Close closes the connection to peer after what was written. What is still
// under way to this node is lost.
func (h Handle) Close(peer NodeID) { h.w.hangUp(h.id, peer) }

// Write sends a message of head and body over the connection to peer and
// reports whether there is one. Both are copied. That it returns true does not
// mean that the message will arrive.
func (h Handle) Write(peer NodeID, head, body []byte) bool {
	return h.w.write(h.id, peer, head, body)
}

// Notify sends a control value to peer, which must not be changed any more.
func (h Handle) Notify(peer NodeID, value any) { h.w.notify(h.id, peer, value) }

// Note adds a line to the trace, and to its hash.
func (h Handle) Note(format string, args ...any) {
	h.w.trace(entry{what: noted, node: h.id, peer: nobody, text: fmt.Sprintf(format, args...)})
}

// node is the world's side of a Node.
type node struct {
	node  Node // nil after a crash
	inbox []Delivery
	paths []int32 // of inbox: the path by which each came; -1 for a Command

	deadline core.Time   // as the node said
	timers   []core.Time // that are in the queue, falling; the last is no later than deadline
	wakeAt   core.Time   // when the inbox is to be taken
	paused   core.Time   // no step before

	side  int32   // of the partition
	peers []int32 // paths to all nodes that it had to do with
	sent  [transports]Count
	taken [transports]Count
}

// Add puts n into the world and returns its number. Nodes without a name are
// called by their number.
func (w *World) Add(name string, n Node) NodeID {
	id := NodeID(len(w.nodes))
	if name != "" {
		for int(id) >= len(w.names) {
			w.names = append(w.names, "")
		}
		w.names[id] = name
	}
	w.nodes = append(w.nodes, node{wakeAt: core.Never})
	w.start(id, n)
	return id
}

// Nodes returns how many nodes were added.
func (w *World) Nodes() int { return len(w.nodes) }

// Name returns a node's name.
func (w *World) Name(id NodeID) string {
	if int(id) < len(w.names) && w.names[id] != "" {
		return w.names[id]
	}
	return fmt.Sprintf("node-%d", id)
}

// Alive reports whether a node is running.
func (w *World) Alive(id NodeID) bool { return w.nodes[id].node != nil }

func (w *World) start(id NodeID, n Node) {
	s := &w.nodes[id]
	s.node, s.deadline, s.paused = n, n.Deadline(), 0
	w.arm(id)
}

// arm sees to it that a node is stepped at its deadline. Timers are lazy: one
// that is due too early is set anew then, so that a deadline that moves with
// every step costs nothing. They are set only before those there are, so that
// they fire in the order of a stack.
func (w *World) arm(id NodeID) {
	n := &w.nodes[id]
	at := max(n.deadline, n.paused, w.now)
	if n.deadline != core.Never && at < n.timer() {
		n.timers = append(n.timers, at)
		w.queue.Push(at, event{kind: timerDue, node: id})
	}
}

// timer returns the time of a node's next timer.
func (n *node) timer() core.Time {
	if len(n.timers) == 0 {
		return core.Never
	}
	return n.timers[len(n.timers)-1]
}

// wake sees to it that a node is stepped at at.
func (w *World) wake(id NodeID, at core.Time) {
	n := &w.nodes[id]
	if at = max(at, n.paused); at < n.wakeAt {
		n.wakeAt = at
		w.queue.Push(at, event{kind: wakeDue, node: id})
	}
}

// arrive puts d into a node's inbox, and steps it where it takes no time.
func (w *World) arrive(id NodeID, d Delivery, path int32) {
	n := &w.nodes[id]
	n.inbox = append(n.inbox, d)
	n.paths = append(n.paths, path)
	if w.cfg.Service == 0 && n.paused <= w.now {
		w.step(id)
	} else if n.wakeAt == core.Never {
		w.wake(id, w.now.Add(w.upTo(w.cfg.Service)))
	}
}

// step steps a node with what has arrived.
func (w *World) step(id NodeID) {
	n := &w.nodes[id]
	for i := range n.inbox {
		w.delivered(id, &n.inbox[i], n.paths[i])
	}
	w.stepping = true
	n.node.Step(w.now, n.inbox, Handle{w, id})
	w.stepping = false
	w.steps++
	n = &w.nodes[id] // a step may add nodes
	for i := range n.inbox {
		w.lend.take(n.inbox[i].Bytes, w.cfg.Poison)
		n.inbox[i] = Delivery{}
	}
	n.inbox, n.paths = n.inbox[:0], n.paths[:0]
	n.wakeAt, n.deadline = core.Never, n.node.Deadline()
	w.arm(id)
}
