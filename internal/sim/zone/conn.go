package zone

import (
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
)

// conn is a connection between two nodes, side 0 being the dialler's.
type conn struct {
	node    [2]int32
	life    [2]uint32 // of the nodes
	link    [2]member.Link
	stands  bool
	open    [2]bool // whether that side has not closed it
	streams [2]stream
	refs    int // events under way
}

// stream is what travels from a side, in order.
type stream struct {
	items   []item
	head    int
	floor   core.Time
	backoff time.Duration
}

// finished is the item that ends a stream.
const finished = member.Failed

// dial sends the request for a connection.
func (w *World) dial(from int32, at core.Time, d member.Dial) {
	n := &w.nodes[from]
	var id int32
	if k := len(w.free); k > 0 {
		id, w.free = w.free[k-1], w.free[:k-1]
	} else {
		id = int32(len(w.conns))
		w.conns = append(w.conns, conn{})
	}
	c := &w.conns[id]
	*c = conn{node: [2]int32{from, int32(d.Peer)}, link: [2]member.Link{d.Link}, life: [2]uint32{n.life}, open: [2]bool{true, false}, refs: 1}
	n.links = append(n.links, plug{d.Link, id, 0})
	w.queue.Push(at.Add(w.delay()+w.resent()), event{kind: dialDue, conn: id})
}

// resent draws how long losses hold up something that is sent until it arrives.
func (w *World) resent() time.Duration {
	var d time.Duration
	for pause := w.cfg.Resend; w.lost(); pause *= 2 {
		d += pause
	}
	return d
}

// dialled brings a request for a connection to the other end, and its answer
// back.
func (w *World) dialled(e *event) {
	c := &w.conns[e.conn]
	from, to := c.node[0], c.node[1]
	if e.kind == dialDue && w.held(from, to) || e.kind == answerDue && w.held(to, from) {
		w.unref(e.conn) // the dialler's core gives up by itself
		return
	}
	if e.kind == dialDue {
		n := &w.nodes[to]
		if n.up && c.open[0] {
			n.accepted += 2
			c.stands, c.open[1], c.life[1], c.link[1] = true, true, n.life, n.accepted|1
			n.links = append(n.links, plug{c.link[1], e.conn, 1})
		}
		w.queue.Push(w.now.Add(w.delay()+w.resent()), event{kind: answerDue, conn: e.conn})
		if c.stands {
			w.arrive(to, &item{input: member.Input{Kind: member.Accepted, Link: c.link[1]}, from: -1})
		}
		return
	}
	w.unref(e.conn)
	if !c.open[0] || w.nodes[from].life != c.life[0] {
		return
	}
	in := member.Input{Kind: member.Connected, Link: c.link[0]}
	if !c.stands {
		in.Kind = member.ConnectFailed
		w.unplug(e.conn, 0) // and c may be another's
	}
	w.arrive(from, &item{input: in, from: -1})
}

// plugOf returns the connection of a node's link, or -1.
func (w *World) plugOf(i int32, link member.Link) (int32, uint8) {
	for _, p := range w.nodes[i].links {
		if p.link == link {
			return p.conn, p.side
		}
	}
	return -1, 0
}

// unplug closes one side of a connection.
func (w *World) unplug(id int32, side uint8) {
	c := &w.conns[id]
	n := &w.nodes[c.node[side]]
	c.open[side] = false
	n.links = slices.DeleteFunc(n.links, func(p plug) bool { return p.conn == id })
	w.reuse(id)
}

func (w *World) unref(id int32) {
	w.conns[id].refs--
	w.reuse(id)
}

// reuse frees a connection that nobody has to do with any more.
func (w *World) reuse(id int32) {
	if c := &w.conns[id]; c.refs == 0 && !c.open[0] && !c.open[1] && c.node != [2]int32{} {
		*c = conn{}
		w.free = append(w.free, id)
	}
}

// write sends an item on a link.
func (w *World) write(from int32, at core.Time, link member.Link, it item) {
	id, side := w.plugOf(from, link)
	if id < 0 {
		return
	}
	c := &w.conns[id]
	it.input.Link = c.link[1-side]
	s := &c.streams[side]
	due := max(at.Add(w.delay()+w.resent()), s.floor)
	s.floor = due
	s.items = append(s.items, it)
	c.refs++
	w.queue.Push(due, event{kind: streamDue, conn: id, side: side})
}

// stream brings the next item of a stream, or holds it up.
func (w *World) stream(e *event) {
	c := &w.conns[e.conn]
	s := &c.streams[e.side]
	from, to := c.node[e.side], c.node[1-e.side]
	if !c.open[1-e.side] {
		w.reset(e.conn, e.side)
		w.unref(e.conn)
		return
	}
	if w.held(from, to) {
		// All that follows is held up, too: one event for each stays in the queue.
		s.backoff = min(max(2*s.backoff, w.cfg.Resend), maxBackoff)
		w.queue.Push(w.now.Add(s.backoff), *e)
		return
	}
	s.backoff = 0
	it := s.items[s.head]
	s.items[s.head] = item{}
	if s.head++; s.head == len(s.items) {
		s.items, s.head = s.items[:0], 0
	}
	if it.input.Kind == finished {
		it.input.Link = c.link[1-e.side]
		w.unplug(e.conn, 1-e.side)
	}
	it.from = -1
	w.unref(e.conn)
	w.arrive(to, &it)
}

// maxBackoff is the longest time after which a stream tries again.
const maxBackoff = 4 * time.Second

// reset reports who sends to an end that is closed.
func (w *World) reset(id int32, side uint8) {
	c := &w.conns[id]
	if !c.open[side] || w.held(c.node[1-side], c.node[side]) {
		return
	}
	link, node := c.link[side], c.node[side]
	w.unplug(id, side)
	w.queue.Push(w.now.Add(w.delay()), event{kind: packetDue, node: node, life: w.nodes[node].life, item: &item{input: member.Input{Kind: member.Failed, Link: link}, from: -1}})
}

// close closes a node's link after what was sent on it.
func (w *World) close(from int32, at core.Time, link member.Link) {
	id, side := w.plugOf(from, link)
	if id < 0 {
		return
	}
	if w.conns[id].stands {
		w.write(from, at, link, item{input: member.Input{Kind: finished}})
	}
	w.unplug(id, side)
}
