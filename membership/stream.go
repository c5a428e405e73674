package membership

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/hierarchy"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

const (
	frameLength = 4       // bytes of a frame's length
	maxQueue    = 4 << 20 // bytes that wait to be written: views and attributes of a large zone
	readBuffer  = 512

	greetTimeout = 5 * time.Second // for the first valid frame of the other end
	flushTimeout = time.Second     // for what is queued when a stream is closed
)

// errFrame: the other end does not speak the protocol.
var errFrame = errors.New("membership: a frame of malformed length")

// stream is one TCP connection. The loop owns it: one goroutine reads, and one
// writes while there is something to write.
type stream struct {
	n    *Node
	conn net.Conn

	// For the loop.
	link    member.Link
	tier    bool           // it is one of the hierarchy:
	up      hierarchy.Link // in place of link
	dialled bool
	ours    gossip.Preamble
	theirs  gossip.Preamble
	seals   *gossip.Stream // once both ends have told how they begin
	greeted bool           // the core knows of it
	heard   bool           // a valid frame has come: it may be silent from then on

	mu      sync.Mutex
	queue   []byte
	writing bool
	closing bool // no more is taken; it is closed after what is queued
	closed  bool
}

// serve reads frames until the stream ends, and tells the loop of all.
func (s *stream) serve() {
	err := s.read()
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	if closing || errors.Is(err, ErrClosed) {
		_, _ = io.Copy(io.Discard, s.conn) // until the other end closes, too, or hangUp's deadline
	}
	s.cut()
	s.n.post(item{kind: ended, stream: s, err: err})
}

func (s *stream) read() error {
	r := bufio.NewReaderSize(s.conn, readBuffer)
	b := s.n.buffers.get(gossip.PreambleSize)
	if _, err := io.ReadFull(r, *b); err != nil {
		s.n.buffers.put(b)
		return err
	}
	if !s.n.post(item{kind: preambled, stream: s, raw: b}) {
		return ErrClosed
	}
	var head [frameLength]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(head[:])
		if n == 0 || n > gossip.MaxFrame {
			return fmt.Errorf("%w: %d bytes, want 1 to %d", errFrame, n, gossip.MaxFrame)
		}
		b := s.n.buffers.get(int(n))
		if _, err := io.ReadFull(r, *b); err != nil {
			s.n.buffers.put(b)
			return err
		}
		s.n.counts.framesIn.Add(1)
		s.n.counts.streamBytesIn.Add(uint64(frameLength + n))
		if !s.n.post(item{kind: frameCame, stream: s, raw: b}) {
			return ErrClosed
		}
	}
}

// send queues frames, each with its length.
func (s *stream) send(frames []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.closed || len(frames) == 0 {
		return
	}
	if len(s.queue)+len(frames) > maxQueue {
		s.n.counts.stuck.Add(1)
		s.conn.Close() // it does not read any more; the reader tells
		s.closed = true
		return
	}
	s.n.counts.streamBytesOut.Add(uint64(len(frames)))
	s.queue = append(s.queue, frames...)
	s.write()
}

// write has what is queued be written. The caller holds mu.
func (s *stream) write() {
	if !s.writing {
		s.writing = true
		s.n.tasks.Go(s.flush)
	}
}

// flush writes until nothing is queued.
func (s *stream) flush() {
	var spare []byte
	for {
		s.mu.Lock()
		out := s.queue
		if len(out) == 0 || s.closed {
			s.writing = false
			closing := s.closing
			s.mu.Unlock()
			if closing {
				s.hangUp()
			}
			return
		}
		s.queue = spare[:0]
		s.mu.Unlock()
		if _, err := s.conn.Write(out); err != nil {
			s.conn.Close() // ends the reader, who tells
		}
		if spare = out; cap(spare) > 16<<10 {
			spare = nil
		}
	}
}

// shut closes the stream after what is queued. The other end is to get that: so
// it is read on until that closes, too, for a while.
func (s *stream) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing || s.closed {
		return
	}
	s.closing = true
	_ = s.conn.SetWriteDeadline(time.Now().Add(flushTimeout))
	s.write()
}

func (s *stream) hangUp() {
	if half, ok := s.conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = s.conn.SetReadDeadline(time.Now().Add(flushTimeout))
		return
	}
	s.conn.Close()
}

// cut closes the stream at once.
func (s *stream) cut() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.conn.Close()
}

// accept takes connections until the listener is closed.
func (n *Node) accept() {
	for {
		conn, err := n.listener.Accept()
		if n.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			n.failing("accept a connection", err)
			continue
		}
		n.hand(item{kind: called, conn: conn})
	}
}

// dial connects to another node, and tells the loop by an item like it.
func (n *Node) dial(it item, to gossip.ID) {
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Timing.Dial)
	defer cancel()
	var conn net.Conn
	err := fmt.Errorf("%w: %s has no address", ErrUnknown, to)
	for _, at := range to.Endpoints() {
		if conn, err = n.cfg.Network.Dial(ctx, at); err == nil {
			break
		}
	}
	if err != nil {
		it.kind, it.err = dialFailed, err
		n.post(it)
		return
	}
	it.kind, it.conn = dialled, conn
	n.hand(it)
}

// hand gives the loop a connection. Until the loop has it, it is the node's, and
// closed with it.
func (n *Node) hand(it item) {
	n.mu.Lock()
	n.strays[it.conn] = struct{}{}
	n.mu.Unlock()
	if !n.post(it) {
		n.taken(it.conn)
		it.conn.Close()
	}
}

// taken notes that the loop has a connection.
func (n *Node) taken(conn net.Conn) {
	n.mu.Lock()
	delete(n.strays, conn)
	n.mu.Unlock()
}

// closeStrays closes the connections that the loop never took.
func (n *Node) closeStrays() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for conn := range n.strays {
		conn.Close()
	}
	clear(n.strays)
}
