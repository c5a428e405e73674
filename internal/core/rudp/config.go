package rudp

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrConfig is wrapped by all errors of Config.Validate.
	ErrConfig = errors.New("rudp: invalid configuration")

	// ErrMalformed is wrapped by the errors of datagrams that break the format.
	ErrMalformed = errors.New("rudp: malformed datagram")

	// ErrTimeout ends a connection whose peer does not answer: a call, or what was sent.
	ErrTimeout = errors.New("rudp: the peer does not answer")

	// ErrReset ends a connection that the peer has aborted, or does not know.
	ErrReset = errors.New("rudp: connection reset by peer")

	// ErrAborted ends a connection that its own user has aborted.
	ErrAborted = errors.New("rudp: connection aborted")

	// ErrClosed is returned by a Write after CloseWrite or Close.
	ErrClosed = errors.New("rudp: closed for writing")
)

// Config is how a connection behaves. Zero fields have defaults.
type Config struct {
	Datagram      int           // bytes of a datagram's payload at most; the smaller one of both sides counts; 1,400
	SendBuffer    int           // bytes that are written and not acknowledged, at most; 1 MiB
	ReceiveBuffer int           // bytes that have arrived and are not read, at most; 2 MiB
	FirstWindow   int           // of these, until Grow; ReceiveBuffer
	ConnectWithin time.Duration // a call that takes longer fails; 10 s
	LostAfter     time.Duration // a peer that acknowledges nothing for so long, although it should, is gone; 30 s
	LingerFor     time.Duration // a closed connection is kept for what is under way, without progress; 5 s
	KeepAlive     time.Duration // a peer that has sent nothing for so long is asked for a sign of life; 0: never
}

// Limits of Config.
const (
	MinDatagram = 512 // fits the largest acknowledgement
	MaxDatagram = 65507
	MaxBuffer   = 1 << 30
)

// WithDefaults returns c with defaults for zero fields.
func (c Config) WithDefaults() Config {
	set(&c.Datagram, 1400)
	set(&c.SendBuffer, 1<<20)
	set(&c.ReceiveBuffer, 2<<20)
	set(&c.FirstWindow, c.ReceiveBuffer)
	set(&c.ConnectWithin, 10*time.Second)
	set(&c.LostAfter, 30*time.Second)
	set(&c.LingerFor, 5*time.Second)
	return c
}

func set[T int | time.Duration](field *T, value T) {
	if *field == 0 {
		*field = value
	}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	d := c.WithDefaults()
	switch {
	case d.Datagram < MinDatagram || d.Datagram > MaxDatagram:
		return fmt.Errorf("%w: datagrams of %d bytes, want %d to %d", ErrConfig, d.Datagram, MinDatagram, MaxDatagram)
	case d.SendBuffer < d.Datagram || d.SendBuffer > MaxBuffer:
		return fmt.Errorf("%w: send buffer of %d bytes, want %d to %d", ErrConfig, d.SendBuffer, d.Datagram, MaxBuffer)
	case d.ReceiveBuffer < d.Datagram || d.ReceiveBuffer > MaxBuffer:
		return fmt.Errorf("%w: receive buffer of %d bytes, want %d to %d", ErrConfig, d.ReceiveBuffer, d.Datagram, MaxBuffer)
	case d.FirstWindow < d.Datagram || d.FirstWindow > d.ReceiveBuffer:
		return fmt.Errorf("%w: first window of %d bytes, want %d to %d", ErrConfig, d.FirstWindow, d.Datagram, d.ReceiveBuffer)
	case d.ConnectWithin < 0 || d.LostAfter < 0 || d.LingerFor < 0 || d.KeepAlive < 0:
		return fmt.Errorf("%w: a negative time", ErrConfig)
	}
	return nil
}
