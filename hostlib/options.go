package hostlib

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/membership"
)

// Option changes how a host joins.
type Option func(*settings)

type settings struct {
	listen       string
	data         netip.Addr
	manager      string
	certificates *certificates // nil: plaintext
	plaintext    bool          // beside loopback addresses, too
	log          *slog.Logger
	deadAfter    time.Duration
	offerWait    time.Duration
	chunkBytes   int
	window       uint32
	without      string // of transport's features
	timing       session.Timing
	zone         *membership.Node // nil: connections alone report who dies

	// Fault injection of tests.
	wrapData func(transport.Conn) transport.Conn
	wrapLink func(net.Conn) net.Conn
}

// DefaultWindow is the largest number of chunks in flight where WithWindow does
// not set another. More than that makes links no faster that have round trips
// below 3 ms at 1 Gbit/s, or 300 us at 10, and takes memory from the caches: a
// switch uses twice as many slots in turn. How many are in flight follows the
// delay, and is far less on most links.
const DefaultWindow = 256

func defaults() settings {
	return settings{
		listen:     "127.0.0.1:0",
		log:        slog.New(slog.DiscardHandler),
		deadAfter:  5 * time.Second,
		offerWait:  3 * time.Second,
		chunkBytes: 1432,
		window:     DefaultWindow,
		timing:     session.DefaultTiming(),
	}
}

func (s *settings) validate() error {
	c := session.Config{ChunkBytes: s.chunkBytes, Window: s.window}
	if err := c.Validate(); err != nil {
		return fmt.Errorf("hostlib: joining: %w", err)
	}
	if _, err := transport.ParseFeatures(s.without); err != nil {
		return fmt.Errorf("hostlib: joining: %w: %w", ErrArgument, err)
	}
	if s.deadAfter <= 0 || s.offerWait < 0 {
		return fmt.Errorf("hostlib: joining: %w: a time is negative, or a member dead at once", ErrArgument)
	}
	return nil
}

// WithListen sets the TCP address on which other members reach this host,
// "127.0.0.1:0" by default. The members' lists must name it as others see it.
func WithListen(address string) Option { return func(s *settings) { s.listen = address } }

// WithDataAddress sets the local address of the UDP sockets that speak to
// switches; by default it is that of WithListen. Switches must be able to reach
// it. With the unspecified address (0.0.0.0 or ::) packets take the link that a
// tree was planned on: the topology has to report the addresses of the host's
// links, and the manager has the leaf switch send to the one of the tree's.
func WithDataAddress(a netip.Addr) Option { return func(s *settings) { s.data = a } }

// WithManager sets the address of the offload manager. Without one, all
// operations run over hosts.
func WithManager(address string) Option { return func(s *settings) { s.manager = address } }

// WithLogger sets where the host logs; by default nowhere.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.log = l } }

// WithDeadAfter sets how long a member may be unreachable before it counts as
// dead, 5 s by default. Longer outages of its connections end a communicator.
func WithDeadAfter(d time.Duration) Option { return func(s *settings) { s.deadAfter = d } }

// WithOfferWait sets how long the making of a communicator waits for its first
// tree of switches, 3 s by default. After that it starts over hosts, and
// changes to the switches when a tree is offered.
func WithOfferWait(d time.Duration) Option { return func(s *settings) { s.offerWait = d } }

// WithChunkBytes sets the largest payload of a packet, 1432 by default, for a
// path of 1500 bytes. All members must set the same; multiples of 16 up to
// 32768 are right for every element type.
func WithChunkBytes(n int) Option { return func(s *settings) { s.chunkBytes = n } }

// WithWindow sets the largest number of chunks in flight, a power of two,
// DefaultWindow by default. All members must set the same. A tree may have a
// smaller one: it needs twice as many slots on each of its switches.
func WithWindow(w uint32) Option { return func(s *settings) { s.window = w } }

// Without has the host's sockets do without what makes them fast, to find out
// what it brings or harms. Features are names, separated by commas: batching,
// several packets a system call; segmentation and coalescing, several packets
// as one through the kernel; lending, packets are read where the kernel wrote
// them; polling, for 300 us after a packet the next one is looked for, instead
// of sleeping; adapting, for a shorter time where that has been in vain; napping,
// whoever waits for an operation sleeps in the kernel, not in the Go runtime's
// poller; bundling, packets that travel as one are one to the program, too; or
// all. What the kernel cannot do is left out by itself.
func Without(features string) Option { return func(s *settings) { s.without = features } }
