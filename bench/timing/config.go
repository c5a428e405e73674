package timing

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/reduce"
)

// Errors of a measurement. They are wrapped; use errors.Is.
var (
	// ErrConfig: this cannot be measured.
	ErrConfig = errors.New("cannot measure this")
	// ErrWrong: a result is wrong.
	ErrWrong = errors.New("a result is wrong")
	// ErrTransport: an operation ran another way than was asked for.
	ErrTransport = errors.New("an operation ran over another transport than asked for")
)

// Collective is what is measured.
type Collective string

// The collectives.
const (
	Allreduce Collective = "allreduce"
	Reduce    Collective = "reduce"
	Broadcast Collective = "broadcast"
	Barrier   Collective = "barrier"
	// Form is no collective, but the forming of a communicator of hosts that have just
	// joined, connections included.
	Form Collective = "form"
)

var collectives = []Collective{Allreduce, Reduce, Broadcast, Barrier, Form}

// Transport is how operations are to run.
type Transport string

// The ways.
const (
	Auto    Transport = "auto"    // over switches where that is possible
	Offload Transport = "offload" // over switches, or the measurement has failed
	Host    Transport = "host"    // over hosts
)

var transports = []Transport{Auto, Offload, Host}

// Pace is what members do between the timed operations.
type Pace string

// The paces.
const (
	// Checked: every operation has vectors of its own, and every result is
	// checked. Processor time has that in it.
	Checked Pace = "checked"
	// Steady: the vectors stay as they are; the result of an operation before
	// the timed ones and of one after them is checked.
	Steady Pace = "steady"
	// Stream: as Steady, and members do not wait for each other before an
	// operation, so that the links are never idle for long.
	Stream Pace = "stream"
)

var paces = []Pace{Checked, Steady, Stream}

// Config is what is measured.
type Config struct {
	Collective Collective
	Function   reduce.Function // of allreduce and reduce
	Type       reduce.Type     // Block32: float32, summed in block floating point
	Bytes      []int           // of each member's vector, one measurement each
	Iterations []int           // timed operations of each measurement: one number for all, or one each
	Transport  Transport
	Pace       Pace
	Rate       int64                    // bit/s of a member's link, which goodput is a share of; 0: unknown
	Seed       uint64                   // of the vectors' elements; the same at all members
	Stripes    int                      // stripes that vectors are cut over; 0 or 1: one tree
	Roots      int                      // among which the group is divided; 0 or 1: one tree
	Forming    func(number int) Forming // of Form: new in each operation
}

// Forming is one member's part in the forming of a communicator.
type Forming interface {
	Join(ctx context.Context) error
	Communicator(ctx context.Context) (*hostlib.Communicator, error)
	Close(ctx context.Context) error // leaves the communicator, and then the host
}

// DefaultConfig returns 20 iterations of a float32 sum of 1 MiB.
func DefaultConfig() Config {
	return Config{
		Collective: Allreduce, Function: reduce.Sum, Type: reduce.Float32, Bytes: []int{1 << 20}, Iterations: []int{20},
		Transport: Auto, Pace: Checked, Seed: 1,
	}
}

// ChunkBytes is what a packet carries of a vector: what the host library does
// unless configured otherwise.
const ChunkBytes = 1432

// Chunks returns the packets of a vector of so many bytes.
func Chunks(bytes int) int { return max(1, (bytes+ChunkBytes-1)/ChunkBytes) }

