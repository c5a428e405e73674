package neighbor

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/lldpdu"
)

// PortID is the driver's number of a port.
type PortID uint32

// Kind is that of an Input.
type Kind uint8

// The kinds of inputs.
const (
	Set     Kind = iota // a port is there: Up, MAC, Own
	Removed             // a port is there no longer
	Heard               // an LLDPDU has come: MAC of its sender, Data, At
	Sent                // a request has left: Nonce, At
	Close               // the machine's LLDP ends: no input follows
)

// Input is one input.
type Input struct {
	Kind  Kind
	Port  PortID
	Up    bool                // it can carry frames
	MAC   [6]byte             // of the port, or of the sender
	Own   lldpdu.Announcement // what the port announces; its TTL is the core's
	Data  []byte              // behind the Ethernet header; the core keeps none of it
	Nonce uint64
	At    core.Time // of the arrival or departure
}

// Output is what a step brings about. The caller owns and resets it.
type Output struct {
	Sends   []Send
	Changed bool // Neighbors or Delay would return something else than at the last time
}

// Reset empties o and keeps its memory.
func (o *Output) Reset() { *o = Output{Sends: o.Sends[:0]} }

// Send is an LLDPDU to send, with a Delay if that has a kind. After a request the driver
// gives the core Sent. Of a response it fills in Hold: the time since Received.
type Send struct {
	Port     PortID
	PDU      []byte // not to be changed
	Delay    lldpdu.Delay
	Received core.Time
}

// Neighbor is one that a port hears.
type Neighbor struct {
	ID   uint64 // no other neighbour of this core has or had it
	MAC  [6]byte
	Loop bool // it is this machine itself: the port's frames come back to it or to another one
	lldpdu.Announcement
}

// Counters are those of a port since it was set first.
type Counters struct {
	Announced uint64 // LLDPDUs sent, requests and responses included
	Heard     uint64 // LLDPDUs that came
	Malformed uint64 // of them discarded as a whole
	TLVs      uint64 // discarded alone
	Crowded   uint64 // LLDPDUs of further neighbours than there is room for
	Displaced uint64 // neighbours that were silent, for others
	Aged      uint64 // neighbours whose TTL has passed
	Looped    uint64 // LLDPDUs of this machine itself

	Requests    uint64
	Responses   uint64 // to others' requests
	Samples     uint64 // of the delay
	Unasked     uint64 // responses to no request under way
	Implausible uint64 // responses that were held for longer than the round trip
	Strangers   uint64 // requests of others than neighbours of Tributary, or of too many
}

// Add adds those of another port.
func (c *Counters) Add(o *Counters) {
	for i, f := range c.fields() {
		*f += *o.fields()[i]
	}
}

func (c *Counters) fields() []*uint64 {
	return []*uint64{
		&c.Announced, &c.Heard, &c.Malformed, &c.TLVs, &c.Crowded, &c.Displaced, &c.Aged, &c.Looped,
		&c.Requests, &c.Responses, &c.Samples, &c.Unasked, &c.Implausible, &c.Strangers,
	}
}

// Discards returns what was discarded, by reason.
func (c *Counters) Discards() map[string]uint64 {
	return map[string]uint64{
		"malformed": c.Malformed, "tlv": c.TLVs, "crowded": c.Crowded,
		"unasked-response": c.Unasked, "implausible-response": c.Implausible, "strange-request": c.Strangers,
	}
}

// Neighbors returns the neighbours of a port, the one known longest first.
func (c *Core) Neighbors(id PortID) []Neighbor {
	p := c.ports[id]
	if p == nil || len(p.neighbors) == 0 {
		return nil
	}
	all := make([]Neighbor, len(p.neighbors))
	for i, n := range p.neighbors {
		all[i] = n.Neighbor
	}
	return all
}

// Delay returns the delay of a port's link in one direction; 0: it is not known.
func (c *Core) Delay(id PortID) time.Duration {
	if p := c.ports[id]; p != nil {
		return p.delay.published
	}
	return 0
}

// Counters returns those of a port, and of all frames to ports that are not up.
func (c *Core) Counters(id PortID) (of Counters, notUp uint64) {
	if p := c.ports[id]; p != nil {
		of = p.counters
	}
	return of, c.notUp
}
