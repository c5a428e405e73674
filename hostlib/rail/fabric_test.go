package rail

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 60 * time.Second

var errCut = errors.New("cut")

// verdict is what a fabric does with a frame.
type verdict uint8

const (
	pass       verdict = iota
	cutBefore          // the path ends, and the frame does not arrive
	cutAfter           // the path ends, and the frame arrives, but that is not acknowledged
	cutSilent          // likewise, and the end that has sent it finds out last
	cutWithin          // the path ends, and a part of the frame has arrived
	verdictMax = cutWithin
)

// fabric joins nodes by paths, as hosts do, in memory.
type fabric struct {
	t     testing.TB
	tasks sync.WaitGroup
	away  time.Duration // for how long a peer may be; 0: the last rail to it is its end

	mu     sync.Mutex
	down   [rail.MaxRails]bool // pairs of rails
	pairs  int
	closed bool
	hosts  map[string]*fakeHost
	conns  []*fakeConn
	fault  func(f *fakeFrame) verdict
	within func(p *fakePath) // called without a lock when a half of a fragment is placed; nil: nothing
	frames int
}

// fakeHost is a host of a fabric: connections of its node.
type fakeHost struct {
	fabric      *fabric
	name        string
	incarnation uint64
	node        *Node
	hasLeft     bool
}

// fakeConn is a connection, with two ends.
type fakeConn struct {
	class rail.Class
	hosts [2]*fakeHost
	keys  [2]*int
	paths []*fakePath // those of the first host
	ends  [2]int      // of paths that have not ended
}

// fakePath is one end of a path.
type fakePath struct {
	conn  *fakeConn
	host  *fakeHost
	key   *int
	pair  int
	other *fakePath

	mu      *sync.Mutex // of both ends
	cond    *sync.Cond
	laid    []fakeFrame
	flushed int
	unacked []uint64
	broken  error
	isSlow  bool // it notices the end after the other one
	isOver  bool
}

type fakeFrame struct {
	from       *fakeHost
	class      rail.Class
	pair       int
	number     uint64
	head, body []byte
}

func newFabric(t testing.TB, pairs int) *fabric {
	f := &fabric{t: t, pairs: pairs, hosts: map[string]*fakeHost{}}
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for _, h := range f.hosts {
			if h.node != nil {
				if err := h.node.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		f.mu.Lock()
		f.closed = true
		f.mu.Unlock()
		for _, p := range f.those(func(*fakePath) bool { return true }) {
			p.Break(errCut)
		}
		f.tasks.Wait()
		await(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	})
	return f
}

// await polls until something is so.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

// add adds a host with a node.
func (f *fabric) add(name string, cfg Config) *Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := &fakeHost{fabric: f, name: name, incarnation: 1}
	if before := f.hosts[name]; before != nil {
		h.incarnation = before.incarnation + 1
	}
	h.node = newNode(h, cfg, slog.New(slog.DiscardHandler))
	f.hosts[name] = h
	return h.node
}

// Name implements connections.
func (h *fakeHost) Name() string { return h.name }

// place implements connections.
func (h *fakeHost) place(on path) place {
	return place{rail: fmt.Sprintf("rail%d", on.(*fakePath).pair)}
}

// call implements connections.
func (h *fakeHost) call(name string, class rail.Class) {
	h.fabric.run(func() { h.fabric.connect(h, name, class) })
}

func (f *fabric) run(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.tasks.Go(do)
	}
}

// patience implements connections.
func (h *fakeHost) patience() time.Duration { return h.fabric.away }

// drive implements connections.
func (*fakeHost) drive(*runner.Event, <-chan struct{}) {}

// wake implements connections.
func (*fakeHost) wake(*runner.Event) {}

// leave implements connections.
func (h *fakeHost) leave() {
	f := h.fabric
	f.mu.Lock()
	h.hasLeft = true
	f.mu.Unlock()
	all := f.those(func(p *fakePath) bool { return p.host == h || p.other.host == h })
	for _, p := range all {
		p.Break(errCut)
	}
	for _, p := range all {
		p.mu.Lock()
		for !p.isOver || !p.other.isOver {
			p.cond.Wait()
		}
		p.mu.Unlock()
	}
}

