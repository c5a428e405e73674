package hierarchy

import (
	"slices"

	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// ContactsKey is the attribute in which a delegate passes on the nodes of the
// management zone that were reported to it. All nodes of its zone remember them: so
// the zone knows whom to ask also when its delegates are lost together, and those
// that it was configured with are long gone.
const ContactsKey = "tributary.contacts"

// contacts are the nodes of the management zone that a node knows of.
type contacts struct {
	known     []gossip.ID // as a delegate of the zone last heard; maxContacts at most
	own       []gossip.ID // as configured
	published []gossip.ID // by the node itself, which is a delegate
}

// maxContacts is how many other nodes of the management zone a delegate is sent
// of, and passes on.
const maxContacts = 8

// reported takes what a delegate was given. Who names nobody leaves what is known.
func (c *contacts) reported(ids []gossip.ID) {
	if len(ids) > 0 {
		c.known = ids[:min(len(ids), maxContacts)]
	}
}

// publish has the zone know what is known, if it is news. Where there is no room
// for it, others ask whom they know.
func (c *contacts) publish(zone Zone) {
	if !slices.Equal(c.known, c.published) && zone.Declare(ContactsKey, c.append(nil)) == nil {
		c.published = c.known
	}
}

// retract takes back what the node has published.
func (c *contacts) retract(zone Zone) {
	_ = zone.Retract(ContactsKey) // a tombstone is shorter than what it replaces: it fits
	c.published = nil
}

// learn takes what another delegate was given. What it takes back stays known.
func (c *contacts) learn(zone Zone, life attributes.Life) {
	if value, has := zone.Attribute(life, ContactsKey); has {
		c.reported(readContacts(value))
	}
}

// all returns whom to ask, the configured ones last.
func (c *contacts) all() []gossip.ID { return slices.Concat(c.known, c.own) }

// append appends what is known, each ID with its length before it.
func (c *contacts) append(b []byte) []byte {
	for _, id := range c.known {
		b = append(append(b, byte(len(id))), id...)
	}
	return b
}

// readContacts reads what append has written, as far as it is valid, maxContacts at
// most.
func readContacts(b []byte) (ids []gossip.ID) {
	for len(ids) < maxContacts && len(b) > 0 && len(b) > int(b[0]) {
		id := gossip.ID(b[1 : 1+int(b[0])])
		if id.Validate() != nil {
			break
		}
		ids = append(ids, id)
		b = b[1+len(id):]
	}
	return ids
}
