package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// Errors of hosts. They are wrapped; use errors.Is. Why a connection was refused or
// closed is one of package peering's.
var (
	ErrConfig    = peering.ErrConfig
	ErrClosed    = errors.New("peer: the host is closed")
	ErrPlaintext = errors.New("peer: without certificates only loopback addresses are served, unless plaintext is allowed explicitly")
	ErrFull      = errors.New("peer: too many bytes wait to be sent")
	ErrFrame     = errors.New("peer: malformed frame")
	ErrGone      = errors.New("peer: nothing more is sent on this connection")
	ErrStuck     = errors.New("peer: it reads nothing")
)

// Class is a class of connections.
type Class uint8

// The classes.
const (
	Control Class = iota
	Data
	Large
	Message  // of hostlib/rail: headers and small messages. Services see its paths, as in Fragment
	Fragment // of hostlib/rail: parts of large messages
	classes
)

// lends reports whether frames are sent from where they lie.
func (c Class) lends() bool { return c == Large || c == Fragment }

// isTracked reports whether services see the paths of connections, and frames are reported
// when they are acknowledged.
func (c Class) isTracked() bool { return c == Message || c == Fragment }

// frameMost are the most bytes of a frame's payload, and queueMost those that may wait
// to be sent.
var (
	frameMost = [classes]int{64 << 10, 64 << 10, 64<<20 + 64<<10, 68 << 10, 1<<20 + 64<<10}
	queueMost = [classes]int{16 << 20, 64 << 20, 1 << 30, 64 << 20, 1 << 30}
)

// FrameMost returns the most bytes of a frame's payload.
func (c Class) FrameMost() int { return frameMost[c] }

// Service is the number of a service, the same on all hosts; 0 is none's.
type Service uint8

// The services.
const (
	Communicators Service = 1 + iota
	Collectives
	Membership
	Messages
)

// Peer is another host.
type Peer struct {
	Name        string
	Incarnation uint64 // of its start; rises with every one
}

// Handler is the receiving side of a service. The host calls it from several
// goroutines, for one connection one after the other. Only Received may wait.
type Handler interface {
	// Up reports that there is a connection, on which frames come and go.
	Up(c *Conn)
	// Received hands on frames that came together. They lie in b, which the handler
	// releases when it is done with them.
	Received(c *Conn, frames []Frame, b *Burst)
	// Down reports that the connection has ended, and why.
	Down(c *Conn, reason error)
	// Failed reports that a call for a connection of a shared class has come to nothing.
	Failed(host string, class Class, reason error)
	// Sent reports what became of frames that were lent. It may be called within Send and
	// Flush. The list is not the handler's once it has returned.
	Sent(numbers []uint64, err error)
	// Restarted reports that a host is in a later incarnation than was known.
	Restarted(host string, before, incarnation uint64)
}

// Forgetter is a Handler that is called when nothing is known of a host any more: what it
// knows of the host's incarnation by its connections is to be forgotten, too.
type Forgetter interface {
	Handler
	Forgotten(host string)
}

// Absentee is a Handler that is called where the other host does not have the service:
// when it has dropped a frame of this host's, and when it has unregistered the service;
// what was sent before that may be lost.
type Absentee interface {
	Handler
	Absent(c *Conn, isDropped bool)
}

// PathHandler is a Handler that sees the paths of connections in the classes Message and
// Fragment. There a frame with a number is reported by Handler.Sent when the other side's
// driver has acknowledged it; and with an error, after PathDown, if that is not known when its
// path has ended: then it may have arrived. Handler.Received may run for two paths of one
// connection at a time.
type PathHandler interface {
	Handler
	PathUp(p *Path)
	PathDown(p *Path, reason error)
}

// Placer is a Handler that says where frames of class Fragment are to lie, so that their bytes are
// not copied on their way.
type Placer interface {
	Handler
	// Place calls read once with memory for a frame's payload, but for its first at bytes, and
	// reports whether there is such memory. Begin are the first BeginSize bytes of the payload,
	// size its length. Read fills what there is to read of it, and does not wait. Place is called again and
	// again until all has come. Then Received gets a frame with these first bytes, and the Rest; or
	// without it, once Place has reported false in between.
	Place(c *Conn, begin []byte, size, at int, read func(into []byte)) bool
}

// Config is how a host is made. Name, Resolve and Log have to be set; zero fields
// of others have the defaults of peering.Config.
type Config struct {
	// Name of this host, 1 to 255 bytes, or of one of its processes: then peering.Mark
	// and a label follow.
	Name string
	// Incarnation of this start: it rises strictly with every start. Where others know a
	// later one, the next takes its place, unless there are other services than
	// Communicators.
	Incarnation uint64

	Listen   string       // TCP address
	Listener net.Listener // that listens already, in place of Listen; the host closes it
	// Dial connects to an address; nil: over TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	Wrap func(net.Conn) net.Conn // each connection, to inject faults; nil: none
	// Resolve returns the TCP address of another host that Hold has not given. It is asked
	// for every call, with the time that is left for it.
	Resolve func(ctx context.Context, host string) (string, error)
	// TLS is of a host of this name; nil: plaintext. Connections end with the other side's
	// certificate, and are replaced before this side's ends, if there is a later one by then,
	// and after KeyBytes.
	TLS      *pki.Source
	KeyBytes uint64 // encrypted by the key of one connection; 256 GiB
	// AllowPlaintext serves and calls other addresses than loopback without
	// certificates, too: whoever reaches them may say that it is any host.
	AllowPlaintext bool

	// Rails are the host's independent paths to others; connections are spread over all of them
	// where both hosts have several. Names are unique. None: there is one, Listen.
	Rails []Rail

	Handlers map[Service]Handler // from the beginning on; see Host.Register

	GreetWithin time.Duration // for a call and its greeting
	KeepAlive   time.Duration // a peer that has said nothing for so long is asked; a third of DeadAfter
	DeadAfter   time.Duration // a peer that acknowledges, or reads, nothing for so long is gone
	LostAfter   time.Duration // so is a connection on which nothing that was sent is acknowledged; DeadAfter
	IdleAfter   time.Duration // a connection that nobody uses for so long is closed
	ForgetAfter time.Duration // without certificates: a host without a connection for so long is forgotten
	Log         *slog.Logger
}

func (c *Config) core() peering.Config {
	return peering.Config{
		Name: c.Name, Incarnation: c.Incarnation, Certified: c.TLS != nil, Classes: uint8(classes),
		GreetWithin: c.GreetWithin, KeepAlive: c.KeepAlive, DeadAfter: c.DeadAfter, IdleAfter: c.IdleAfter, Forget: c.ForgetAfter,
	}
}

func (c *Config) validate() error {
	if c.Resolve == nil || c.Log == nil {
		return fmt.Errorf("%w: no Resolve, or no Log", ErrConfig)
	}
	for s, h := range c.Handlers {
		if s == 0 || h == nil {
			return fmt.Errorf("%w: service %d", ErrConfig, s)
		}
	}
	if c.TLS == nil {
		return nil
	}
	if err := c.TLS.Expect(pki.Want{Role: pki.Host, Name: peering.HostOf(c.Name)}); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// permitted returns ErrPlaintext for an address that may not be used.
func (c *Config) permitted(a net.Addr) error {
	if c.TLS != nil || c.AllowPlaintext {
		return nil
	}
	if addressOf(a).IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w: %v", ErrPlaintext, a)
}
