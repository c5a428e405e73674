package peering

import (
	"errors"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// ID identifies a connection. The driver numbers those that others have made, below
// Dialled and each once; the core numbers its own.
type ID uint64

// Dialled is set in the IDs of connections that this host has dialled.
const Dialled ID = 1 << 63

// Kind is what an Input reports.
type Kind uint8

// The kinds of inputs, and what they use beside ID.
const (
	Arrived  Kind = iota // another side has connected: Source
	Spoke                // its first bytes have come
	Verified             // its certificate is verified
	Greeted              // its greeting has come: Greeting, Address, Peer (whom the certificate names); or Err
	Answered             // a call has its answer: Answer, Address
	Ended                // the connection, or one path of several, is no more: Err
	Finished             // the other side will send nothing more on it
	Sampled              // the answer to Check: Sample
	Wanted               // something waits to be sent: Peer, Class
	Held                 // a service wants a connection to stay: Peer, Class
	Released             // the end of one Held: Peer, Class
	Learned              // who watches hosts says in which incarnation one is: Peer, Incarnation
	Pinned               // others have this host's incarnation by a service: it has to stay
	Closing              // this host is about to be closed
	Paired               // the rails of a connection's two hosts are known: Pairs, First. Again if they change
	Renew                // a connection, or one of its paths, will not be usable much longer, and a new one would be: Err
)

// Input is one input.
type Input struct {
	Kind        Kind
	Class       uint8
	Pairs       uint8 // of rails: bit i is set where there is a pair i. Who has dialled the connection counts them
	First       uint8 // the pair on which the connection's first path lies, or lay
	ID          ID
	Source      netip.Prefix
	Address     string // of the other side, for people
	Peer        string
	Incarnation uint64
	Greeting    greeting.Greeting
	Answer      greeting.Answer
	Sample      Sample
	Err         error
}

// Sample is what a driver knows of a connection.
type Sample struct {
	Heard time.Duration // since something has come
	Used  time.Duration // since a frame of a service's has come or gone
	Reads uint64        // rises whenever something has come
	Deaf  bool          // this host does not read it now
}

// Do is what an Action asks for.
type Do uint8

// What actions ask for, and what they use beside ID.
const (
	Dial      Do = iota // call: Peer, Class, Greeting
	Accept              // answer that the call is accepted, and use the connection: Peer, Class, Incarnation
	Refuse              // answer so and hang up: Code, Err
	Use                 // the call was accepted: use the connection: Peer, Class, Incarnation
	Close               // at once: Err. Nothing is asked of the connection any more
	Drain               // send nothing more on it, and say so: Err
	Ping                // the other side is to be heard
	Check               // give a Sample
	Fail                // what waits to be sent fails: Peer, Class, Err
	Restarted           // report that a host is in another incarnation: Peer, Before, Incarnation
	Forgot              // report that nothing is known of a host any more: Peer
	Raise               // this host is in a later incarnation from now on: Incarnation
	ClosePath           // one path of several, at once: Conn, Err. The connection stays
)

// Action is one output.
type Action struct {
	Do          Do
	Class       uint8
	Path        uint8 // of Dial, Accept, Use: ID is a path, on this pair of rails, counted from 1; 0: it is a connection
	Code        greeting.Code
	ID          ID
	Peer        string
	Conn        ID     // then: the connection of which ID is a path
	Incarnation uint64 // of Peer
	Before      uint64
	Greeting    greeting.Greeting
	Err         error
}

// Output is what a step brings about, in order. The caller owns and resets it.
type Output struct{ Actions []Action }

// Reset empties o and keeps its memory.
func (o *Output) Reset() {
	clear(o.Actions)
	o.Actions = o.Actions[:0]
}

// Why connections are refused, closed or not made. They are wrapped.
var (
	ErrMalformed  = greeting.ErrMalformed
	ErrIdentity   = errors.New("the certificate is another host's")
	ErrElsewhere  = errors.New("another host is wanted")
	ErrName       = errors.New("another process has this host's name")
	ErrClass      = errors.New("there is no such class of connections")
	ErrRefused    = errors.New("refused")
	ErrClosing    = errors.New("this host is being closed")
	ErrOutdated   = errors.New("a later incarnation is known")
	ErrRestarted  = errors.New("it has started again")
	ErrDuplicate  = errors.New("the other connection between the two is used")
	ErrSuperseded = errors.New("a newer connection is used")
	ErrBusy       = errors.New("busy")
	ErrEvicted    = errors.New("it was not authenticated while too many others were not either")
	ErrSlow       = errors.New("it took too long")
	ErrDead       = errors.New("nothing has come from it")
	ErrRenewed    = errors.New("it is replaced in time")
	ErrIdle       = errors.New("nobody uses it")
	ErrDone       = errors.New("both sides are done with it")
	ErrEnded      = errors.New("the other side has no such connection")
	ErrPath       = errors.New("there is no such path")
	ErrRemoved    = errors.New("the pair of rails is removed")
)

// Counters report what a core has counted, and what it holds now.
type Counters struct {
	Arrived   uint64 // connections that others have made
	Evicted   uint64 // for others, before they were authenticated
	Slow      uint64 // not authenticated in time
	Malformed uint64 // whose greeting could not be read
	Refused   uint64 // whose greeting was refused, duplicates aside
	Duplicate uint64
	Vanished  uint64 // ended before they were authenticated
	Accepted  uint64

	Dialled    uint64 // calls
	Failed     uint64 // that came to nothing, duplicates aside
	Superseded uint64 // connections
	Dead       uint64
	Idle       uint64
	Renewed    uint64 // replaced by newer ones, before their certificate or their keys were used up
	Displaced  uint64 // connections of the host with the most, by those of hosts with less
	Restarts   uint64 // of other hosts
	Joined     uint64 // paths that others have added to connections
	PathCalls  uint64 // of this host, for such paths
	PathsLost  uint64 // that have ended before their connections
	Contested  uint64 // names that a second process claimed while the first one lived

	Pending     int // connections that are not authenticated
	Connections int // that stand
	Paths       int // that were added to them, or are called
	Peers       int // hosts of which something is known
}
