package member

import "github.com/tributary-fabric/tributary/internal/wire/gossip"

// Version is gossip.Version.
type Version = gossip.Version

// Entry is a node at a version.
type Entry struct {
	Node    Index
	Version Version
	Proof   *Signature // of a minor above 1
}

// Departure is a node that left at a version.
type Departure struct {
	Node    Index
	Version Version
	Exit    gossip.Exit
	Proof   *Signature
}

// Suspicion is a report that a node has failed at a version. The reporter need
// not be known.
type Suspicion struct {
	Reporter gossip.Key
	Suspect  Index
	Version  Version
	Proof    *Signature // by the reporter
}

// Birth is the record that proves a life.
type Birth struct {
	Node        Index
	Incarnation uint64
	Record      []byte
}

// Message is a message between two cores, as Index stands for IDs in the
// directory of both. It is not changed any more once it is in an Output. A
// driver turns it into packets and back by a Codec.
type Message struct {
	Type gossip.Type
	From Entry // the sender; of an Echo: who is there. Not in Base, Update, Needs, Watchers, Dispute on a link

	Target  gossip.Key    // Hello, Probe: who is meant
	Need    gossip.Need   // Hello, Welcome, Needs
	Tag     uint32        // Hello, Welcome: what heartbeats to the sender carry
	Reason  gossip.Reason // Refuse
	Nonce   uint32        // Probe, Echo, Relay, Nack
	About   Entry         // Relay: who is to be probed; Probe: Version is the one at which the receiver is held for dead; Refuse, DiscoveryReply: likewise
	Proof   *Signature    // Nack
	Birth   []byte        // Hello, Welcome, DiscoveryReply: of the sender; Refuse: of the receiver's other life
	Size    int           // DiscoveryReply: of the sender's view
	Boot    bool          // DiscoveryRequest, DiscoveryReply: the target was known from the bootstrap set alone
	Stealth bool          // DiscoveryRequest: the sender is not to be reported
	Answer  bool          // Base: the receiver\'s view is asked for

	Leaves     []Departure // Update
	Alives     []Entry     // Base, Update; DiscoveryReply: another of the receiver's name; Dispute: who is dead, and at which version; Wants: whose births
	Births     []Birth     // Births
	Suspicions []Suspicion // Base, Update
	Watchers   []Index     // Watchers: Settings.Ks + Kr at most that watch, then their deputies
}
