package bulk

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"time"
)

// Pull reads what a node has exposed under a key, length bytes, into the
// vectors. What they hold after an error is undefined. Errors wrap ErrRefused
// where the node has no memory of that key and length, ErrRoom where the vectors
// are too small, ErrClosed, and the context's where that was the reason.
func (b *Bulk) Pull(ctx context.Context, node string, key, length uint64, into [][]byte) error {
	if size(into) < length {
		return fmt.Errorf("%w: %d bytes for %d", ErrRoom, size(into), length)
	}
	ctx, end, ok := b.begin(ctx)
	if !ok {
		return ErrClosed
	}
	defer end()
	err := b.pull(ctx, node, key, length, into)
	if err != nil {
		b.count(&b.counts.Failed, 1)
		return fmt.Errorf("bulk: pulling %d bytes from %s: %w", length, node, err)
	}
	b.count(&b.counts.Pulled, 1)
	return nil
}

func (b *Bulk) pull(ctx context.Context, node string, key, length uint64, into [][]byte) error {
	select {
	case b.pulls <- struct{}{}:
		defer func() { <-b.pulls }()
	case <-ctx.Done():
		return b.because(ctx)
	}
	conn := b.idler(node)
	if conn != nil {
		answered, err := b.ask(ctx, conn, key, length, into)
		if err == nil {
			b.keep(node, conn)
			return nil
		}
		conn.Close()
		if answered || ctx.Err() != nil {
			return err
		} // else it had ended while nobody used it
	}
	conn, err := b.cfg.Dial(ctx, node)
	if err != nil {
		return err
	}
	if _, err := b.ask(ctx, conn, key, length, into); err != nil {
		conn.Close()
		return err
	}
	b.keep(node, conn)
	return nil
}

// ask pulls over one connection, and reports whether there was an answer.
func (b *Bulk) ask(ctx context.Context, conn net.Conn, key, length uint64, into [][]byte) (answered bool, err error) {
	undo := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	defer func() {
		if !undo() || err != nil && ctx.Err() != nil {
			err = b.because(ctx)
		}
	}()
	var pull [pullSize]byte
	binary.BigEndian.PutUint64(pull[:], key)
	binary.BigEndian.PutUint64(pull[8:], length)
	if err := b.extend(ctx, conn.SetWriteDeadline); err != nil {
		return false, err
	}
	if _, err := conn.Write(pull[:]); err != nil {
		return false, err
	}
	// The node may have others to serve first: the context alone bounds that.
	var head [1]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return false, err
	}
	if head[0] != granted {
		return true, ErrRefused
	}
	return true, b.read(ctx, conn, length, into)
}

func (b *Bulk) read(ctx context.Context, conn net.Conn, length uint64, into [][]byte) error {
	for _, v := range into {
		v = v[:min(uint64(len(v)), length)]
		length -= uint64(len(v))
		for len(v) > 0 {
			if err := b.extend(ctx, conn.SetReadDeadline); err != nil {
				return err
			}
			n, err := conn.Read(v)
			if v = v[n:]; err != nil && len(v) > 0 {
				return fmt.Errorf("with %d bytes to come: %w", uint64(len(v))+length, err)
			}
		}
	}
	return conn.SetDeadline(time.Time{})
}

// extend sets a deadline for the next bytes, unless ctx has ended.
func (b *Bulk) extend(ctx context.Context, set func(time.Time) error) error {
	if err := set(time.Now().Add(b.cfg.Stall)); err != nil {
		return err
	}
	return ctx.Err()
}

// because returns why ctx has ended.
func (b *Bulk) because(ctx context.Context) error {
	if b.ctx.Err() != nil {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// idle is a connection to a node that waits for a pull.
type idle struct {
	node string
	conn net.Conn
}

// idler takes a connection to node that waits for a pull; nil if there is none.
func (b *Bulk) idler(node string) net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.idle) - 1; i >= 0; i-- {
		if conn := b.idle[i].conn; b.idle[i].node == node {
			b.idle = slices.Delete(b.idle, i, i+1)
			return conn
		}
	}
	return nil
}

// keep keeps a connection for the next pull. Nodes that nobody pulls from any
// more lose theirs to others.
func (b *Bulk) keep(node string, conn net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	same := 0
	for i := range b.idle {
		if b.idle[i].node == node {
			same++
		}
	}
	if b.closed || same >= b.cfg.Idle {
		conn.Close()
		return
	}
	if len(b.idle) >= b.cfg.IdleAll {
		b.idle[0].conn.Close()
		b.idle = slices.Delete(b.idle, 0, 1)
	}
	b.idle = append(b.idle, idle{node, conn})
}
