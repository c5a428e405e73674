package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxName is the most bytes of a node's name.
const MaxName = 255

const (
	magic    = "TRIM"
	version  = 2
	headSize = len(magic) + 1 // the same in all versions
)

// Lane is what a connection is for.
type Lane uint8

// Urgent is the lane whose packets pass before others.
const Urgent Lane = 0

// Peer is the other side of a connection.
type Peer struct {
	Name        string
	Incarnation uint64 // of its start; rises with every one
}

// ErrGreeting is wrapped by all errors about what the other side says first.
var ErrGreeting = errors.New("mesh: unsound greeting")

// ErrRefused is wrapped by the error of a call that the other side refuses.
var ErrRefused = errors.New("mesh: refused")

// ErrEarlier is wrapped, beside ErrRefused, by the error of a call of a node that
// the other side knows in a later incarnation: it has to begin with a larger one.
var ErrEarlier = errors.New("mesh: an earlier incarnation")

// ErrFormer is wrapped, beside ErrRefused, by the error of a call to a node that
// this one knows in a later incarnation than it has.
var ErrFormer = errors.New("mesh: the other side is in an earlier incarnation than it is known in")

// The first byte of an answer.
const (
	taken   = 0
	refused = 1
	earlier = 2 // refused for the caller's incarnation
	former  = 3 // refused for that of who answers, which the caller knows in a later one
)

// greeting is what a caller says first.
type greeting struct {
	lane   Lane
	caller Peer
	wanted Peer // incarnation: the latest that the caller knows of; 0: none
}

func (g *greeting) bytes() []byte {
	b := append([]byte(magic), version, byte(g.lane))
	b = binary.BigEndian.AppendUint64(b, g.caller.Incarnation)
	b = append(append(b, byte(len(g.caller.Name))), g.caller.Name...)
	b = append(append(b, byte(len(g.wanted.Name))), g.wanted.Name...)
	return binary.BigEndian.AppendUint64(b, g.wanted.Incarnation)
}

func readGreeting(r io.Reader) (greeting, error) {
	var head [headSize + 1 + 8]byte
	if _, err := io.ReadFull(r, head[:headSize]); err != nil {
		return greeting{}, fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	if string(head[:len(magic)]) != magic {
		return greeting{}, fmt.Errorf("%w: it is not of this protocol", ErrGreeting)
	}
	if v := head[headSize-1]; v != version {
		return greeting{}, fmt.Errorf("%w: version %d, this node speaks %d", ErrGreeting, v, version)
	}
	if _, err := io.ReadFull(r, head[headSize:]); err != nil {
		return greeting{}, fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	g := greeting{lane: Lane(head[headSize])}
	g.caller.Incarnation = binary.BigEndian.Uint64(head[headSize+1:])
	var err error
	if g.caller.Name, err = readText(r); err != nil {
		return greeting{}, err
	}
	if g.wanted.Name, err = readText(r); err != nil {
		return greeting{}, err
	}
	var incarnation [8]byte
	if _, err := io.ReadFull(r, incarnation[:]); err != nil {
		return greeting{}, fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	g.wanted.Incarnation = binary.BigEndian.Uint64(incarnation[:])
	if g.caller.Name == "" {
		return greeting{}, fmt.Errorf("%w: the caller has no name", ErrGreeting)
	}
	return g, nil
}

// readText reads a length and so many bytes.
func readText(r io.Reader) (string, error) {
	var n [1]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	text := make([]byte, n[0])
	if _, err := io.ReadFull(r, text); err != nil {
		return "", fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	return string(text), nil
}

// answer returns what is said to a greeting.
func answer(incarnation uint64, code byte, reason string) []byte {
	b := []byte{code}
	b = binary.BigEndian.AppendUint64(b, incarnation)
	reason = reason[:min(len(reason), 255)]
	return append(append(b, byte(len(reason))), reason...)
}

// readAnswer returns the incarnation of who has answered.
func readAnswer(r io.Reader) (uint64, error) {
	var head [9]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, fmt.Errorf("%w: no answer: %w", ErrGreeting, err)
	}
	reason, err := readText(r)
	switch {
	case err != nil:
		return 0, err
	case head[0] > former || (head[0] == taken) != (reason == ""):
		return 0, fmt.Errorf("%w: the answer is not of this protocol", ErrGreeting)
	case head[0] == earlier:
		return 0, fmt.Errorf("%w: %w: %s", ErrRefused, ErrEarlier, reason)
	case head[0] == former:
		return 0, fmt.Errorf("%w: %w: %s", ErrRefused, ErrFormer, reason)
	case head[0] == refused:
		return 0, fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	return binary.BigEndian.Uint64(head[1:]), nil
}
