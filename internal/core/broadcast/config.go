package broadcast

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("scoll: invalid configuration")

// Config is what a node is given once.
type Config struct {
	Node        broadcastmsg.Node // its own name
	Incarnation uint64            // of this start of it; rises strictly with every start
	Secret      [16]byte          // random bytes, so that keys to exposed memory cannot be guessed; all zero: they can

	// Key is this start's own, by which its requests are proven, and only requests that are
	// proven are taken; it needs a Secret. nil: nothing is proven.
	Key ed25519.PrivateKey

	RoundTrip time.Duration // R: how long a message and its answer take between two nodes, pessimistically
	BulkRate  uint64        // bytes a second of bulk data that move between two nodes, pessimistically
	Patience  time.Duration // P of the library's own broadcasts, which make and free groups

	Attempts   int           // how often a message is sent while sending fails locally, at least 1
	RetryAfter time.Duration // pause between two of them

	// RecallAfter is the pause before a node is called again whose connection has
	// ended while its reply was awaited: so long that a Liveness reports its death
	// first.
	RecallAfter time.Duration

	PartBytes     int           // most bytes of a reply's body in one message, collect.MinPart to collect.MaxPart
	CreationBytes uint64        // most bytes of a group's members that are pulled to make it
	Requests      int           // most requests of others at once, and a quarter of it of one host
	Groups        int           // most groups that the roots of one other host have made here
	Receive       int           // buffers for requests that are kept ready
	Remember      int           // most sequence numbers of roots that are remembered, a quarter of it of one host's, so that a copy of an ended broadcast does not run again; an eighth of a byte each
	Linger        time.Duration // how long they are, beyond the time in which their parent may send again

	// Trees are the kinds of trees beside those that come with the library.
	Trees map[broadcastmsg.Kind]Shape
}

// DefaultConfig returns a configuration for a data centre's network.
func DefaultConfig(node broadcastmsg.Node, incarnation uint64) Config {
	return Config{
		Node: node, Incarnation: incarnation,
		RoundTrip: 10 * time.Millisecond, BulkRate: 100_000_000, Patience: time.Minute,
		Attempts: 3, RetryAfter: time.Millisecond, RecallAfter: 100 * time.Millisecond,
		PartBytes: broadcastmsg.MinPart, CreationBytes: 64 << 20,
		Requests: 1 << 16, Groups: 1 << 14, Receive: 64, Remember: 1 << 26, Linger: time.Second,
	}
}

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	switch {
	case len(c.Node) == 0 || len(c.Node) > broadcastmsg.MaxNode:
		return fmt.Errorf("%w: the node's name has %d bytes, want 1 to %d", ErrConfig, len(c.Node), broadcastmsg.MaxNode)
	case c.Key != nil && (len(c.Key) != ed25519.PrivateKeySize || c.Secret == [16]byte{}):
		return fmt.Errorf("%w: a key of %d bytes, want %d, and a secret", ErrConfig, len(c.Key), ed25519.PrivateKeySize)
	case c.RoundTrip <= 0 || c.RoundTrip > broadcastmsg.MaxLevel:
		return fmt.Errorf("%w: a round trip of %v, want more than 0 and at most %v", ErrConfig, c.RoundTrip, broadcastmsg.MaxLevel)
	case c.BulkRate == 0:
		return fmt.Errorf("%w: bulk data moves at 0 bytes a second, want more", ErrConfig)
	case c.Patience < 0 || c.Patience > broadcastmsg.MaxPatience:
		return fmt.Errorf("%w: a processing time of %v, want 0 to %v", ErrConfig, c.Patience, broadcastmsg.MaxPatience)
	case c.Attempts < 1 || c.RetryAfter < 0 || c.RecallAfter < 0:
		return fmt.Errorf("%w: %d attempts with pauses of %v, after %v, want at least 1 and no negative pause", ErrConfig, c.Attempts, c.RetryAfter, c.RecallAfter)
	case c.PartBytes < broadcastmsg.MinPart || c.PartBytes > broadcastmsg.MaxPart:
		return fmt.Errorf("%w: parts of %d bytes, want %d to %d", ErrConfig, c.PartBytes, broadcastmsg.MinPart, broadcastmsg.MaxPart)
	case c.Requests < 4 || c.Groups < 1:
		return fmt.Errorf("%w: %d requests and %d groups of others, want 4 and 1 or more", ErrConfig, c.Requests, c.Groups)
	case c.Receive < 0 || c.Remember < 1 || c.Linger < 0:
		return fmt.Errorf("%w: %d receive buffers, %d sequence numbers remembered for %v", ErrConfig, c.Receive, c.Remember, c.Linger)
	}
	for kind := range c.Trees {
		if kind < broadcastmsg.FirstOwnKind {
			return fmt.Errorf("%w: tree kind %d, want %d or more", ErrConfig, kind, broadcastmsg.FirstOwnKind)
		}
	}
	return nil
}

// shapes returns all kinds of trees that the node knows.
func (c Config) shapes() map[broadcastmsg.Kind]Shape {
	all := map[broadcastmsg.Kind]Shape{broadcastmsg.KNomial: kNomial, broadcastmsg.KAry: kAry, broadcastmsg.Flat: flat}
	maps.Copy(all, c.Trees)
	return all
}
