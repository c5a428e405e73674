package collector

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tributary-fabric/tributary/internal/core/discovery"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// Config says whom to subscribe to, and how. A Run with the same Config may follow.
type Config struct {
	Address string // "host:port"

	TLS       *tls.Config // nil: plaintext
	Certified bool        // the target's certificate is one of Tributary's, and has its name
	// Username and Password are sent with every call, as gNMI's specification of
	// authentication has it; they need TLS, or Plaintext.
	Username, Password string
	Plaintext          bool // a password may be sent without encryption

	// Prepare, before each connection, changes how the target is reached, such as by what its
	// name resolves to now; nil: nothing does.
	Prepare func(context.Context, *Config) error

	// Connected is called when the target has answered, with the name of its certificate;
	// Report when it has reported everything, and then after changes. Ended is called
	// when that is over, or could not begin. None of them is called while another is.
	Connected func(name string)
	Report    func(*openconfig.Device) // must not keep it
	Ended     func(err error)

	Retry  <-chan struct{} // ends a pause before the next attempt, the following ones are short again; nil: nothing does
	Limits Limits
	Counts *Counts      // nil: nobody counts
	Log    *slog.Logger // nil: none
}

// Limits are what a target is allowed; zero fields have the defaults.
type Limits struct {
	Answer    time.Duration // time to answer, and between messages until everything is reported for the first time
	Sync      time.Duration // for that in all
	Alive     time.Duration // how often the target is asked whether it answers
	Interval  time.Duration // between two reports
	Rate      int           // updates that are read in a second
	Mistakes  int           // malformed updates of one connection
	Message   int           // bytes
	Ports     int           // interfaces
	Neighbors int           // of an interface
	Entries   int           // addresses of an interface; capabilities and addresses of a neighbour
	MinRetry  time.Duration // pause after a failure, which doubles
	MaxRetry  time.Duration // up to this
}

// The values of a Limits' zero fields.
const (
	DefaultAnswer    = 5 * time.Second
	DefaultSync      = time.Minute
	DefaultAlive     = 10 * time.Second
	DefaultInterval  = 20 * time.Millisecond
	DefaultRate      = 20_000
	DefaultMistakes  = 100
	DefaultMessage   = 8 << 20
	DefaultPorts     = discovery.DefaultMaxPorts + Spare
	DefaultNeighbors = discovery.DefaultMaxNeighbors + Spare
	DefaultEntries   = 32
	DefaultMinRetry  = 100 * time.Millisecond
	DefaultMaxRetry  = 30 * time.Second
)

// Spare is how many interfaces and neighbours more than discovery takes are read: loopbacks
// do not count there, and it says what it leaves out.
const Spare = 8

func (l Limits) filled() Limits {
	for _, d := range []struct {
		to   *time.Duration
		fill time.Duration
	}{{&l.Answer, DefaultAnswer}, {&l.Sync, DefaultSync}, {&l.Alive, DefaultAlive}, {&l.Interval, DefaultInterval}, {&l.MinRetry, DefaultMinRetry}, {&l.MaxRetry, DefaultMaxRetry}} {
		if *d.to == 0 {
			*d.to = d.fill
		}
	}
	for _, n := range []struct {
		to   *int
		fill int
	}{{&l.Rate, DefaultRate}, {&l.Mistakes, DefaultMistakes}, {&l.Message, DefaultMessage}, {&l.Ports, DefaultPorts}, {&l.Neighbors, DefaultNeighbors}, {&l.Entries, DefaultEntries}} {
		if *n.to == 0 {
			*n.to = n.fill
		}
	}
	return l
}

// Counts are what collectors have counted, several together.
type Counts struct {
	Updates   atomic.Uint64 // leaves that were applied
	Ignored   atomic.Uint64 // that nobody asked for, or that are not known
	Malformed atomic.Uint64
	Beyond    atomic.Uint64 // that are beyond the limits, and were dropped
	Throttled atomic.Uint64 // times that reading stood back for Limits.Rate
	Failures  atomic.Uint64 // connections that failed or ended
}

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("gnmi collector: invalid configuration")

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Address == "":
		return fmt.Errorf("%w: no address", ErrConfig)
	case c.Connected == nil || c.Report == nil || c.Ended == nil:
		return fmt.Errorf("%w: Connected, Report or Ended is missing", ErrConfig)
	case c.Certified && c.TLS == nil:
		return fmt.Errorf("%w: certified, and no TLS", ErrConfig)
	case c.Password != "" && c.TLS == nil && !c.Plaintext:
		return fmt.Errorf("%w: the password of %s would be sent without encryption; give a TLS authority, or allow plaintext", ErrConfig, c.Address)
	}
	return nil
}

func (c *Config) prepare(ctx context.Context) error {
	if c.Prepare == nil {
		return nil
	}
	if err := c.Prepare(ctx, c); err != nil {
		return err
	}
	return c.Validate()
}

func (s *stream) dial() (*grpc.ClientConn, error) {
	c := s.cfg
	transport := insecure.NewCredentials()
	if c.TLS != nil {
		transport = handshake{credentials.NewTLS(c.TLS), &s.isPlain}
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.Limits.Message)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: c.Limits.MaxRetry, Multiplier: 1, MaxDelay: c.Limits.MaxRetry}, MinConnectTimeout: c.Limits.Answer,
		}),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(s.reach),
	}
	if c.Username != "" {
		options = append(options, grpc.WithPerRPCCredentials(login{c.Username, c.Password}))
	}
	return grpc.NewClient("passthrough:///"+c.Address, options...)
}

// login is what gNMI's specification of authentication has in the metadata of each call.
type login struct{ username, password string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (l login) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"username": l.username, "password": l.password}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: Config.Validate does.
func (login) RequireTransportSecurity() bool { return false }
