package rail

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// Config is what a node is given once; all of it has a default. Name, addresses,
// certificate and log are the host's.
type Config struct {
	// Eager is the size in bytes up to which a message is sent at once, whether a receive
	// awaits it or not; 64 KiB by default, at most 64 KiB.
	Eager int
	// Unexpected are the bytes of messages that each peer may have sent before a receive
	// awaits them: 4 MiB by default, 64 KiB to 1 GiB. Further messages stay with the sender
	// until a receive awaits them.
	Unexpected int
	// Announced is how many messages each peer may have announced before a receive awaits
	// them; further ones are announced as these are received. Of messages that are First
	// (TagSpace) there may be more. 4,096 by default, 16 to 1,048,576.
	Announced int
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{}.filled() }

func (c Config) filled() Config {
	c.Eager, c.Unexpected, c.Announced = cmp.Or(c.Eager, rail.EagerBytes), cmp.Or(c.Unexpected, 4<<20), cmp.Or(c.Announced, 4096)
	return c
}

// Validate reports what is wrong with c, fields that are zero having their defaults; the
// error is ErrConfig.
func (c Config) Validate() error {
	c = c.filled()
	switch {
	case c.Eager < 1 || c.Eager > rail.EagerBytes:
		return fmt.Errorf("%w: messages of up to %d bytes are sent at once, want 1 to %d", ErrConfig, c.Eager, rail.EagerBytes)
	case c.Unexpected < 64<<10 || c.Unexpected > 1<<30:
		return fmt.Errorf("%w: %d bytes that no receive awaits, want %d to %d", ErrConfig, c.Unexpected, 64<<10, 1<<30)
	case c.Announced < 16 || c.Announced > 1<<20:
		return fmt.Errorf("%w: %d messages that no receive awaits, want %d to %d", ErrConfig, c.Announced, 16, 1<<20)
	}
	return nil
}

// core returns the configuration of a peer's core.
func (n *Node) core(peer string) rail.Config {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return rail.Config{
		Eager: n.cfg.Eager, MaxUnexpected: n.cfg.Unexpected, MaxHeads: n.cfg.Announced,
		Seed: binary.BigEndian.Uint64(seed[:]), Regions: regionsFor{&n.memory, peer}, Accepts: n.accepts,
	}
}
