package rail

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrHello: what a path began with is malformed, or contradicts what was said before.
var ErrHello = errors.New("rail: malformed hello")

// Hello is what each side of a path says first, and again when it has learned the other's
// epoch. A session is a pair of epochs, one of each side, that both know: what is sent in
// one session is not taken for another's.
type Hello struct {
	Epoch  uint64 // of who says it
	Known  uint64 // the other side's, as far as it is known; 0: not
	Window Window // of who says it
}

// Window is what a host takes of a peer before a receive awaits it.
type Window struct {
	Bytes    uint32 // of messages
	Messages uint32
}

// KindHello is the first byte of a hello.
const KindHello = 0xff

// HelloSize is the bytes of a hello.
const HelloSize = 32

const helloVersion = 1

// AppendTo appends the hello.
func (h *Hello) AppendTo(b []byte) []byte {
	b = append(b, KindHello, helloVersion, 0, 0, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, h.Epoch)
	b = binary.BigEndian.AppendUint64(b, h.Known)
	b = binary.BigEndian.AppendUint32(b, h.Window.Bytes)
	return binary.BigEndian.AppendUint32(b, h.Window.Messages)
}

// ParseHello returns a hello.
func ParseHello(b []byte) (h Hello, err error) {
	if len(b) < HelloSize || b[0] != KindHello {
		return h, fmt.Errorf("%w: %d bytes", ErrHello, len(b))
	}
	if b[1] != helloVersion {
		return h, fmt.Errorf("%w: version %d, this host has %d", ErrHello, b[1], helloVersion)
	}
	h = Hello{
		Epoch: binary.BigEndian.Uint64(b[8:]), Known: binary.BigEndian.Uint64(b[16:]),
		Window: Window{binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[28:])},
	}
	if h.Epoch == 0 {
		return h, fmt.Errorf("%w: epoch 0", ErrHello)
	}
	return h, nil
}

// Epochs agrees with a peer upon sessions.
//
//	this side        hears                        then
//	knows no epoch   any                          notes it
//	knows an epoch   an earlier one               the path is of an earlier session: Stale
//	                 the same                     nothing new
//	                 a later one                  the peer has lost the session: Lost; notes it
//	then             with this side's own         Agreed
//	                 with an earlier one, or none waits: the peer will say it again
//	                 with a later one             ErrHello
//
// A side that loses the session by itself takes a later epoch, and forgets the peer's. It
// closes all paths then, as it does when it hears that the peer has lost the session, the
// one aside on which it heard so.
type Epochs struct {
	own    uint64
	theirs uint64 // 0: not known
}

// Heard is what follows from a hello.
type Heard uint8

// The results.
const (
	Waits  Heard = iota // for the peer to say it again
	Agreed              // the path is the session's
	Stale               // the path is an earlier session's: it is to be closed
)

// Begin takes a new epoch, later than all of this side's before.
func (e *Epochs) Begin(own uint64) { e.own, e.theirs = own, 0 }

// Hello returns what is to be said on a path, a Window aside.
func (e *Epochs) Hello() Hello { return Hello{Epoch: e.own, Known: e.theirs} }

// Hear takes a hello. With isLost, the peer has lost the session: what is pending in it
// fails, and another one has begun.
func (e *Epochs) Hear(h Hello) (what Heard, isLost bool, err error) {
	switch {
	case h.Known > e.own:
		return Stale, false, fmt.Errorf("%w: it knows epoch %d of this host, which is at %d", ErrHello, h.Known, e.own)
	case h.Epoch < e.theirs:
		return Stale, false, nil
	case h.Epoch > e.theirs:
		isLost = e.theirs != 0
		e.theirs = h.Epoch
	}
	if h.Known == e.own {
		return Agreed, isLost, nil
	}
	return Waits, isLost, nil
}
