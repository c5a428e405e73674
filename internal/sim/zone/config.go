package zone

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
)

// Stepper is a core that a node runs: a member.Core, or one around it.
type Stepper interface {
	Step(now core.Time, batch []member.Input, out *member.Output)
	Deadline() core.Time
}

// Cost is the time that a message takes its receiver.
type Cost struct {
	Message time.Duration // each frame or datagram
	Entry   time.Duration // and each entry in it
	Byte    time.Duration // and each 1,024 bytes of an attachment
	Beat    time.Duration // each heartbeat

	Birth time.Duration // checking a birth, beside everything else
	Check time.Duration // a signature
	Sign  time.Duration
}

// Config is what a world is made of.
type Config struct {
	Nodes     int
	Seed      uint64
	Settings  member.Settings
	Bootstrap int // how many of the first nodes everybody knows

	Delay  time.Duration // one way
	Jitter time.Duration // largest further delay of a packet or message
	Loss   float64       // probability for each packet, and each message of a stream
	Resend time.Duration // after which a lost message of a stream comes again, twice as long each time
	Cost   Cost
	Proofs bool // nodes prove what they say, by signatures that cost as much as real ones

	// Wrap puts another core around the member core of a node; nil: none.
	Wrap func(node int, c *member.Core, now core.Time) Stepper
	// Observe is called after every step of a node, with what it wants done.
	Observe func(node int, now core.Time, out *member.Output)
}

// DefaultConfig is a zone on a fast network, with the settings that the
// documentation's figures hold for: the round trip is 1 ms.
func DefaultConfig(nodes int, seed uint64) Config {
	return Config{
		Nodes: nodes, Seed: seed, Settings: member.DefaultSettings(), Bootstrap: min(16, nodes),
		Delay: 450 * time.Microsecond, Jitter: 50 * time.Microsecond,
		Resend: 200 * time.Millisecond, Cost: DefaultCost(),
	}
}

// DefaultCost is several times what opening and decoding takes on this project's
// machine (BenchmarkOpen of internal/core/member: 240 ns, and 51 ns an entry), for
// the system's share and for the cores' own work. A birth takes 220 us, a signature 65 us
// (BenchmarkBirth of membership), here twice that; births are checked by the goroutines of
// some connections, here by four processors.
func DefaultCost() Cost {
	return Cost{Message: 4 * time.Microsecond, Entry: 150 * time.Nanosecond, Byte: 16 * time.Microsecond, Beat: 2 * time.Microsecond, Birth: 100 * time.Microsecond, Check: 120 * time.Microsecond, Sign: 50 * time.Microsecond}
}

// of returns the cost of a message.
func (c *Cost) of(m *member.Message) time.Duration {
	return c.Message + time.Duration(entries(m))*c.Entry
}

func entries(m *member.Message) int { return len(m.Alives) + len(m.Leaves) + len(m.Suspicions) }

// pieces returns in how many datagrams a message travels.
func pieces(m *member.Message) int { return max(1, (entries(m)+entriesInDatagram-1)/entriesInDatagram) }

// entriesInDatagram is how many entries of IDs of this package's length fit.
const entriesInDatagram = 30