// connect makes a connection.
func (f *fabric) connect(from *fakeHost, name string, class rail.Class) {
	f.mu.Lock()
	to := f.hosts[name]
	isUp := false
	for i := range f.pairs {
		isUp = isUp || !f.down[i]
	}
	if to == nil || to.hasLeft || from.hasLeft || !isUp || f.closed {
		f.mu.Unlock()
		from.node.failed(name, class, errors.New("no route to host"))
		return
	}
	defer f.mu.Unlock()
	for _, c := range f.conns {
		if c.class == class && (c.hosts == [2]*fakeHost{from, to} || c.hosts == [2]*fakeHost{to, from}) {
			return // there is one
		}
	}
	c := &fakeConn{class: class, hosts: [2]*fakeHost{from, to}, keys: [2]*int{new(int), new(int)}}
	f.conns = append(f.conns, c)
	for i := range f.pairs {
		if !f.down[i] {
			f.join(c, i)
		}
	}
}

// join adds a path to a connection. The caller holds the lock.
func (f *fabric) join(c *fakeConn, pair int) {
	mu := new(sync.Mutex)
	cond := sync.NewCond(mu)
	var ends [2]*fakePath
	for i := range ends {
		ends[i] = &fakePath{conn: c, host: c.hosts[i], key: c.keys[i], pair: pair, mu: mu, cond: cond}
	}
	ends[0].other, ends[1].other = ends[1], ends[0]
	c.paths = append(c.paths, ends[0])
	c.ends[0]++
	c.ends[1]++
	for i, p := range ends {
		f.tasks.Go(func() { p.run(peer.Peer{Name: c.hosts[1-i].name, Incarnation: c.hosts[1-i].incarnation}) })
	}
}

// cut ends the paths on a pair of rails until restore.
func (f *fabric) cut(pair int) {
	f.mu.Lock()
	f.down[pair] = true
	f.mu.Unlock()
	for _, p := range f.those(func(p *fakePath) bool { return p.pair == pair }) {
		p.Break(errCut)
	}
}

// those returns the paths of which something is so.
func (f *fabric) those(is func(*fakePath) bool) (all []*fakePath) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		for _, p := range c.paths {
			if is(p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// restore has a pair of rails work again.
func (f *fabric) restore(pair int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down[pair] = false
	for _, c := range f.conns {
		if !slices.ContainsFunc(c.paths, func(p *fakePath) bool { return p.pair == pair }) {
			f.join(c, pair)
		}
	}
}

// Send implements path.
func (p *fakePath) Send(s *peer.Send) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return peer.ErrGone
	}
	frame := fakeFrame{from: p.host, class: p.conn.class, pair: p.pair, number: s.Number, head: slices.Clone(s.Head), body: s.Body}
	if p.conn.class == rail.Message {
		frame.body = slices.Clone(s.Body)
	}
	p.laid = append(p.laid, frame)
	if s.Number != 0 {
		p.unacked = append(p.unacked, s.Number)
	}
	return nil
}

// Flush implements path.
func (p *fakePath) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushed = len(p.laid)
	p.cond.Broadcast()
}

// Lends implements path.
func (p *fakePath) Lends(peer.Service) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conn.class == rail.Fragment && len(p.laid) > 0
}

// Break implements path.
func (p *fakePath) Break(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked(reason)
}

func (p *fakePath) cutLocked(reason error) {
	if p.broken == nil {
		p.broken, p.other.broken = reason, fmt.Errorf("the other end: %w", reason)
		p.cond.Broadcast()
	}
}

// run hands on what comes until the path ends.
func (p *fakePath) run(of peer.Peer) {
	n := p.host.node
	n.pathUp(p.key, of, p, p.conn.class)
	p.read(n)
	p.leave()
	n.pathDown(p.key, p, p.broken)
	p.mu.Lock()
	failed := p.unacked
	p.unacked = nil
	p.mu.Unlock()
	n.sent(failed, p.broken)
	if p.conn.isLast(p) {
		n.connDown(p.key, of.Name, p.conn.class, p.broken)
	}
	p.mu.Lock()
	p.isOver = true
	p.cond.Broadcast()
	p.mu.Unlock()
}

