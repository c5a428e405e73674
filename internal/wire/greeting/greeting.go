package greeting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version of the protocol between hosts, from the greeting on.
const Version = 5

// MaxName is the most bytes of a host's name.
const MaxName = 255

// MaxPaths are the most pairs of rails between two hosts, each with one path of a connection.
const MaxPaths = 8

const (
	magic    = "TRIB"
	former   = "TRIM" // of hosts that used two protocols
	headSize = len(magic) + 1
	fixed    = headSize + 3 + 5*8 // bytes before the names
)

// MaxSize is the most bytes of a greeting.
const MaxSize = fixed + 2*(1+MaxName)

// ErrMalformed is wrapped by all errors about greetings and answers that do not
// keep to the format.
var ErrMalformed = errors.New("malformed greeting")

// VersionError reports that the other side speaks another version.
type VersionError struct{ Theirs uint8 }

// Error names both versions.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the greeting is of version %d of the protocol between hosts, and this host speaks version %d", e.Theirs, Version)
}

// Greeting is what a caller says first.
type Greeting struct {
	Class       uint8
	Path        uint8  // of a call that adds a path to a connection: its pair of rails, counted from 1; 0: none
	First       bool   // then: the connection's first path lay on this pair, and the caller has lost it
	From        string // name of the caller
	Incarnation uint64 // of the caller
	To          string // name of the host that is wanted; empty: the caller only asks who is there
	Known       uint64 // the latest incarnation of it that the caller knows; 0: none
	Call        uint64 // number of the call
	Accepted    uint64 // last call of the other's that the caller has accepted; 0: none
	Joins       uint64 // with Path: number of the call that has made the connection
}

// Append appends the greeting as it is sent. Names have at most MaxName bytes.
func (g *Greeting) Append(b []byte) []byte {
	b = append(append(b, magic...), Version, g.Class, g.Path, 0)
	if g.First {
		b[len(b)-1] = 1
	}
	for _, n := range [...]uint64{g.Incarnation, g.Known, g.Call, g.Accepted, g.Joins} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	for _, name := range [...]string{g.From, g.To} {
		b = append(append(b, byte(len(name))), name...)
	}
	return b
}

// Read reads a greeting. The errors wrap ErrMalformed, and a *VersionError where
// the version is another one, or are those of r.
func Read(r io.Reader) (Greeting, error) {
	var b [fixed]byte
	if err := fill(r, b[:headSize]); err != nil {
		return Greeting{}, err
	}
	v := b[headSize-1]
	switch m := string(b[:len(magic)]); {
	case m == former, m == magic && v != Version:
		return Greeting{}, fmt.Errorf("%w: %w", ErrMalformed, &VersionError{v})
	case m != magic:
		return Greeting{}, fmt.Errorf("%w: it is not of the protocol between hosts", ErrMalformed)
	}
	if err := fill(r, b[headSize:]); err != nil {
		return Greeting{}, err
	}
	number := func(i int) uint64 { return binary.BigEndian.Uint64(b[headSize+3+8*i:]) }
	g := Greeting{Class: b[headSize], Incarnation: number(0), Known: number(1), Call: number(2), Accepted: number(3)}
	first := b[headSize+2]
	g.Path, g.First, g.Joins = b[headSize+1], first == 1, number(4)
	if first > 1 || (g.Path == 0) != (g.Joins == 0) || g.First && g.Path == 0 {
		return Greeting{}, fmt.Errorf("%w: path %d (%d) of the connection of call %d", ErrMalformed, g.Path, first, g.Joins)
	}
	var err error
	if g.From, err = text(r); err != nil {
		return Greeting{}, err
	}
	if g.To, err = text(r); err != nil {
		return Greeting{}, err
	}
	if g.From == "" || g.Call == 0 {
		return Greeting{}, fmt.Errorf("%w: it lacks a name or a number", ErrMalformed)
	}
	return g, nil
}

// Code is what an answer says.
type Code uint8

// The codes of answers.
const (
	Accept    Code = 0
	Refuse    Code = 1 // for good: the reason says why
	Outdated  Code = 2 // the caller's incarnation is earlier than one that is known
	Duplicate Code = 3 // the other connection between the two is used
	Former    Code = 4 // the answering host is in an earlier incarnation than the caller knows
	Busy      Code = 5 // for now: too many connections, or it is being closed
	Named     Code = 6 // no host was named: the reason is the name of the one that is here
	Taken     Code = 7 // another process has the caller's name: the reason says where
	Ended     Code = 8 // there is no such connection, or no more, to which a path could be added
	codes     Code = 9
)

// Answer is what is said to a greeting.
type Answer struct {
	Code        Code
	Incarnation uint64 // of the answering host, with Outdated the caller's that is known; 0 in a refusal
	Reason      string // of all codes but Accept
}

// Append appends the answer as it is sent: of a reason at most 255 bytes, and of
// an incarnation nothing in a refusal.
func (a *Answer) Append(b []byte) []byte {
	incarnation, reason := a.Incarnation, a.Reason[:min(len(a.Reason), 255)]
	switch a.Code {
	case Refuse:
		incarnation = 0
	case Accept:
		reason = ""
	default:
	}
	b = binary.BigEndian.AppendUint64(append(b, byte(a.Code)), incarnation)
	return append(append(b, byte(len(reason))), reason...)
}

// ReadAnswer reads an answer. The errors wrap ErrMalformed, or are those of r.
func ReadAnswer(r io.Reader) (Answer, error) {
	var b [10]byte // up to the length of the reason
	if err := fill(r, b[:]); err != nil {
		return Answer{}, err
	}
	a := Answer{Code: Code(b[0]), Incarnation: binary.BigEndian.Uint64(b[1:])}
	strange := fmt.Errorf("%w: the answer is not of the protocol between hosts", ErrMalformed)
	if a.Code >= codes || a.Code == Refuse && a.Incarnation != 0 || a.Code == Accept && a.Incarnation == 0 {
		return Answer{}, strange
	}
	reason := make([]byte, b[9])
	if err := fill(r, reason); err != nil {
		return Answer{}, err
	}
	a.Reason = string(reason)
	if (a.Code == Accept) != (a.Reason == "") {
		return Answer{}, strange
	}
	return a, nil
}

func fill(r io.Reader, b []byte) error {
	if _, err := io.ReadFull(r, b); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// text reads a length and so many bytes.
func text(r io.Reader) (string, error) {
	var n [1]byte
	if err := fill(r, n[:]); err != nil {
		return "", err
	}
	b := make([]byte, n[0])
	if err := fill(r, b); err != nil {
		return "", err
	}
	return string(b), nil
}
