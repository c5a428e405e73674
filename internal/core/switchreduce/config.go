package switchreduce

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// Bounds of a configuration.
const (
	MaxWindow   = 4096    // largest window, in chunks
	MinChunk    = 16      // least payload of a packet that a tree must carry: one element of any kind, in bytes
	MaxChunk    = 1 << 15 // largest payload of a packet, in bytes
	MaxChildren = 1 << 16 // as many as a header can number
	MaxEpochs   = 4       // epochs that one core holds at once
)

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("aggregate: invalid configuration")

// Child is a host or switch that contributes to this one.
type Child struct {
	Addr   netip.AddrPort // where it sends from, and gets its results
	Lowest uint32         // lowest rank beneath it, its own if it is a host
	Cookie wire.Cookie    // the secret of the two, 48 bits, in packets of both directions
	Key    wire.Secret    // of the two, where packets are protected; the driver's
}

// Config is one epoch of a group's tree, as one switch on it needs to know it.
type Config struct {
	Group uint32 // the same in all epochs of a core
	Epoch uint32 // not 0; above that of every earlier Config of the core

	Window     uint32 // W in chunks, a power of two up to MaxWindow
	ChunkBytes int    // largest payload of a packet, in bytes, MinChunk to MaxChunk

	Children []Child        // in rising order of Lowest; a child's index is its place here
	Parent   netip.AddrPort // zero value: this switch is the root
	Index    uint16         // this switch's own child index at its parent
	Cookie   wire.Cookie    // the secret of this switch and its parent, as a Child's; 0 at the root
	Key      wire.Secret    // likewise

	Protection wire.Protection // of packets on all edges; the core sees plain ones

	FastPath FastPath // what reduces beside the core, if not nil; the driver's

	Probes int           // unanswered probes to the parent after which children are answered Lost; 0: never
	Lease  time.Duration // after which an epoch without any packet is dropped; 0: never
}

// Format implements fmt.Formatter: verbs that fit no field, of who has a pointer to c, show no secret either.
func (c Config) Format(f fmt.State, verb rune) {
	type plain Config // without this method
	_, _ = fmt.Fprintf(f, fmt.FormatString(f, verb), plain(c))
}

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	switch {
	case c.Epoch == 0:
		return fmt.Errorf("%w: epoch 0", ErrConfig)
	case c.Cookie&^wire.CookieMask != 0:
		return fmt.Errorf("%w: cookie of more than 48 bits", ErrConfig)
	case bits.OnesCount32(c.Window) != 1 || c.Window > MaxWindow:
		return fmt.Errorf("%w: window %d, want a power of two up to %d", ErrConfig, c.Window, MaxWindow)
	case c.ChunkBytes < MinChunk || c.ChunkBytes > MaxChunk:
		return fmt.Errorf("%w: chunk of %d bytes, want %d to %d", ErrConfig, c.ChunkBytes, MinChunk, MaxChunk)
	case c.Probes < 0 || c.Probes > math.MaxInt32:
		return fmt.Errorf("%w: %d probes, want 0 to %d", ErrConfig, c.Probes, math.MaxInt32)
	case !c.Protection.Valid():
		return fmt.Errorf("%w: %v", ErrConfig, c.Protection)
	case c.Lease < 0:
		return fmt.Errorf("%w: lease of %v is negative", ErrConfig, c.Lease)
	case len(c.Children) == 0 || len(c.Children) > MaxChildren:
		return fmt.Errorf("%w: %d children, want 1 to %d", ErrConfig, len(c.Children), MaxChildren)
	}
	for i := range c.Children {
		if err := c.validateChild(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) validateChild(i int) error {
	child := c.Children[i]
	switch {
	case !child.Addr.IsValid():
		return fmt.Errorf("%w: child %d has no address", ErrConfig, i)
	case child.Addr == c.Parent:
		return fmt.Errorf("%w: child %d has the parent's address %v", ErrConfig, i, child.Addr)
	case child.Cookie&^wire.CookieMask != 0:
		return fmt.Errorf("%w: child %d has a cookie of more than 48 bits", ErrConfig, i)
	case child.Lowest > wire.MaxRank:
		return fmt.Errorf("%w: child %d has lowest rank %d, largest is %d", ErrConfig, i, child.Lowest, wire.MaxRank)
	case i > 0 && child.Lowest <= c.Children[i-1].Lowest:
		return fmt.Errorf("%w: child %d has lowest rank %d after %d", ErrConfig, i, child.Lowest, c.Children[i-1].Lowest)
	}
	return nil
}

func (c *Config) root() bool { return !c.Parent.IsValid() }
