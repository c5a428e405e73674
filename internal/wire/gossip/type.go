package gossip

// Type is the type of a packet.
type Type uint8

// The types of frames. An Update may be a datagram, too.
const (
	Hello    Type = 1 + iota // the first of who has connected: who it is, whom it means, what it needs the link for
	Welcome                  // the answer: the link stands
	Refuse                   // the answer: it does not
	Base                     // a new neighbour's first: the view and the suspicions, or a piece of them
	Update                   // leaves, alives, suspicions since
	Needs                    // what the sender needs the link for now
	Watchers                 // who watches the sender
	Dispute                  // of what the receiver holds alive, this is dead for the sender
	Goodbye                  // the sender closes the link on purpose
	Wants                    // lives of which the receiver has spoken, and whose births are unknown to the sender
	Births                   // the answer
)

// The types of datagrams.
const (
	Heartbeat        Type = 16 + iota
	Probe                 // are you there?
	Echo                  // here, or there: the answer to a Probe or a Relay
	Relay                 // probe another for me
	Nack                  // it did not answer to me either
	DiscoveryRequest      // may I join?
	DiscoveryReply        // who is there
)

// The types that this package frames and seals alone.
const (
	Attributes Type = 32
	Hierarchy  Type = 48
)

var typeNames = map[Type]string{
	Hello: "hello", Welcome: "welcome", Refuse: "refuse", Base: "base", Update: "update",
	Needs: "needs", Watchers: "watchers", Dispute: "dispute", Heartbeat: "heartbeat", Probe: "probe", Echo: "echo",
	Relay: "relay", Nack: "nack", DiscoveryRequest: "discovery-request", DiscoveryReply: "discovery-reply",
	Goodbye: "goodbye", Wants: "wants", Births: "births", Attributes: "attributes", Hierarchy: "hierarchy",
}

// String returns the type's name.
func (t Type) String() string {
	if name, ok := typeNames[t]; ok {
		return name
	}
	return "unknown"
}

// Need is what a node needs a link for.
type Need uint8

// The needs.
const (
	Ring   Need = 1 << iota // the other is one of its successors
	Random                  // the other is one of its random neighbours

	allNeeds = Ring | Random
)

// Reason is why a link was refused.
type Reason uint8

// The reasons.
const (
	Full     Reason = 1 + iota // there are as many random neighbours as there may be
	Dead                       // the sender holds the other for dead at a version that is not older
	Crossed                    // both have dialled; the other dial stands
	Stranger                   // the other means somebody else, or the sender does not accept now

	lastReason = Stranger
)

var reasonNames = [...]string{"", "full", "dead", "crossed", "stranger"}

// String returns the reason's name.
func (r Reason) String() string {
	if r > lastReason {
		return "unknown"
	}
	return reasonNames[r]
}
