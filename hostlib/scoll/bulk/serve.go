package bulk

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	pullSize = 16
	granted  = 0
	refused  = 1
	// chunk is the most bytes that are written with one deadline.
	chunk = 256 << 10
)

// past is a deadline that ends what waits at once.
var past = time.Unix(1, 0)

// exposure is memory that can be read.
type exposure struct {
	memory [][]byte
	size   uint64

	mu      sync.Mutex
	left    *sync.Cond // somebody reads no more
	revoked bool
	conns   map[net.Conn]struct{} // of those who read
}

// enter notes a reader, unless the memory is revoked.
func (e *exposure) enter(conn net.Conn) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.revoked {
		e.conns[conn] = struct{}{}
	}
	return !e.revoked
}

// extend gives a reader time for a chunk; it reports false once the memory is
// revoked, the deadline being past then.
func (e *exposure) extend(conn net.Conn, stall time.Duration) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.revoked && conn.SetWriteDeadline(time.Now().Add(stall)) == nil
}

func (e *exposure) leave(conn net.Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, conn)
	e.left.Broadcast()
}

// revoke cuts all readers, and waits until they have noticed.
func (e *exposure) revoke() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.revoked = true
	for conn := range e.conns {
		_ = conn.SetWriteDeadline(past)
	}
	for len(e.conns) > 0 {
		e.left.Wait()
	}
}

// Serve answers the pulls that come on conn until it ends, or ctx, or the
// other side pulls what is not there. It closes conn.
func (b *Bulk) Serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	ctx, end, ok := b.begin(ctx)
	if !ok {
		return
	}
	defer end()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	for b.serve(ctx, conn) {
	}
}

// serve answers one pull, and reports whether another may follow.
func (b *Bulk) serve(ctx context.Context, conn net.Conn) bool {
	var pull [pullSize]byte
	if _, err := io.ReadFull(conn, pull[:]); err != nil {
		return false
	}
	select {
	case b.serves <- struct{}{}:
		defer func() { <-b.serves }()
	case <-ctx.Done():
		return false
	}
	key, length := binary.BigEndian.Uint64(pull[:]), binary.BigEndian.Uint64(pull[8:])
	b.mu.Lock()
	e := b.exposed[key]
	b.mu.Unlock()
	if e == nil || e.size != length || !e.enter(conn) {
		b.count(&b.counts.Refused, 1)
		_ = conn.SetWriteDeadline(time.Now().Add(b.cfg.Stall))
		_, _ = conn.Write([]byte{refused})
		return false
	}
	defer e.leave(conn)
	if err := b.write(conn, e); err != nil {
		b.count(&b.counts.Cut, 1)
		return false
	}
	b.count(&b.counts.Served, 1)
	return true
}

var errRevoked = errors.New("revoked")

func (b *Bulk) write(conn net.Conn, e *exposure) error {
	head := []byte{granted}
	for _, memory := range e.memory {
		for len(memory) > 0 {
			part := memory[:min(len(memory), chunk)]
			if !e.extend(conn, b.cfg.Stall) {
				return errRevoked
			}
			vectors := net.Buffers{head, part}
			if head == nil {
				vectors = vectors[1:]
			}
			if _, err := vectors.WriteTo(conn); err != nil {
				return err
			}
			b.count(&b.counts.Bytes, len(part))
			head, memory = nil, memory[len(part):]
		}
	}
	return nil
}
