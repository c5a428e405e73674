package gossip

// Bounds of packets, seals and headers included.
const (
	MaxFrame    = 64 << 10
	MaxDatagram = 1400

	headerSize = 2
)

// Entry is a node at a version.
type Entry struct {
	Key     Key
	ID      []byte // within the packet where it was decoded
	Version Version
}

// Valid reports whether the key is that of the ID, and the ID is valid.
func (e *Entry) Valid() bool {
	id := ID(e.ID)
	return id.Validate() == nil && id.Key() == e.Key
}

// Reference is a known node at a version.
type Reference struct {
	Key     Key
	Version Version
}

// Departure is a node that left at a version.
type Departure struct {
	Reference
	Exit Exit
}

// Suspicion is a report that a node has failed at a version.
type Suspicion struct {
	Reporter Key
	Suspect  Reference
}

// Packet is a message. Each type has some of the fields; the others are zero.
type Packet struct {
	Type   Type
	From   Entry     // Hello, Welcome, Probe, Relay, DiscoveryRequest, DiscoveryReply
	Target Key       // Hello, Probe: who is meant
	Need   Need      // Hello, Welcome, Needs
	Tag    uint32    // Hello, Welcome
	Reason Reason    // Refuse
	About  Reference // Relay; Echo, Nack: the sender; Refuse and Probe: the version alone
	Nonce  uint32    // Probe, Echo, Relay, Nack, DiscoveryRequest, DiscoveryReply

	Boot    bool // DiscoveryRequest, DiscoveryReply
	Stealth bool // DiscoveryRequest
	Answer  bool // Base

	Leaves     []Departure // Update, DiscoveryReply
	Alives     []Entry     // Base, Update, DiscoveryReply
	Suspicions []Suspicion // Base, Update
	Dead       []Reference // Dispute
	Watchers   []Key       // Watchers
	Body       []byte      // Attributes, Hierarchy
}

// Pulse is a heartbeat.
type Pulse struct {
	Tag      uint32
	Sequence uint32
	Turns    uint8  // heartbeats of the sender until the receiver's next turn
	View     uint16 // of the digest of what the sender knows, the 16 bits from bit 16 * (Sequence mod 4)
}

// field is what the body of a type consists of, in this order.
type field uint8

const (
	hasFrom field = iota
	hasTarget
	hasNeed
	hasTag
	hasReason
	hasAbout
	hasAboutVersion
	hasNonce
	hasFlags
	hasLeaves
	hasAlives
	hasSuspicions
	hasDead
	hasWatchers
	hasBody
)

// layouts are the bodies of all types but Heartbeat.
var layouts = [...][]field{
	Hello:            {hasFrom, hasTarget, hasNeed, hasTag},
	Welcome:          {hasFrom, hasNeed, hasTag},
	Refuse:           {hasReason, hasAboutVersion},
	Base:             {hasFlags, hasAlives, hasSuspicions},
	Update:           {hasLeaves, hasAlives, hasSuspicions},
	Needs:            {hasNeed},
	Watchers:         {hasWatchers},
	Dispute:          {hasDead},
	Goodbye:          {},
	Probe:            {hasFrom, hasTarget, hasAboutVersion, hasNonce},
	Echo:             {hasAbout, hasNonce},
	Relay:            {hasFrom, hasAbout, hasNonce},
	Nack:             {hasAbout, hasNonce},
	DiscoveryRequest: {hasFrom, hasNonce, hasFlags},
	DiscoveryReply:   {hasFrom, hasNonce, hasFlags, hasLeaves, hasAlives},
	Attributes:       {hasBody},
	Hierarchy:        {hasBody},
}

// layout returns the layout of a type, false if it has none.
func layout(t Type) ([]field, bool) {
	if int(t) >= len(layouts) || layouts[t] == nil {
		return nil, false
	}
	return layouts[t], true
}

// flags.
const (
	flagBoot    = 1 << 0
	flagStealth = 1 << 1
	flagAnswer  = 1 << 2
)

// flagsOf are the flags that a type may have.
var flagsOf = map[Type]byte{Base: flagAnswer, DiscoveryRequest: flagBoot | flagStealth, DiscoveryReply: flagBoot}

// Datagram reports whether a type travels as a datagram. An Update does both.
func (t Type) Datagram() bool { return t >= Heartbeat && t < Attributes }
