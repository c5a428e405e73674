package scoll

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// Config is what a node is given once; all of it has a default. Name, incarnation,
// addresses, certificate and log are the host's.
type Config struct {
	// Liveness reports who lives; nil: the host's membership does, or if it has none its
	// connections: all others live until a connection shows a later incarnation.
	Liveness Liveness

	Tree  Tree            // of groups that name none; Binomial by default
	Trees map[uint8]Shape // kinds of trees beside the library's, from FirstOwnKind on
	Bulk  Bulk            // moves bulk data, and is closed with the node; nil: by the host's node of package rail

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
	// to take part in a large group, and a quarter of those of all groups that one
	// other host has made on this node; 64 MiB by default.
	MembersBytes uint64
	// Requests are how many requests of other nodes may be active at once, and a quarter
	// of them those of one host, all its processes together; 65,536 by default. More are
	// refused.
	Requests int
	// Groups are how many groups one other host, all its processes together, may have made
	// on this node; 16,384 by default. More are refused.
	Groups int
	// ReceiveBuffers are buffers of 4 KiB that are kept ready for messages from
	// anyone; when half of them are in use new ones are made. 64 by default.
	ReceiveBuffers int
	// Linger is how long a broadcast that has ended is known, beyond the time in
	// which its parent may send again, so that a late copy does not run again; 1
	// s by default. docs/server-collectives.md says what that takes.
	Linger time.Duration

	// Workers are the callbacks of one service that run at once, those that are
	// Inline aside; 256 by default. One service's never wait for another's.
	Workers int
	// Waiting are the callbacks of a service that may wait for others to return;
	// as long as there are more its new requests are refused. 16,384 by default.
	Waiting int
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{}.filled() }

// filled returns c with its defaults.
func (c Config) filled() Config {
	d := broadcast.DefaultConfig("", 0)
	c.Tree = cmp.Or(c.Tree, Binomial())
	c.RoundTrip, c.Timeout = cmp.Or(c.RoundTrip, d.RoundTrip), cmp.Or(c.Timeout, d.Patience)
	c.BulkRate, c.MembersBytes = cmp.Or(c.BulkRate, d.BulkRate), cmp.Or(c.MembersBytes, d.CreationBytes)
	c.Attempts, c.RetryAfter = cmp.Or(c.Attempts, d.Attempts), cmp.Or(c.RetryAfter, d.RetryAfter)
	c.PartBytes, c.ReceiveBuffers = cmp.Or(c.PartBytes, d.PartBytes), cmp.Or(c.ReceiveBuffers, d.Receive)
	c.Linger = cmp.Or(c.Linger, d.Linger)
	c.Requests, c.Groups = cmp.Or(c.Requests, d.Requests), cmp.Or(c.Groups, d.Groups)
	c.Workers, c.Waiting = cmp.Or(c.Workers, 256), cmp.Or(c.Waiting, 16384)
	return c
}

// Validate reports what is wrong with c, fields that are zero having their
// defaults; the error is ErrConfig.
func (c Config) Validate() error {
	c = c.filled()
	if err := c.core("node", 1).Validate(); err != nil {
		return err
	}
	switch {
	case c.Workers < 1 || c.Waiting < 1:
		return fmt.Errorf("%w: %d callbacks at once, and %d that wait, want 1 or more", ErrConfig, c.Workers, c.Waiting)
	case c.Tree.Radix < 0 || c.Tree.Radix > math.MaxUint16:
		return fmt.Errorf("%w: a tree of radix %d, want 0 to %d", ErrConfig, c.Tree.Radix, math.MaxUint16)
	}
	return nil
}

// core returns the core's part of c.
func (c Config) core(node string, incarnation uint64) broadcast.Config {
	d := broadcast.DefaultConfig(broadcastmsg.Node(node), incarnation)
	d.RoundTrip, d.Attempts, d.RetryAfter = c.RoundTrip, c.Attempts, c.RetryAfter
	d.Patience, d.BulkRate = c.Timeout, c.BulkRate
	d.PartBytes, d.CreationBytes, d.Receive, d.Linger = c.PartBytes, c.MembersBytes, c.ReceiveBuffers, c.Linger
	d.Requests, d.Groups = c.Requests, c.Groups
	d.Trees = coreShapes(c.Trees)
	return d
}
