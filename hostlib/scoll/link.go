package scoll

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/tributary-fabric/tributary/internal/core/collective"
	"github.com/tributary-fabric/tributary/internal/mesh"
	"github.com/tributary-fabric/tributary/internal/wire/collect"
)

// The lanes of connections between nodes. A message never waits behind one of
// another lane.
const (
	urgentLane = mesh.Urgent // messages of at most urgentMost bytes: all requests, most replies
	largeLane  = mesh.Lane(1)
	bulkLane   = mesh.Lane(2)
)

// laneOf returns the lane for a message of so many bytes.
func laneOf(size int) mesh.Lane {
	if size <= urgentMost {
		return urgentLane
	}
	return largeLane
}

func mostOf(lane mesh.Lane) int {
	if lane == urgentLane {
		return urgentMost
	}
	return largeMost
}

// packMost are the bytes from which on no further message is added to a write.
const packMost = 256 << 10

var (
	errLinkClosed = errors.New("scoll: the connection is closed")
	errEarlier    = fmt.Errorf("scoll: %w: an earlier one has answered", collective.ErrOutdated)
)

// link is how this node sends to another one, on one lane: on a connection that
// either has made, and that is made when there is something to send. A write
// takes all messages that wait. Who lays one there writes it, if that can be
// done at once; otherwise a goroutine does, as long as there are some.
type link struct {
	node *Node
	to   string
	lane mesh.Lane

	mu          sync.Mutex
	conn        net.Conn        // nil: none
	incarnation uint64          // of the other side of conn
	tryWriter   *mesh.TryWriter // writes to conn without waiting; nil: not on this kind of connection
	queue       []frame
	touched     bool // something was put since the last flush
	busy        bool // a goroutine calls, or writes
	closed      bool

	pack pack // of the goroutine if busy; else guarded by mu, and empty between calls
}

// frame is a message, lent by the core until it is answered by Sent.
type frame struct {
	number uint64
	bytes  []byte
}

// pack is the messages of one write.
type pack struct {
	on      net.Conn
	memory  []byte
	left    []byte // of memory
	numbers []uint64
}

// put adds a message, and reports whether a flush is due that was not before.
// It is for the loop alone, as flush is.
func (l *link) put(number uint64, b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, frame{number, b})
	due := !l.touched
	l.touched = true
	return due
}

// flush sends what waits, or has a goroutine do so, and appends what is known of
// it already.
func (l *link) flush(back []collective.Input) []collective.Input {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.touched = false
	if l.busy {
		return back
	}
	if l.conn != nil && l.tryWriter != nil && !l.closed {
		l.fill()
		n, err := l.tryWriter.Write(l.pack.left)
		if err != nil {
			l.loseLocked(l.conn)
		}
		if l.pack.left = l.pack.left[n:]; err != nil || len(l.pack.left) == 0 {
			l.pack.left = nil
			back = appendSent(back, l.pack.numbers, err)
		}
		if l.pack.left == nil && len(l.queue) == 0 {
			return back
		}
	}
	l.busy = !l.closed && l.node.spawn(l.run)
	if !l.busy {
		back = appendSent(back, l.takeAll(), errLinkClosed)
	}
	return back
}

// run calls and writes until nothing waits.
func (l *link) run() {
	for {
		conn, more := l.next()
		var err error
		switch {
		case !more:
			l.node.links.forget(l) // who could not be called may never be again
			return
		case l.pack.left != nil:
			_, err = l.pack.on.Write(l.pack.left)
			l.written(err)
		case conn == nil:
			if err = l.call(); err != nil {
				l.mu.Lock()
				failed := l.takeAll()
				l.mu.Unlock()
				l.sent(failed, err)
			}
		default:
			l.writeLarge(conn)
		}
	}
}

// next reports whether there is something to do, and on which connection.
func (l *link) next() (net.Conn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		failed := l.takeAll()
		l.busy = false
		l.sent(failed, errLinkClosed)
		return nil, false
	}
	if l.pack.left == nil && len(l.queue) == 0 {
		l.busy = false
		return nil, false
	}
	if l.pack.left == nil && l.conn != nil && l.lane == urgentLane {
		l.fill()
	}
	return l.conn, true
}

// fill makes a pack of what waits. The caller holds the lock.
func (l *link) fill() {
	p := &l.pack
	p.on, p.memory, p.numbers = l.conn, p.memory[:0], p.numbers[:0]
	took := 0
	for took < len(l.queue) && len(p.memory) < packMost {
		f := &l.queue[took]
		p.memory = binary.BigEndian.AppendUint32(p.memory, uint32(len(f.bytes)))
		p.memory = append(p.memory, f.bytes...)
		p.numbers = append(p.numbers, f.number)
		took++
	}
	p.left = p.memory
	l.counted(took, len(p.memory))
	l.dequeue(took)
}

func (l *link) dequeue(n int) {
	rest := copy(l.queue, l.queue[n:])
	clear(l.queue[rest:])
	l.queue = l.queue[:rest]
}

func (l *link) counted(messages, bytes int) {
	l.node.counts.messagesOut.Add(uint64(messages))
	l.node.counts.bytesOut.Add(uint64(bytes))
}

// writeLarge writes one message from where it lies.
func (l *link) writeLarge(conn net.Conn) {
	l.mu.Lock()
	f := l.queue[0]
	l.dequeue(1)
	l.pack.on, l.pack.numbers = conn, append(l.pack.numbers[:0], f.number)
	l.mu.Unlock()
	l.counted(1, frameLength+len(f.bytes))
	vectors := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(f.bytes))), f.bytes}
	_, err := vectors.WriteTo(conn)
	l.written(err)
}

