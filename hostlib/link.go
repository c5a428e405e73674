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

	"github.com/tributary-fabric/tributary/internal/core/rank"
	"github.com/tributary-fabric/tributary/internal/mesh"
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
	tasks    sync.WaitGroup // the writer
	maxQueue int            // bytes; more than what a window can make

	mu       sync.Mutex
	met      attempt  // the neighbour's, once the two have agreed
	trouble  error    // of the last attempt to call; nil: it has not answered yet
	greeting net.Conn // of a caller that is being answered
	conn     net.Conn
	serial   uint64 // changes with every connection, and when it ends
	open     bool   // the core knows of the connection: frames may be queued
	isShut   bool
	queue    []byte
	wake     chan struct{}
}

func newLink(c *Communicator, peer int, dials bool) *link {
	set := &c.host.set
	return &link{
		c: c, peer: peer, dials: dials, calls: make(chan *caller, 1), wake: make(chan struct{}, 1),
		maxQueue: spareQueue + 4*int(set.window)*(set.chunkBytes+frameHeads),
	}
}

// run keeps the connection up until ctx ends, and tells the core when it is
// new and when the neighbour must be dead.
func (l *link) run(ctx context.Context) {
	defer l.shut()
	first := true
	for ctx.Err() == nil {
		conn, err := l.connect(ctx, first)
		switch {
		case ctx.Err() != nil:
			if conn != nil {
				l.farewell(conn, false)
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

// dead tells the core that the neighbour is.
func (l *link) dead(why string) {
	l.c.post(item{in: rank.Input{Kind: rank.Dead, Rank: uint32(l.peer), News: &rank.News{Reason: why}}})
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 4}

// serve reads frames from conn until it breaks, a newer one comes, or ctx ends.
func (l *link) serve(ctx context.Context, conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive)
		mesh.LimitUnacknowledged(t, l.c.host.set.deadAfter)
	}
	if wrap := l.c.host.set.wrapLink; wrap != nil {
		conn = wrap(conn)
	}
	l.mu.Lock()
	l.conn, l.open, l.queue = conn, false, l.queue[:0]
	l.serial++
	serial := l.serial
	l.mu.Unlock()
	l.c.connected(l, serial)

	undo := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	gone := make(chan struct{})
	l.tasks.Go(func() { l.write(conn, gone) })
	err := l.read(conn)
	undo()
	_ = conn.SetWriteDeadline(time.Now().Add(flushTimeout))
	close(gone)
	l.tasks.Wait() // what is queued is still sent: the communicator's last word may be in it
	l.mu.Lock()
	wasOpen := l.open
	l.conn, l.open = nil, false
	l.serial++
	l.mu.Unlock()
	if ctx.Err() != nil {
		l.farewell(conn, wasOpen)
	} else {
		conn.Close()
		l.c.host.set.log.Info("a host connection broke",
			slog.String("communicator", l.c.name), slog.Int("rank", l.peer), slog.Any("error", err))
	}
}

// farewell ends a connection with the communicator, and says its last word
// where the core did not know of the connection.
func (l *link) farewell(conn net.Conn, wasOpen bool) {
	if word := l.c.word; word != nil && !wasOpen {
		_ = conn.SetWriteDeadline(time.Now().Add(flushTimeout))
		_ = writeFrame(conn, word)
	}
	hangUp(conn, flushTimeout)
}

func (l *link) read(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 256<<10)
	for {
		b, err := readFrame(r, &l.c.buffers)
		if errors.Is(err, errFrame) {
			l.dead("it sent " + err.Error())
			_, _ = io.Copy(io.Discard, r) // it is to hear of the end, which is near
		}
		if err != nil {
			return err
		}
		l.c.frames.in(frameLength + len(*b))
		l.c.frame(l.peer, b)
	}
}

var errFrame = errors.New("a frame of unsound length")

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

// write sends what is queued, as much at once as there is, until gone.
func (l *link) write(conn net.Conn, gone <-chan struct{}) {
	var spare []byte
	for ending := false; ; {
		l.mu.Lock()
		out := l.queue
		l.queue = spare[:0]
		l.mu.Unlock()
		spare = out
		if len(out) > 0 {
			if _, err := conn.Write(out); err != nil {
				conn.Close() // ends the reader, too
				return
			}
			continue
		}
		if ending {
			return
		}
		select {
		case <-gone:
			ending = true // once more: the last frames may have come just now
		case <-l.wake:
		}
	}
}

// send queues a frame. Without a connection that the core knows of, the frame
// is dropped: the core repeats what matters when there is one.
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
	l.queue = binary.BigEndian.AppendUint32(l.queue, uint32(len(head)+len(body)))
	l.queue = append(append(l.queue, head...), body...)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// opened lets frames be queued, if the connection is still that one.
func (l *link) opened(serial uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = l.conn != nil && l.serial == serial
	return l.open
}
