package hostlib

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/endpoint"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

const (
	maxFrame    = 1 << 16 // bytes; the largest are packets
	frameLength = 4       // bytes of a frame's length
	frameHeads  = 64      // bytes of a frame beside its payload, at most
	spareQueue  = 1 << 20 // bytes of a queue beside windows of packets

	flushTimeout = time.Second // for what is queued when a connection ends
)

// link is the connection to one neighbour in the tree of hosts: up at most
// once at a time, and made anew by the child whenever it breaks.
type link struct {
	c        *Communicator
	peer     int
	dials    bool           // this member is the child
	calls    chan *caller   // connections from the child, the newest only
	tasks    sync.WaitGroup // the writer, while there is one
	maxQueue int            // bytes; more than what a window can make

	mu       sync.Mutex
	met      attempt  // the neighbour's, once the two have agreed
	trouble  error    // of the last attempt to call; nil: it has not answered yet
	greeting net.Conn // of a caller that is being answered
	conn     net.Conn
	serial   uint64 // changes with every connection, and when it ends
	open     bool   // the core knows of the connection: frames may be queued
	isShut   bool
	queue    []byte          // frames that are not written yet
	try      *peer.TryWriter // to conn; nil: not on this kind of connection
	writing  bool            // a goroutine writes what is queued
}

func newLink(c *Communicator, peer int, dials bool) *link {
	cfg := &c.host.cfg
	return &link{
		c: c, peer: peer, dials: dials, calls: make(chan *caller, 1),
		maxQueue: spareQueue + 4*int(cfg.Window)*(cfg.ChunkBytes+frameHeads),
	}
}

// run keeps the connection up until ctx ends, and reports to the core when it is
// new and when the neighbour must be dead.
func (l *link) run(ctx context.Context) {
	defer l.shut()
	first := true
	for ctx.Err() == nil {
		conn, err := l.connect(ctx, first)
		switch {
		case ctx.Err() != nil:
			if conn != nil {
				defer context.AfterFunc(l.c.host.cut, func() { conn.Close() })()
				l.shutdown(conn, false)
			}
			return
		case err != nil:
			l.dead(err.Error())
			return
		}
		first = false
		l.serve(ctx, conn)
	}
}

// dead reports to the core that the neighbour is.
func (l *link) dead(why string) {
	l.c.post(item{in: endpoint.Input{Kind: endpoint.Dead, Rank: uint32(l.peer), News: &endpoint.News{Reason: why}}})
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 4}

// serve reads frames from conn until it breaks, a newer one comes, or ctx ends.
func (l *link) serve(ctx context.Context, conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive)
		peer.LimitUnacknowledged(t, l.c.host.cfg.DeadAfter)
	}
	if wrap := l.c.host.hooks.Link; wrap != nil {
		conn = wrap(conn)
	}
	l.mu.Lock()
	l.conn, l.open, l.queue, l.try = conn, false, nil, peer.NewTryWriter(conn)
	l.serial++
	serial := l.serial
	l.mu.Unlock()
	l.c.connected(l, serial)

	defer context.AfterFunc(l.c.host.cut, func() { conn.Close() })()
	undo := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	err := l.read(conn)
	undo()
	wasOpen := l.finish(conn)
	if ctx.Err() != nil {
		l.shutdown(conn, wasOpen)
	} else {
		conn.Close()
		l.c.host.cfg.Log.Info("a host connection broke",
			slog.String("communicator", l.c.name), slog.Int("rank", l.peer), slog.Any("error", err))
	}
}

// shutdown ends a connection with the communicator, and says its last word
// where the core did not know of the connection.
func (l *link) shutdown(conn net.Conn, wasOpen bool) {
	if word := l.c.word; word != nil && !wasOpen {
		_ = conn.SetWriteDeadline(time.Now().Add(flushTimeout))
		_ = writeFrame(conn, word)
	}
	hangUp(conn, flushTimeout)
}

// finish ends writing to conn: what is queued is still sent, for the
// communicator's last word may be in it. It reports whether frames could be queued.
func (l *link) finish(conn net.Conn) (wasOpen bool) {
	_ = conn.SetWriteDeadline(time.Now().Add(flushTimeout))
	l.mu.Lock()
	wasOpen = l.open
	l.open = false
	l.mu.Unlock()
	l.tasks.Wait()
	l.mu.Lock()
	queue := l.queue
	l.conn, l.try, l.queue = nil, nil, nil
	l.serial++
	l.mu.Unlock()
	if len(queue) > 0 {
		_, _ = conn.Write(queue)
	}
	return wasOpen
}

// burst is what a link reads into while there is something to read.
type burst struct {
	r      *bufio.Reader
	frames []item
}