// written tells what became of a write of the goroutine's.
func (l *link) written(err error) {
	if err != nil {
		l.lose(l.pack.on)
	}
	l.pack.left = nil
	l.sent(l.pack.numbers, err)
}

// takeAll empties the link and returns the numbers of all that is not sent. The
// caller holds the lock, and the pack is its own.
func (l *link) takeAll() []uint64 {
	var all []uint64
	if l.pack.left != nil {
		all = append(all, l.pack.numbers...)
	}
	for _, f := range l.queue {
		all = append(all, f.number)
	}
	l.pack.left = nil
	l.dequeue(len(l.queue))
	return all
}

func (l *link) sent(numbers []uint64, err error) {
	if len(numbers) > 0 {
		l.node.inbox.put(appendSent(nil, numbers, err)...)
	}
}

func appendSent(back []collective.Input, numbers []uint64, err error) []collective.Input {
	for _, n := range numbers {
		back = append(back, collective.Input{Kind: collective.Sent, Number: n, Err: err})
	}
	return back
}

// call makes a connection.
func (l *link) call() error {
	n := l.node
	peer, conn, err := n.mesh.Dial(n.ctx, l.to, l.lane)
	if err != nil {
		n.counts.failedCalls.Add(1)
		if errors.Is(err, mesh.ErrEarlier) {
			n.cfg.Log.Warn("this node is known in a later incarnation: it has to begin with a larger one", slog.String("peer", l.to), slog.Any("error", err))
		}
		if errors.Is(err, mesh.ErrEarlier) || errors.Is(err, mesh.ErrFormer) {
			err = fmt.Errorf("scoll: %w: %w", collective.ErrOutdated, err)
		}
		return err
	}
	if !n.hello(peer.Name, peer.Incarnation) {
		sever(conn)
		n.counts.failedCalls.Add(1)
		return errEarlier
	}
	l.offer(conn, peer.Incarnation)
	if !n.spawn(func() { l.serve(n.ctx, conn) }) {
		l.lose(conn)
		return errLinkClosed
	}
	return nil
}

// offer has the link send on a connection if it has none.
func (l *link) offer(conn net.Conn, incarnation uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil || l.closed {
		return
	}
	l.conn, l.incarnation = conn, incarnation
	if l.lane == urgentLane {
		l.tryWriter = mesh.NewTryWriter(conn)
	}
}

// serve reads from a connection until it ends.
func (l *link) serve(ctx context.Context, conn net.Conn) {
	defer context.AfterFunc(ctx, func() { sever(conn) })()
	n := l.node
	n.links.began(1)
	r := reader{node: n, from: collect.Node(l.to), most: mostOf(l.lane)}
	err := r.read(conn)
	n.links.began(-1)
	l.lose(conn)
	n.links.forget(l)
	if ctx.Err() == nil {
		if l.lane == urgentLane { // all requests are on it
			n.inbox.put(collective.Input{Kind: collective.Cut, Node: collect.Node(l.to)})
		}
		n.cfg.Log.Info("a connection ended", slog.String("peer", l.to), slog.Int("lane", int(l.lane)), slog.Any("error", err))
	}
}

// lose ends a connection.
func (l *link) lose(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loseLocked(conn)
}

func (l *link) loseLocked(conn net.Conn) {
	sever(conn)
	if l.conn == conn {
		l.conn, l.tryWriter = nil, nil
	}
}

// sever closes a connection without a word: that of TLS might have to wait.
func sever(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	conn.Close()
}

// called takes connections that others have made.
func (n *Node) called(lane mesh.Lane) mesh.Handler {
	return func(ctx context.Context, from mesh.Peer, conn net.Conn) {
		if !n.hello(from.Name, from.Incarnation) {
			return
		}
		l := n.links.to(from.Name, lane)
		l.offer(conn, from.Incarnation)
		l.serve(ctx, conn)
	}
}

// links are a node's links.
type links struct {
	node *Node

	mu     sync.Mutex
	all    map[linkTo]*link
	closed bool
	alive  int // connections that are read from
}

type linkTo struct {
	node string
	lane mesh.Lane
}

func (k *links) init(n *Node) { k.node, k.all = n, map[linkTo]*link{} }

// to returns the link to a node.
func (k *links) to(node string, lane mesh.Lane) *link {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.all[linkTo{node, lane}]
	if l == nil {
		l = &link{node: k.node, to: node, lane: lane, closed: k.closed}
		k.all[linkTo{node, lane}] = l
	}
	return l
}

// forget drops a link that has nothing to do. Who holds it can still use it.
func (k *links) forget(l *link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if key := (linkTo{l.to, l.lane}); l.conn == nil && !l.busy && len(l.queue) == 0 && k.all[key] == l {
		delete(k.all, key)
	}
}

// drop ends the connections to incarnations of a node before one.
func (k *links) drop(node string, before uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, lane := range []mesh.Lane{urgentLane, largeLane} {
		if l := k.all[linkTo{node, lane}]; l != nil {
			l.mu.Lock()
			if l.conn != nil && l.incarnation < before {
				l.loseLocked(l.conn)
			}
			l.mu.Unlock()
		}
	}
}

func (k *links) began(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.alive += n
}

// open returns how many connections there are.
func (k *links) open() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.alive
}

// close ends all links; what waits on them is answered as not sent.
func (k *links) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, l := range k.all {
		l.mu.Lock()
		l.closed = true
		if l.conn != nil {
			l.loseLocked(l.conn) // a goroutine that writes, or calls, takes the rest
		}
		l.mu.Unlock()
	}
}
