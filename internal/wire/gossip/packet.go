package gossip

// Bounds of packets, seals and headers included.
const (
	MaxFrame    = 64 << 10
	MaxDatagram = 1400

	headerSize = 2
)

// minRequest is the least size of a DiscoveryRequest, of which the address may be another's:
// a third of the DiscoveryReply and the Probe that answer it, which are MaxDatagram and 309 at
// most.
const minRequest = 600

// MaxReply is how long the record and the IDs of a DiscoveryReply may be together, so that it
// is a datagram whatever else it has.
const MaxReply = MaxDatagram - 340

// MaxBirth is the largest size of a birth record.
const MaxBirth = 8 << 10

// SignatureSize is the size of a signature by a life's key.
const SignatureSize = 64

// Entry is a node at a version.
type Entry struct {
	Key     Key
	ID      []byte // within the packet where it was decoded
	Version Version
	Proof   []byte // of the minor; empty, or SignatureSize bytes, as all proofs
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
	Exit  Exit
	Proof []byte
}

// Suspicion is a report that a node has failed at a version.
type Suspicion struct {
	Reporter Key
	Suspect  Reference
	Proof    []byte // by the reporter
}

// Birth is the record that proves a life.
type Birth struct {
	Key         Key
	Incarnation uint64
	Record      []byte
}

// Packet is a message. Each type has some of the fields; the others are zero.
type Packet struct {
	Type   Type
	From   Entry     // Hello, Welcome, Probe, Relay, DiscoveryRequest, DiscoveryReply
	Target Key       // Hello, Probe: who is meant
	Need   Need      // Hello, Welcome, Needs
	Tag    uint32    // Hello, Welcome
	Reason Reason    // Refuse
	About  Reference // Relay; Echo, Nack: the sender; Refuse, Probe, DiscoveryReply: the version alone
	Nonce  uint32    // Probe, Echo, Relay, Nack, DiscoveryRequest, DiscoveryReply
	Proof  []byte    // Echo: of the minor of About; Nack: by the sender
	Record []byte    // Hello, Welcome, DiscoveryReply: of the sender's birth; Refuse: of the receiver's later life
	Size   uint32    // DiscoveryReply: of the sender's view

	Boot    bool // DiscoveryRequest, DiscoveryReply
	Stealth bool // DiscoveryRequest
	Answer  bool // Base

	Leaves     []Departure // Update
	Alives     []Entry     // Base, Update; DiscoveryReply: another node of the receiver's name
	Suspicions []Suspicion // Base, Update
	Dead       []Reference // Dispute; Wants: lives
	Births     []Birth     // Births
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
