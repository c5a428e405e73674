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
)

const (
	maxFrame    = 1 << 16 // bytes; the largest are packets
	maxQueue    = 64 << 20
	dialTimeout = 2 * time.Second
	dialPause   = 20 * time.Millisecond // after a failed attempt; doubles
	dialPauseTo = 500 * time.Millisecond

	flushTimeout = time.Second // for what is queued when a connection ends
)

// link is the connection to one neighbour in the tree of hosts: up at most
// once at a time, and made anew by the child whenever it breaks.
type link struct {
	c     *Communicator
	peer  int
	dials bool           // this member is the child
	calls chan *caller   // connections from the child, the newest only
	tasks sync.WaitGroup // the writer

	mu     sync.Mutex
	conn   net.Conn
	serial uint64 // of the connection
	open   bool   // the core knows of the connection: frames may be queued
	queue  []byte
	wake   chan struct{}
}

func newLink(c *Communicator, peer int, dials bool) *link {
	return &link{c: c, peer: peer, dials: dials, calls: make(chan *caller, 1), wake: make(chan struct{}, 1)}
}

// run keeps the connection up until ctx ends, and tells the core when it is
// new and when the neighbour must be dead.
func (l *link) run(ctx context.Context) {
	first := true
	for ctx.Err() == nil {
		conn, err := l.connect(ctx, first)
		switch {
		case ctx.Err() != nil:
			if conn != nil {
				conn.Close()
			}
			return
		case err != nil:
			l.c.post(item{in: rank.Input{Kind: rank.Dead, Rank: uint32(l.peer), Reason: err.Error()}})
			return
		}
		first = false
		l.serve(ctx, conn)
	}
}

// connect waits for a connection: at first as long as it takes, later as long
// as a member may be unreachable.
func (l *link) connect(ctx context.Context, first bool) (net.Conn, error) {
	if !first {
		limit := l.c.host.set.deadAfter
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("it could not be reached for %v", limit))
		defer cancel()
	}
	if l.dials {
		return l.dial(ctx)
	}
	select {
	case k := <-l.calls:
		k.answer(accepted, "")
		return k.conn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *link) dial(ctx context.Context) (net.Conn, error) {
	pause := dialPause
	for {
		conn, err := l.greet(ctx)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, errRefused) {
			return nil, err
		}
		l.c.missing(l.peer, err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		case <-time.After(pause):
			pause = min(2*pause, dialPauseTo)
		}
	}
}

// errRefused: the parent was reached and does not know such a group.
var errRefused = errors.New("refused")

func (l *link) greet(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive}
	conn, err := d.DialContext(ctx, "tcp", l.c.members[l.peer].Addr)
	if err != nil {
		return nil, err
	}
	undo := context.AfterFunc(ctx, func() { conn.Close() })
	defer undo()
	h := hello{group: l.c.group, from: uint32(l.c.rank), to: uint32(l.peer), name: l.c.name}
	if _, err := conn.Write(h.append(nil)); err != nil {
		conn.Close()
		return nil, err
	}
	why, ok, err := readAnswer(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("%w: %s", errRefused, why)
	}
	return conn, nil
}

var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 4}

// serve reads frames from conn until it breaks, a newer one comes, or ctx ends.
func (l *link) serve(ctx context.Context, conn net.Conn) {
	if t, ok := conn.(*net.TCPConn); ok {
		_ = t.SetKeepAliveConfig(keepAlive)
		limitUnacknowledged(t, l.c.host.set.deadAfter)
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
	conn.Close()
	l.mu.Lock()
	l.conn, l.open = nil, false
	l.mu.Unlock()
	if ctx.Err() == nil {
		l.c.host.set.log.Info("a host connection broke",
			slog.String("communicator", l.c.name), slog.Int("rank", l.peer), slog.Any("error", err))
	}
}

// called takes a connection from the child in place of the one before.
func (l *link) called(k *caller) {
	for {
		select {
		case l.calls <- k:
			l.mu.Lock()
			if l.conn != nil {
				l.conn.Close()
			}
			l.mu.Unlock()
			return
		case old := <-l.calls:
			old.conn.Close()
		}
	}
}

func (l *link) read(conn net.Conn) error {
	r := bufio.NewReaderSize(conn, 256<<10)
	var head [4]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[:])
		if n == 0 || n > maxFrame {
			return fmt.Errorf("hostlib: a frame of %d bytes", n)
		}
		b := l.c.buffers.get(int(n))
		if _, err := io.ReadFull(r, *b); err != nil {
			return err
		}
		l.c.frames.in(len(head) + len(*b))
		l.c.frame(l.peer, b)
	}
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
	if len(l.queue) > maxQueue {
		l.conn.Close() // the neighbour does not read any more
		return
	}
	const length = 4
	l.c.frames.out(length + len(head) + len(body))
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