// isLast notes the end of a path, and reports whether its connection ends with it.
func (c *fakeConn) isLast(p *fakePath) bool {
	f := p.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	side := slices.Index(c.keys[:], p.key)
	c.ends[side]--
	return c.ends[side] == 0 && len(c.paths) == 0
}

func (p *fakePath) read(n *Node) {
	for {
		p.mu.Lock()
		for p.broken == nil && p.other.flushed == 0 || p.broken != nil && p.isSlow && !p.other.isOver {
			p.cond.Wait()
		}
		if p.broken != nil {
			p.mu.Unlock()
			return
		}
		o := p.other
		frames := slices.Clone(o.laid[:o.flushed])
		o.laid, o.flushed = o.laid[:copy(o.laid, o.laid[o.flushed:])], 0
		for i := range frames {
			frames[i].body = slices.Clone(frames[i].body) // while it is lent
		}
		p.mu.Unlock()
		var all []peer.Frame
		var acks []uint64
		isCut := false
		for i := range frames {
			v := p.host.fabric.judge(&frames[i])
			if isCut = v != pass; isCut {
				p.mu.Lock()
				if p.broken == nil { // otherwise the other end has been cut, too, and each would wait for the other one
					o.isSlow = v == cutSilent
				}
				p.cutLocked(errCut)
				p.mu.Unlock()
			}
			if frame, isWhole := p.arrive(n, &frames[i], v); isWhole {
				all = append(all, frame)
			}
			if isCut {
				break
			}
			if frames[i].number != 0 {
				acks = append(acks, frames[i].number)
			}
		}
		if err := n.received(p.key, all); err != nil {
			p.Break(err)
			return
		}
		p.mu.Lock()
		if !isCut && p.broken == nil {
			o.unacked = slices.DeleteFunc(o.unacked, func(k uint64) bool { return slices.Contains(acks, k) })
		} else {
			acks = nil
		}
		p.mu.Unlock()
		o.host.node.sent(acks, nil)
	}
}

// arrive has a frame come, in two halves if it is placed, and reports whether all of it has.
func (p *fakePath) arrive(n *Node, f *fakeFrame, v verdict) (frame peer.Frame, isWhole bool) {
	all := slices.Concat(f.head, f.body)
	at := rail.BeginSize
	place := func(upTo int) bool {
		return n.place(p.key, all[:rail.BeginSize], len(all), at, func(into []byte) {
			at += copy(into[:upTo-at], all[at:upTo])
		})
	}
	half := at + (len(all)-at)/2
	switch {
	case v == cutBefore:
		return frame, false
	case f.class != rail.Fragment || len(all) <= at || !place(half):
		return peer.Frame{Bytes: all}, v != cutWithin
	case v == cutWithin:
		return frame, false
	}
	if within := p.host.fabric.within; within != nil {
		within(p)
	}
	if !place(len(all)) {
		return peer.Frame{Bytes: all[:rail.BeginSize]}, true
	}
	return peer.Frame{Bytes: all[:rail.BeginSize], Rest: len(all) - rail.BeginSize}, true
}

// judge returns what happens to a frame.
func (f *fabric) judge(frame *fakeFrame) verdict {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frames++
	if f.fault == nil || frame.number == 0 {
		return pass
	}
	return f.fault(frame)
}

// leave takes the path from its connection, and has another one be made.
func (p *fakePath) leave() {
	f := p.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	c := p.conn
	i := slices.IndexFunc(c.paths, func(q *fakePath) bool { return q == p || q == p.other })
	if i < 0 {
		return // the other end has
	}
	c.paths = slices.Delete(c.paths, i, i+1)
	switch {
	case len(c.paths) == 0:
		f.conns = slices.DeleteFunc(f.conns, func(d *fakeConn) bool { return c == d })
	case !f.down[p.pair] && !f.closed && !c.hosts[0].hasLeft && !c.hosts[1].hasLeft:
		f.join(c, p.pair)
	}
}
