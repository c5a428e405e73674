package agentd

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/transport"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("agentd: invalid configuration")

// DefaultReceiveBuffer is the receive buffer asked for each tree's socket, in
// bytes. It is memory only while packets wait in it.
const DefaultReceiveBuffer = 4 << 20

// Config is what an agent is and where it can be reached.
type Config struct {
	Switch     string              // name of the switch in the topology
	Capability topology.Capability // what it can do

	Listen string      // "host:port" of the gRPC server; port 0 takes a free one
	TLS    *tls.Config // of the gRPC server; nil: no encryption

	Data          netip.Addr    // address of the trees' sockets, which take free ports
	ReceiveBuffer int           // of each of them, in bytes; 0: DefaultReceiveBuffer
	PrepareLease  time.Duration // life of a reservation that is never committed; 0: the core's default

	// Faults are for trials: what the trees' sockets do to the packets that
	// they send. Each socket has a seed of its own, derived from Faults.Seed.
	Faults transport.Faults

	Log *slog.Logger // nil: none
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Switch == "":
		return fmt.Errorf("%w: no switch name", ErrConfig)
	case c.Listen == "":
		return fmt.Errorf("%w: switch %s: no address to listen on", ErrConfig, c.Switch)
	case !c.Data.IsValid() || c.Data.IsUnspecified() || c.Data.IsMulticast():
		return fmt.Errorf("%w: switch %s: data address %q is none that packets can be sent to", ErrConfig, c.Switch, c.Data)
	case c.ReceiveBuffer < 0 || c.PrepareLease < 0:
		return fmt.Errorf("%w: switch %s: receive buffer of %d bytes, prepare lease of %v", ErrConfig, c.Switch, c.ReceiveBuffer, c.PrepareLease)
	}
	for _, err := range []error{c.Capability.Validate(), c.Faults.Validate()} {
		if err != nil {
			return fmt.Errorf("%w: switch %s: %w", ErrConfig, c.Switch, err)
		}
	}
	return nil
}
