package hierarchy

import "github.com/tributary-fabric/tributary/internal/wire/gossip"

// A Message is a *Hello, *Assign, *Change, *Beat or *Fetch. What was sent must
// not be changed any more.
type Message interface {
	// Append appends the message to b.
	Append(b []byte) []byte
	// Size returns how many bytes Append appends, at most.
	Size() int
}

// Hello is a delegate's first: who it is, and of which zone. The answer is an
// Assign.
type Hello struct {
	Zone        Zone
	From        gossip.ID
	Incarnation uint64
}

// Assign reports to a delegate who supervises its zone: it connects to all of them,
// and to nobody else. Contacts are further nodes of the management zone, to be
// asked when all supervisors are gone.
type Assign struct {
	Zone        Zone
	Supervisors []gossip.ID // 1 to MaxNodes
	Contacts    []gossip.ID // at most MaxNodes
}

// MaxNodes bounds the supervisors, and the contacts, of an Assign.
const MaxNodes = 32

// Member is a node that is in a view.
type Member struct {
	ID      gossip.ID
	Version gossip.Version
}

// Leave is a node that left a view.
type Leave struct {
	ID      gossip.ID
	Version gossip.Version
	Cause   uint8 // member.Cause
	Exit    gossip.Exit
}

// Change is what has changed in a zone's view, or a piece of the whole view: the
// pieces up to the Last one together are it.
type Change struct {
	Zone   Zone
	Base   bool // a piece of the whole view; there are no leaves
	Last   bool // of a Base: the last piece
	None   bool // the answer to a Fetch: the zone is not supervised here; there is nothing else
	Leaves []Leave
	Alives []Member
}

// Beat says that the sender is there, when it has nothing else to say.
type Beat struct{}

// Fetch asks for the whole view of a zone, and where it is to be followed for
// what changes in it from then on.
type Fetch struct {
	Zone   Zone
	Follow bool
}

// Size returns the most bytes that m takes.
func (m *Member) Size() int { return 2 + len(m.ID) + 10 + 5 }

// Size returns the most bytes that l takes.
func (l *Leave) Size() int { return 2 + len(l.ID) + 10 + 5 + 3 }
