package neighbor

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// ErrConfig is wrapped by the errors of an unusable Config.
var ErrConfig = errors.New("invalid settings of LLDP")

// Bounds of what a port keeps and does.
const (
	MostNeighbors = 16               // of a port
	StaleAfter    = 60 * time.Second // a neighbour that is silent for so long may be displaced

	maxCredit     = 5           // announcements out of turn, by the standard
	fastCount     = 4           // announcements after a new neighbour
	fastInterval  = time.Second // between them, at most
	notifyPause   = 20 * time.Millisecond
	window        = 16 // round trips of which the least counts
	firstRequests = 8  // are sent in firstInterval
	firstInterval = 20 * time.Millisecond
	mostResponses = 64 // in an interval of a port
)

// DefaultInterval is the time between two announcements of a port.
const DefaultInterval = 500 * time.Millisecond

// Config is what a core is given once.
type Config struct {
	Interval time.Duration // between two announcements of a port, up to an hour; 0: DefaultInterval
	Seed     uint64        // of the nonces of requests: a random number
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.Interval < 0 || c.Interval > 0 && c.Interval < 10*time.Millisecond || c.Interval > time.Hour {
		return fmt.Errorf("%w: interval %v, want 10 ms to 1 h", ErrConfig, c.Interval)
	}
	return nil
}

// TTL returns the seconds that an announcement is valid: four intervals and a second, as
// the standard has it.
func (c Config) TTL() uint16 {
	return uint16(math.Ceil((4*c.interval() + time.Second).Seconds()))
}

func (c Config) interval() time.Duration { return cmp.Or(c.Interval, DefaultInterval) }

// New returns the core of a machine without ports.
func New(c Config) (*Core, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Core{interval: c.interval(), ttl: c.TTL(), chance: core.Chance(c.Seed), ports: map[PortID]*port{}}, nil
}
