package udp

import (
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("udp: invalid configuration")

// Config is how a socket and its connections behave. Its zero value works.
type Config struct {
	Connection  rudp.Config
	Backlog     int // connections that wait for Accept, at most; 128
	Connections int // at most; 4,096. Calls beyond are not answered

	SocketBuffer int                                 // bytes asked of the kernel for each direction; 4 MiB
	Without      transport.Features                  // what the socket does without
	Wrap         func(transport.Conn) transport.Conn // the socket, to inject faults; nil: none
}

func (c Config) withDefaults() Config {
	c.Connection = c.Connection.WithDefaults()
	set(&c.Backlog, 128)
	set(&c.Connections, 4096)
	set(&c.SocketBuffer, 4<<20)
	return c
}

func set(field *int, value int) {
	if *field == 0 {
		*field = value
	}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if c.Backlog < 0 || c.Connections < 0 || c.SocketBuffer < 0 {
		return fmt.Errorf("%w: a negative number", ErrConfig)
	}
	if err := c.Connection.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}