const (
	burstBytes  = 256 << 10
	burstFrames = 64 // that are stepped at once
)

var bursts = sync.Pool{New: func() any { return &burst{r: bufio.NewReaderSize(nil, burstBytes)} }}

func (b *burst) release() {
	b.r.Reset(nil)
	clear(b.frames[:cap(b.frames)])
	b.frames = b.frames[:0]
	bursts.Put(b)
}

// read gives the loop what comes by conn. An idle link has no memory to read into.
func (l *link) read(conn net.Conn) error {
	idle := peer.NewWaiter(conn)
	for {
		if idle != nil {
			if err := idle.Wait(); err != nil {
				return err
			}
		}
		if err := l.burst(conn); err != nil {
			return err
		}
	}
}

// burst reads frames until no more of one is there, and has those that came
// together stepped together.
func (l *link) burst(conn net.Conn) error {
	b := bursts.Get().(*burst)
	defer b.release()
	b.r.Reset(conn)
	for {
		frame, err := readFrame(b.r, &l.c.buffers)
		if err == nil {
			l.c.frames.in(frameLength + len(*frame))
			b.frames = append(b.frames, item{in: endpoint.Input{Kind: endpoint.Frame, Rank: uint32(l.peer), Bytes: *frame}, buffer: frame})
			if len(b.frames) < burstFrames && b.hasFrame() {
				continue
			}
		}
		l.c.deliver(b.frames...)
		b.frames = b.frames[:0]
		switch {
		case errors.Is(err, errFrame):
			l.dead("it sent " + err.Error())
			_, _ = io.Copy(io.Discard, b.r) // it is to hear of the end, which is near
			return err
		case err != nil || b.r.Buffered() == 0:
			return err
		}
	}
}

// hasFrame reports whether a whole frame, or one that is malformed, was read
// already.
func (b *burst) hasFrame() bool {
	if b.r.Buffered() < frameLength {
		return false
	}
	head, _ := b.r.Peek(frameLength)
	n := binary.BigEndian.Uint32(head)
	return n > maxFrame || b.r.Buffered() >= frameLength+int(n)
}

var errFrame = errors.New("a frame of malformed length")

// readFrame reads a frame's length, and the frame into memory of the pool.
func readFrame(r *bufio.Reader, pool *buffers) (*[]byte, error) {
	head, err := r.Peek(frameLength)
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n == 0 || n > maxFrame {
		return nil, fmt.Errorf("%w: %d bytes, want 1 to %d", errFrame, n, maxFrame)
	}
	_, _ = r.Discard(frameLength) // they are there
	b := pool.get(int(n))
	if _, err := io.ReadFull(r, *b); err != nil {
		pool.put(b)
		return nil, err
	}
	return b, nil
}

func writeFrame(w io.Writer, frame []byte) error {
	_, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

// write sends what is queued, as much at once as there is, until nothing is.
func (l *link) write(conn net.Conn) {
	var out []byte
	for {
		l.mu.Lock()
		out, l.queue = l.queue, out[:0]
		if len(out) == 0 {
			l.writing, l.queue = false, nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if _, err := conn.Write(out); err != nil {
			conn.Close() // ends the reader, too
			l.mu.Lock()
			l.writing = false
			l.mu.Unlock()
			return
		}
	}
}

// send queues a frame, which the next flush sends. Without a connection that the
// core knows of, the frame is dropped: the core repeats what matters when there
// is one.
func (l *link) send(head, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return
	}
	if len(l.queue) > l.maxQueue {
		l.conn.Close() // the neighbour does not read any more
		return
	}
	l.c.frames.out(frameLength + len(head) + len(body))
	if l.queue == nil {
		l.queue = *queues.Get().(*[]byte)
	}
	l.queue = binary.BigEndian.AppendUint32(l.queue, uint32(len(head)+len(body)))
	l.queue = append(append(l.queue, head...), body...)
}

// flush sends what is queued: as far as the kernel takes it at once, and the rest
// in a goroutine. An idle link has neither that nor a queue.
func (l *link) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writing || !l.open || len(l.queue) == 0 {
		return
	}
	if l.try != nil {
		n, err := l.try.Write(l.queue)
		if err != nil {
			l.conn.Close()
			return
		}
		l.queue = l.queue[:copy(l.queue, l.queue[n:])]
	}
	if len(l.queue) == 0 {
		empty := l.queue
		queues.Put(&empty)
		l.queue = nil
		return
	}
	l.writing = true
	conn := l.conn
	l.tasks.Go(func() { l.write(conn) })
}

// queues are the memory of links that have nothing queued.
var queues = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

// opened lets frames be queued, if the connection is still that one.
func (l *link) opened(serial uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = l.conn != nil && l.serial == serial
	return l.open
}