// maxIterations bounds one measurement: all its times are kept.
const maxIterations = 1 << 20

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case slices.Contains(ofPieces, c.Collective) && c.Type != reduce.Float32:
		return fmt.Errorf("%w: %s of %s; it is measured with %s", ErrConfig, c.Collective, c.Type, reduce.Float32)
	case !slices.Contains(collectives, c.Collective) && !slices.Contains(ofPieces, c.Collective):
		return fmt.Errorf("%w: function %q; there are %s", ErrConfig, c.Collective, list(append(slices.Clone(collectives), ofPieces...)))
	case !slices.Contains(transports, c.Transport):
		return fmt.Errorf("%w: transport %q; there are %s", ErrConfig, c.Transport, list(transports))
	case !slices.Contains(paces, c.Pace):
		return fmt.Errorf("%w: pace %q; there are %s", ErrConfig, c.Pace, list(paces))
	case c.Collective == Form && (c.Pace != Checked || len(c.Bytes) != 1):
		return fmt.Errorf("%w: %s at pace %s, %d sizes; it has one size, which does not matter, and pace %s", ErrConfig, Form, c.Pace, len(c.Bytes), Checked)
	case c.Function.Located() || !reduce.Defined(c.Function, c.Type):
		return fmt.Errorf("%w: reduction %s of %s", ErrConfig, c.Function, c.Type)
	case c.Type == reduce.Block32 && c.Collective != Allreduce && c.Collective != Reduce:
		return fmt.Errorf("%w: %s of %s, which is for reductions", ErrConfig, c.Collective, c.Type)
	case len(c.Bytes) == 0:
		return fmt.Errorf("%w: no size of vectors", ErrConfig)
	case len(c.Iterations) != 1 && len(c.Iterations) != len(c.Bytes):
		return fmt.Errorf("%w: %d sizes, %d numbers of iterations; there must be one number, or one a size", ErrConfig, len(c.Bytes), len(c.Iterations))
	case c.Stripes < hostlib.PerRail || c.Roots < 0:
		return fmt.Errorf("%w: %d stripes, %d roots", ErrConfig, c.Stripes, c.Roots)
	case c.Rate < 0:
		return fmt.Errorf("%w: a link of %d bit/s", ErrConfig, c.Rate)
	}
	for _, n := range c.Bytes {
		switch size := c.Type.Size(); {
		case n < 0 || n%size != 0:
			return fmt.Errorf("%w: vectors of %d bytes; a multiple of the %d of a %s is needed", ErrConfig, n, size, c.Type)
		case n/size > math.MaxUint32:
			return fmt.Errorf("%w: vectors of %d bytes; an operation has at most %d elements, which of %s are %d bytes", ErrConfig, n, math.MaxUint32, c.Type, size*math.MaxUint32)
		}
	}
	for _, n := range c.Iterations {
		if n < 1 || n > maxIterations {
			return fmt.Errorf("%w: %d iterations, want 1 to %d", ErrConfig, n, maxIterations)
		}
	}
	return nil
}

func list[T ~string](all []T) string {
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = string(x)
	}
	return strings.Join(names, ", ")
}

// GroupOptions returns the options of the communicator that c is measured with.
func (c Config) GroupOptions() (all []hostlib.GroupOption) {
	if c.Type == reduce.Block32 {
		all = append(all, hostlib.BlockFloat())
	}
	if c.Transport != Auto {
		all = append(all, hostlib.OnTree())
	}
	if c.Stripes > 1 || c.Stripes == hostlib.PerRail {
		all = append(all, hostlib.Stripes(c.Stripes))
	}
	if c.Roots > 1 {
		all = append(all, hostlib.Roots(c.Roots))
	}
	return all
}

// elements returns the type of the members' vectors.
func (c Config) elements() reduce.Type {
	if c.Type == reduce.Block32 {
		return reduce.Float32
	}
	return c.Type
}

// iterations returns how often size i is timed.
func (c Config) iterations(i int) int {
	if len(c.Iterations) == 1 {
		return c.Iterations[0]
	}
	return c.Iterations[i]
}

// fits reports whether operations that ran by transport w are what was asked for.
func (c Config) fits(w hostlib.Transport) bool {
	return c.Transport == Auto || c.Transport == Offload && w == hostlib.Offload || c.Transport == Host && w == hostlib.HostTree
}
