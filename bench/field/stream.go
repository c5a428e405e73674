package field

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// streamBuffer is what a stream writes and reads at once.
const streamBuffer = 256 << 10

// Drain takes one TCP stream at an address, and reads it until it ends or ctx
// does. What it has read is served by a gauge: BytesIn, payload alone.
func Drain(ctx context.Context, listen string) (err error) {
	var read atomic.Uint64
	stop, err := ServeGauge(func() (gauge.Traffic, error) { return gauge.Traffic{BytesIn: read.Load()}, nil })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	conn, err := l.Accept()
	if err != nil {
		return unlessDone(ctx, fmt.Errorf("waiting for the stream: %w", err))
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	buffer := make([]byte, streamBuffer)
	for {
		n, err := conn.Read(buffer)
		read.Add(uint64(n))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unlessDone(ctx, fmt.Errorf("reading the stream: %w", err))
		}
	}
}

// Pour sends one TCP stream to an address, as fast as it goes, for as long as it
// is asked, until ctx ends, or until nobody takes it any more.
func Pour(ctx context.Context, to string, lasting time.Duration) error {
	end := time.Now().Add(lasting)
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	conn, err := DialUntil(ctx, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	buffer := make([]byte, streamBuffer)
	for {
		if _, err := conn.Write(buffer); err != nil {
			if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
				return nil
			}
			return unlessDone(ctx, fmt.Errorf("writing the stream: %w", err))
		}
	}
}

// DialUntil dials until somebody listens.
func DialUntil(ctx context.Context, to string) (net.Conn, error) {
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
		if err == nil {
			return conn, nil
		}
		if cause := runner.Pause(ctx, 10*time.Millisecond); cause != nil {
			return nil, fmt.Errorf("nobody listens at %s: %w", to, errors.Join(cause, err))
		}
	}
}

// unlessDone returns err, or nil if ctx had it happen.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}
