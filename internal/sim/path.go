package sim

import "time"

// Transport is one of a world's ways of carrying things.
type Transport uint8

// The transports.
const (
	Datagrams   Transport = iota
	Connections           // messages over them
	Controls

	transports = 3
)

// Count counts packets, messages or values. Values have no bytes.
type Count struct{ Packets, Bytes uint64 }

func (c *Count) add(bytes int) {
	c.Packets++
	c.Bytes += uint64(bytes)
}

// Traffic is what went one way. Sent and Doubled together are Delivered, Lost
// and what is in flight.
type Traffic struct {
	Sent      Count
	Doubled   Count // copies that the world made
	Delivered Count // given to a step
	Lost      Count
}

// InFlight returns how many packets are neither delivered nor lost yet.
func (t Traffic) InFlight() uint64 {
	return t.Sent.Packets + t.Doubled.Packets - t.Delivered.Packets - t.Lost.Packets
}

// path is the way from one node to another.
type path struct {
	from, to NodeID
	back     int32 // the path the other way
	cut      bool
	link     *Link // nil: the world's
	conn     *conn // that of both ways; nil until the first
	streams  [streams]*stream
	traffic  [transports]Traffic
}

// Traffic returns what was sent from one node to another.
func (w *World) Traffic(from, to NodeID, t Transport) Traffic {
	if i, ok := w.index[[2]NodeID{from, to}]; ok {
		return w.paths[i].traffic[t]
	}
	return Traffic{}
}

// Total returns the traffic of all nodes.
func (w *World) Total(t Transport) Traffic { return w.total[t] }

// NodeTraffic returns what a node has sent, and what it has taken in its steps,
// over all its lives.
func (w *World) NodeTraffic(id NodeID, t Transport) (sent, taken Count) {
	return w.nodes[id].sent[t], w.nodes[id].taken[t]
}

// SetLink sets what happens from now on to what from sends to to. It panics if
// l is invalid.
func (w *World) SetLink(from, to NodeID, l Link) {
	if err := l.Validate(); err != nil {
		panic(err)
	}
	w.paths[w.path(from, to)].link = &l
}

// DefaultLink returns the link between nodes for which SetLink has said nothing.
func (w *World) DefaultLink() Link { return w.cfg.Link }

func (w *World) link(p *path) *Link {
	if p.link != nil {
		return p.link
	}
	return &w.cfg.Link
}

// path returns the path from one node to another, and makes it and the one
// back where this is the first time.
func (w *World) path(from, to NodeID) int32 {
	if i, ok := w.index[[2]NodeID{from, to}]; ok {
		return i
	}
	_ = w.nodes[to] // panic here rather than when something arrives
	there := int32(len(w.paths))
	back := there
	w.paths = append(w.paths, path{from: from, to: to, back: there})
	if from != to {
		back++
		w.paths[there].back = back
		w.paths = append(w.paths, path{from: to, to: from, back: there})
		w.index[[2]NodeID{to, from}] = back
		w.nodes[to].peers = append(w.nodes[to].peers, back)
	}
	w.index[[2]NodeID{from, to}] = there
	w.nodes[from].peers = append(w.nodes[from].peers, there)
	return there
}

func (w *World) blocked(p *path) bool {
	return p.cut || w.nodes[p.from].side != w.nodes[p.to].side
}

// upTo draws a duration from 0 to d.
func (w *World) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rand.Int64N(int64(d) + 1))
}

func (w *World) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

func (w *World) sent(p *path, t Transport, bytes int) {
	p.traffic[t].Sent.add(bytes)
	w.nodes[p.from].sent[t].add(bytes)
	w.total[t].Sent.add(bytes)
}

// lose counts, traces and takes back what does not arrive.
func (w *World) lose(p *path, k Kind, bytes []byte, value any) {
	if t, ok := k.transport(); ok {
		p.traffic[t].Lost.add(len(bytes))
		w.total[t].Lost.add(len(bytes))
		w.trace(entry{what: lost, kind: k, node: p.to, peer: p.from, bytes: bytes, value: value})
	}
	w.lend.take(bytes, w.cfg.Poison)
}

// delivered counts what a step is given.
func (w *World) delivered(id NodeID, d *Delivery, path int32) {
	t, ok := d.Kind.transport()
	if !ok {
		return
	}
	w.paths[path].traffic[t].Delivered.add(len(d.Bytes))
	w.nodes[id].taken[t].add(len(d.Bytes))
	w.total[t].Delivered.add(len(d.Bytes))
}

// transport returns how things of kind k are carried, if they are counted.
func (k Kind) transport() (Transport, bool) {
	switch k {
	case Datagram:
		return Datagrams, true
	case Message:
		return Connections, true
	case Control:
		return Controls, true
	}
	return 0, false
}

// Fate is what is to become of a datagram, as the link's probabilities have
// decided. Of a message, Delay alone counts, and it arrives no earlier than
// those before it.
type Fate struct {
	Lose      bool
	Delay     time.Duration
	Copy      bool
	CopyDelay time.Duration
}

// Intercept has f called for every datagram and message that is sent from now
// on, after those set before, to see it and to change its fate. The bytes are
// not to be changed or kept.
func (w *World) Intercept(f func(k Kind, from, to Addr, bytes []byte, fate *Fate)) {
	w.intercepts = append(w.intercepts, f)
}

func (w *World) intercept(k Kind, from, to Addr, bytes []byte, fate Fate) Fate {
	for _, f := range w.intercepts {
		f(k, from, to, bytes, &fate)
	}
	return fate
}

func (w *World) sendDatagram(from, to Addr, head, body []byte) {
	i := w.path(from.Node, to.Node)
	p := &w.paths[i]
	l := w.link(p)
	fate := Fate{Lose: w.chance(l.Loss), Delay: l.Delay + w.upTo(l.Jitter)}
	if w.chance(l.Reorder) {
		fate.Delay += w.upTo(l.Stray)
	}
	if w.chance(l.Duplicate) {
		fate.Copy, fate.CopyDelay = true, fate.Delay+w.upTo(l.Stray)
	}
	b := w.lend.give(head, body)
	if len(w.intercepts) > 0 {
		fate = w.intercept(Datagram, from, to, b, fate)
	}
	p = &w.paths[i] // what intercepts may make paths
	w.hash.send(p, b)
	w.sent(p, Datagrams, len(b))
	e := event{kind: datagramDue, path: i, from: from.Port, port: to.Port}
	if fate.Copy {
		p.traffic[Datagrams].Doubled.add(len(b))
		w.total[Datagrams].Doubled.add(len(b))
		e.bytes = w.lend.give(b, nil)
		w.trace(entry{what: doubled, kind: Datagram, node: to.Node, peer: from.Node, bytes: b})
		w.queue.Push(w.now.Add(fate.CopyDelay), e)
	}
	if fate.Lose || w.blocked(p) {
		w.lose(p, Datagram, b, nil)
		return
	}
	e.bytes = b
	w.queue.Push(w.now.Add(fate.Delay), e)
}

// datagram brings a datagram to its end.
func (w *World) datagram(e *event) {
	p := &w.paths[e.path]
	if w.blocked(p) || w.nodes[p.to].node == nil {
		w.lose(p, Datagram, e.bytes, nil)
		return
	}
	w.trace(entry{what: arrived, kind: Datagram, node: p.to, peer: p.from, bytes: e.bytes})
	w.arrive(p.to, Delivery{Kind: Datagram, Port: e.port, From: Addr{p.from, e.from}, Bytes: e.bytes}, e.path)
}
