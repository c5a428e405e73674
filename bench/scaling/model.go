package scaling

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// ErrModel is wrapped by the errors of Model.Validate and Shape.Validate.
var ErrModel = errors.New("scaling: invalid model")

// Bytes that a packet takes on a link beside the payload of UDP.
const (
	Headers  = 14 + 20 + 8      // Ethernet, IPv4, UDP: what a token bucket counts
	Framing  = Headers + 4 + 20 // and checksum, preamble and gap: what a wire carries
	LeastFit = 64 + 20          // the shortest frame, with preamble and gap
)

// Network says what carries packets from a node to its neighbour.
type Network struct {
	Rate    int64         `json:"rate"` // bit/s of each link in each direction; 0: as fast as the processors
	Framing int           // bytes of each packet beside the payload of UDP
	Least   int           `json:"least"` // bytes that a packet takes at least
	Burst   int           `json:"burst"` // bytes that a token bucket sends at once; 0: it is a wire
	Cable   time.Duration `json:"cable"` // from end to end
	Card    time.Duration `json:"card"`  // of a host, each way: from the memory to the link or back

	// CutThrough: a switch begins with a packet when its first bytes have come. In
	// reductions, what it sends on ends no earlier than the last input has ended,
	// since all links have one rate. Otherwise it begins when the whole packet is there.
	CutThrough bool
}

// Pipeline is a switch that reduces in hardware, and keeps up with all its ports.
type Pipeline struct {
	Latency time.Duration // from the packet that completes a chunk, or its first bytes, to the first of what follows from it
	Forward time.Duration // likewise, of a packet between hosts that is only forwarded
}

// Processors say who computes, and when.
type Processors struct {
	// Shared is how many processors all hosts and switches have together. 0: one for
	// each of them.
	Shared int
	// Slice is how long one that has work keeps a processor that others want.
	Slice time.Duration
	// Poll is the longest time for which one looks for packets before it sleeps,
	// transport.DefaultPoll in the product.
	Poll time.Duration
}

// Model is hosts, switches and what joins them.
type Model struct {
	Costs      Costs // of hosts, and of switches without a pipeline
	Processors Processors
	Network    Network
	Pipeline   *Pipeline // of every switch; nil: it is a program
	Chunk      int       `json:"chunk"`  // bytes of a vector in a packet
	Window     int       `json:"window"` // most chunks in flight
	Batch      int       `json:"batch"`  // most packets of a batch; 1: there are none
}

// Limits of the product that the model has, too.
const (
	batchBytes  = 65_000 // of a batch, at most
	readBatches = 32     // that are taken at once, at most
	// offloadFlows is how many batches the receive offload of a card keeps open at once.
	offloadFlows = 64
	bulkAbove    = 44 // packets in flight, above which a host does not wait for the next result
	shortest     = 16 // part of Poll for which one looks at the least
)

// Namespaces returns the model of the lab: hosts and switches are processes on two processors,
// and links are veth pairs with a token bucket of bench/netlab, or none where rate is 0.
func Namespaces(c Costs, rate int64) Model {
	m := Model{
		Costs:      c,
		Processors: Processors{Shared: 2, Slice: 3 * time.Millisecond, Poll: 300 * time.Microsecond},
		Network:    Network{Rate: rate, Framing: Headers, Least: 60},
		Chunk:      1432, Window: 256, Batch: wire.BatchChunks,
	}
	if rate > 0 {
		m.Network.Burst = max(64<<10, int(float64(rate)/8*500e-6))
	}
	return m
}

// Hardware returns the model of a data centre: hosts with a processor each, and switches
// that reduce in a pipeline. What is stated and not measured: 400 ns in a switch whether it reduces or
// forwards, cables of 10 m, 125 ns in a card.
func Hardware(hosts Costs, rate int64, cutThrough bool, chunk int) Model {
	m := Model{
		Costs:      hosts,
		Processors: Processors{Slice: 3 * time.Millisecond, Poll: 300 * time.Microsecond},
		Network: Network{
			Rate: rate, Framing: Framing, Least: LeastFit, Cable: 50 * time.Nanosecond, Card: 125 * time.Nanosecond,
			CutThrough: cutThrough,
		},
		Pipeline: &Pipeline{Latency: 400 * time.Nanosecond, Forward: 400 * time.Nanosecond},
		Chunk:    chunk, Window: 1024, Batch: wire.BatchChunks,
	}
	return m
}

// Validate reports what is wrong with m.
func (m Model) Validate() error {
	n := m.Network
	switch {
	case m.Chunk < switchreduce.MinChunk || m.Chunk > switchreduce.MaxChunk || m.Chunk%4 != 0:
		return fmt.Errorf("%w: chunks of %d bytes", ErrModel, m.Chunk)
	case m.Window < 1 || m.Window > switchreduce.MaxWindow || m.Window&(m.Window-1) != 0:
		return fmt.Errorf("%w: a window of %d", ErrModel, m.Window)
	case m.Batch < 1:
		return fmt.Errorf("%w: batches of %d packets", ErrModel, m.Batch)
	case n.Rate < 0 || n.Framing < 0 || n.Least < 0 || n.Burst < 0 || n.Cable < 0 || n.Card < 0:
		return fmt.Errorf("%w: network %+v", ErrModel, n)
	case n.Burst > 0 && (n.Rate == 0 || n.Burst < m.frame(m.Chunk+wire.HeaderSize)):
		return fmt.Errorf("%w: a bucket of %d bytes at %d bit/s", ErrModel, n.Burst, n.Rate)
	case m.Processors.Shared < 0 || m.Processors.Slice <= 0 || m.Processors.Poll <= 0:
		return fmt.Errorf("%w: processors %+v", ErrModel, m.Processors)
	case m.Pipeline != nil && (m.Pipeline.Latency < 0 || m.Pipeline.Forward < 0):
		return fmt.Errorf("%w: pipeline %+v", ErrModel, *m.Pipeline)
	case n.CutThrough && m.Pipeline == nil:
		return fmt.Errorf("%w: programs get whole packets", ErrModel)
	}
	return m.Costs.Validate()
}

// isWire reports whether packets travel one by one, at a link's rate.
func (n *Network) isWire() bool { return n.Rate > 0 && n.Burst == 0 }

// frame returns what a link carries for a packet with so many bytes of UDP payload.
func (m *Model) frame(payload int) int { return max(payload+m.Network.Framing, m.Network.Least) }

// frames returns that of a batch with packets of a size, the last of which may be shorter.
func (m *Model) frames(bytes, size int) int {
	if bytes <= size || size == 0 {
		return m.frame(bytes)
	}
	whole, rest := bytes/size, bytes%size
	sum := whole * m.frame(size)
	if rest > 0 {
		sum += m.frame(rest)
	}
	return sum
}

// serial returns how long a link takes for so many bytes, in picoseconds.
func (n *Network) serial(bytes int) int64 {
	if n.Rate == 0 {
		return 0
	}
	return int64(float64(bytes) * 8e12 / float64(n.Rate))
}
