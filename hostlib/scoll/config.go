package scoll

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Config is what a node is told once. Node, and Resolve unless the node is
// alone, have to be set; all else has a default.
type Config struct {
	Node string // its own name, unique among all nodes; 1 to MaxNode bytes
	// Incarnation of this start of the node; it rises strictly with every start.
	// 0: that of Liveness, if it is an Incarnated, otherwise the clock's
	// nanoseconds.
	Incarnation uint64

	// Listen is the TCP address on which others reach the node;
	// "127.0.0.1:0" by default.
	Listen string
	// Resolve returns the TCP address of another node. It is asked whenever a
	// connection is made.
	Resolve func(node string) (address string, err error)
	// TLS are the files of the node's certificate; nil: plaintext. Then only loopback
	// addresses are served and called.
	TLS *TLS
	// AllowPlaintext serves and calls all addresses without certificates, too: whoever
	// reaches them may say that it is any node.
	AllowPlaintext bool

	// Liveness tells who lives; nil: all others do, until a connection shows a
	// later incarnation. A *membership.Node is one, and needs nothing beside it.
	Liveness Liveness

	Tree  Tree            // of groups that name none; Binomial by default
	Trees map[uint8]Shape // kinds of trees beside the library's, from FirstOwnKind on
	Bulk  Bulk            // moves bulk data, and is closed with the node; nil: over TCP connections of the node's own

	// RoundTrip is R, how long a message and its answer take between two nodes,
	// pessimistically: 10 ms by default, at most 1 h. A child is waited for (depth
	// of its subtree + 1) R + P. See SetRoundTrip.
	RoundTrip time.Duration
	// Timeout is P, how long members need to process a request, pessimistically,
	// of broadcasts that set none, and of those that make and free groups; 1 min
	// by default, at most 100 days. See Broadcast.Timeout.
	Timeout time.Duration
	// BulkRate are the bytes a second of bulk data that move between two nodes,
	// pessimistically; 100,000,000 by default. R is longer by what the data take.
	BulkRate   uint64
	Attempts   int           // how often a message is sent while that fails locally; 3 by default
	RetryAfter time.Duration // pause between two of them; 1 ms by default
	// PartBytes are the most bytes of a reply in one message, 1 MiB to 64 MiB; 1
	// MiB by default.
	PartBytes int
	// MembersBytes are the most bytes of a list of members that the node pulls
	// to take part in a large group; 64 MiB by default.
	MembersBytes uint64
	// ReceiveBuffers are buffers of 4 KiB that are kept ready for messages from
	// anyone; when half of them are in use new ones are made. 64 by default.
	ReceiveBuffers int
	// Linger is how long a broadcast that has ended is known, beyond the time in
	// which its parent may send again, so that a late copy does not run again; 1
	// s by default. docs/server-collectives.md tells what that takes.
	Linger time.Duration

	// Workers are the callbacks of one service that run at once, those that are
	// Inline aside; 256 by default. One service's never wait for another's.
	Workers int
	// Waiting are the callbacks of a service that may wait for others to return;
	// as long as there are more its new requests are refused. 16,384 by default.
	Waiting     int
	DialTimeout time.Duration // for a connection to be made; 2 s by default
	DeadAfter   time.Duration // a connection on which nothing is acknowledged for so long is given up; 5 s by default
	Log         *slog.Logger  // nil: nowhere
}

// TLS names the files of a certificate, which is for the host of the node's name.
type TLS = hostlib.TLS

// DefaultConfig returns the defaults for a node.
func DefaultConfig(node string) Config { return Config{Node: node}.filled() }

// filled returns c with its defaults.
func (c Config) filled() Config {
	or(&c.Incarnation, c.seen())
	d := broadcast.DefaultConfig(broadcastmsg.Node(c.Node), c.Incarnation)
	orString(&c.Listen, "127.0.0.1:0")
	if c.Tree == (Tree{}) {
		c.Tree = Binomial()
	}
	or(&c.RoundTrip, d.RoundTrip)
	or(&c.Timeout, d.Patience)
	or(&c.BulkRate, d.BulkRate)
	or(&c.Attempts, d.Attempts)
	or(&c.RetryAfter, d.RetryAfter)
	or(&c.PartBytes, d.PartBytes)
	or(&c.MembersBytes, d.CreationBytes)
	or(&c.ReceiveBuffers, d.Receive)
	or(&c.Linger, d.Linger)
	or(&c.Workers, 256)
	or(&c.Waiting, 16384)
	or(&c.DialTimeout, 2*time.Second)
	or(&c.DeadAfter, 5*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Resolve == nil {
		c.Resolve = func(node string) (string, error) {
			return "", fmt.Errorf("%w: no Resolve that knows %s", ErrConfig, node)
		}
	}
	return c
}

// seen returns the incarnation in which others see this node; 0: not known.
func (c *Config) seen() uint64 {
	if l, ok := c.Liveness.(Incarnated); ok {
		return l.Incarnation()
	}
	return 0
}

func or[T int | uint64 | time.Duration](field *T, otherwise T) {
	if *field == 0 {
		*field = otherwise
	}
}

func orString(field *string, otherwise string) {
	if *field == "" {
		*field = otherwise
	}
}

// Validate reports what is wrong with c, fields that are zero having their
// defaults; the error is ErrConfig.
func (c Config) Validate() error {
	c = c.filled()
	if err := c.core().Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	switch {
	case c.seen() != 0 && c.Incarnation != c.seen():
		return fmt.Errorf("%w: incarnation %d, but others see this node in %d by the Liveness: leave Incarnation out", ErrConfig, c.Incarnation, c.seen())
	case c.Workers < 1 || c.Waiting < 1:
		return fmt.Errorf("%w: %d callbacks at once, and %d that wait, want 1 or more", ErrConfig, c.Workers, c.Waiting)
	case c.DialTimeout < 0 || c.DeadAfter < 0:
		return fmt.Errorf("%w: connections made in %v, given up after %v", ErrConfig, c.DialTimeout, c.DeadAfter)
	case c.Tree.Radix < 0 || c.Tree.Radix > math.MaxUint16:
		return fmt.Errorf("%w: a tree of radix %d, want 0 to %d", ErrConfig, c.Tree.Radix, math.MaxUint16)
	}
	return nil
}

// core returns the core's part of c.
func (c Config) core() broadcast.Config {
	d := broadcast.DefaultConfig(broadcastmsg.Node(c.Node), c.Incarnation)
	d.RoundTrip, d.Attempts, d.RetryAfter = c.RoundTrip, c.Attempts, c.RetryAfter
	d.Patience, d.BulkRate = c.Timeout, c.BulkRate
	d.PartBytes, d.CreationBytes, d.Receive, d.Linger = c.PartBytes, c.MembersBytes, c.ReceiveBuffers, c.Linger
	d.Trees = coreShapes(c.Trees)
	return d
}
