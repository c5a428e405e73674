package rails

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// Measures.
const (
	Latency   = "latency"
	Bandwidth = "bandwidth"
	Cuts      = "cut"
)

// Names of contestants; those that use one rail use the first.
const (
	Plain      = "tcp"  // a plain TCP connection over one rail
	Messages   = "rail" // of package hostlib/rail over all rails
	MessageOne = "rail/1"
	Reduce     = "allreduce" // of package hostlib, over hosts; it has latency alone
	ReduceOne  = "allreduce/1"
	Conn       = "conn" // frames of the peer driver over all rails, below hostlib
	ConnOne    = "conn/1"
	UCX        = "ucx"
	UCXOne     = "ucx/1"
	UCXSleep   = "ucxsleep" // which waits in the kernel, as Tributary does, and does not poll
	OpenMPI    = "openmpi"
	OpenMPIOne = "openmpi/1"
)

// Contestants returns the names of all contestants.
func Contestants() []string {
	return []string{Plain, Messages, MessageOne, Reduce, ReduceOne, Conn, ConnOne, UCX, UCXOne, UCXSleep, OpenMPI, OpenMPIOne}
}

// Config says what is measured on which fabric.
type Config struct {
	Fabric      netlab.RailsConfig
	Program     []string // the command that is collbench
	Kinds       []string // of Tributary's rails: one for all, or one each
	TLS         bool     // of Tributary and of the plain connection
	Measure     string
	Sizes       []int // bytes of messages
	Contestants []string
	Rounds      int
	Turn        time.Duration // about, for each contestant in each round
	Limit       time.Duration // of a turn
	InFlight    int           // messages of a stream; 0: by their size
	Schedule    Schedule      // of Cuts
	Lasting     time.Duration // of a stream that is cut
	Log         io.Writer
}

// MaxMessage is the size of the largest message.
const MaxMessage = 1 << 30

// MaxInFlight bounds the messages of a stream that are under way at once.
const MaxInFlight = 4096

// Validate reports what is wrong with c.
func (c *Config) Validate() error {
	switch {
	case len(c.Sizes) == 0 || len(c.Contestants) == 0:
		return fmt.Errorf("%w: no sizes, or nobody to measure", ErrConfig)
	case c.Rounds < 1 || c.Turn <= 0 || c.Limit <= c.Turn:
		return fmt.Errorf("%w: %d rounds of %v each, within %v", ErrConfig, c.Rounds, c.Turn, c.Limit)
	case len(c.Kinds) != 1 && len(c.Kinds) != len(c.Fabric.Rates):
		return fmt.Errorf("%w: %d kinds for %d rails: want one for all, or one each", ErrConfig, len(c.Kinds), len(c.Fabric.Rates))
	case !slices.Contains([]string{Latency, Bandwidth, Cuts}, c.Measure):
		return fmt.Errorf("%w: measure %q", ErrConfig, c.Measure)
	case c.InFlight < 0 || c.InFlight > MaxInFlight:
		return fmt.Errorf("%w: %d messages in flight, the most is %d", ErrConfig, c.InFlight, MaxInFlight)
	case c.Measure == Cuts && c.Lasting <= 0:
		return fmt.Errorf("%w: a stream of %v", ErrConfig, c.Lasting)
	}
	least := MinMessage
	if c.Measure == Latency {
		least = 1
	}
	for _, bytes := range c.Sizes {
		if bytes < least || bytes > MaxMessage {
			return fmt.Errorf("%w: messages of %d bytes, want %d to %d", ErrConfig, bytes, least, MaxMessage)
		}
	}
	for _, name := range c.Contestants {
		kind, _, _ := strings.Cut(name, "/")
		if kind == Reduce && c.Measure != Latency {
			return fmt.Errorf("%w: %s has latency, and no streams", ErrConfig, name)
		}
		if kind == OpenMPI && c.Fabric.Pin {
			return fmt.Errorf("%w: mpirun starts both processes of %s on the cores of one host", ErrConfig, name)
		}
		if !slices.Contains(Contestants(), name) {
			return fmt.Errorf("%w: contestant %q; there are %s", ErrConfig, name, strings.Join(Contestants(), ", "))
		}
	}
	for _, kind := range c.Kinds {
		if kind != "tcp" && kind != "udp" {
			return fmt.Errorf("%w: rails of kind %q, want tcp or udp", ErrConfig, kind)
		}
	}
	return c.Fabric.Validate()
}

// What a small message takes at least, for the number of messages in a turn.
const (
	leastTrip = 40 * time.Microsecond
	leastSend = 4 * time.Microsecond
)

// onWire returns the time that a message takes on all rails together.
func (c *Config) onWire(bytes int) time.Duration {
	var rate int64
	for _, r := range c.Fabric.Rates {
		if r == 0 {
			return time.Duration(float64(bytes) / 2e9 * 1e9)
		}
		rate += r
	}
	return time.Duration(float64(bytes) * 8 / float64(rate) * 1e9)
}

// pingpong returns the request for one turn of round trips.
func (c *Config) pingpong(bytes int) Request {
	n := int(min(100_000, max(3, c.Turn/max(leastTrip, 2*c.onWire(bytes)))))
	return Request{What: pingpong, Bytes: bytes, Iterations: n, Warmup: min(500, n/5+1), Window: 1, Limit: c.Limit}
}

// stream returns the request for one turn of a stream.
func (c *Config) stream(bytes int) Request {
	window := cmp.Or(c.InFlight, max(2, min(64, (4<<20)/bytes)))
	n := int(min(1_000_000, max(time.Duration(2*window), c.Turn/max(leastSend, c.onWire(bytes)))))
	return Request{What: stream, Bytes: bytes, Iterations: n, Warmup: min(100, n/10+1), Window: window, Start: time.Now().UnixNano(), Limit: c.Limit}
}
