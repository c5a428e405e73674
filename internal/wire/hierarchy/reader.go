package hierarchy

import (
	"math"

	"github.com/tributary-fabric/tributary/internal/wire/cursor"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// leastID is the least bytes of an ID in a message.
const leastID = 1 + len("a@[::]:1")

// reader reads the fields that messages share.
type reader struct{ cursor.Cursor }

func (c *reader) zone() Zone { return Zone(c.UpTo(math.MaxUint32)) }

func (c *reader) version() gossip.Version {
	return gossip.Version{Incarnation: c.Varint(), Minor: uint32(c.UpTo(math.MaxUint32))}
}

func (c *reader) id() gossip.ID {
	id := gossip.ID(c.Take(int(c.Byte())))
	c.Bad = c.Bad || id.Validate() != nil
	return id
}

func (c *reader) ids(least int) []gossip.ID {
	n := c.Count(leastID)
	if n < least || n > MaxNodes {
		c.Bad = true
		return nil
	}
	ids := make([]gossip.ID, n)
	for i := range ids {
		ids[i] = c.id()
	}
	return ids
}

func (c *reader) exit() gossip.Exit {
	if c.Flags(1) == 0 {
		return gossip.Exit{}
	}
	return gossip.Exit{Given: true, Code: c.Byte()}
}
