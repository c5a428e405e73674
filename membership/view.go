package membership

import (
	"fmt"
	"net/netip"
)

// Version reports two states of one node which is newer: the larger
// Incarnation, or the larger Minor of one Incarnation.
type Version struct {
	Incarnation uint64 `json:"incarnation"` // rises with every start of the node
	Minor       uint32 `json:"minor"`       // from 1, raised by the node alone, to contradict who holds it for dead
}

// String returns the version as "incarnation.minor".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Incarnation, v.Minor) }

// Member is a node as another one sees it.
type Member struct {
	Name    string         `json:"name"`
	Addr    netip.AddrPort `json:"address"` // for UDP and TCP
	Version Version        `json:"version"`
	// Deaths is how often this node has seen that one go from alive to dead. It is
	// not reported to others; one that has risen means a reboot or a false alarm.
	Deaths uint32 `json:"deaths"`
}

// key distinguishes nodes: one that starts again at another address is another
// one, and may be there before the first is gone.
func (m Member) key() string { return m.Name + "@" + m.Addr.String() }

// Kind is what a Notice reports.
type Kind uint8

// The kinds.
const (
	Joined Kind = iota + 1 // the node is in the view
	Left                   // it is not any more
)

var kindNames = [...]string{Joined: "joined", Left: "left"}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// MarshalText returns the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Cause is why a node left the view.
type Cause uint8

// The causes.
const (
	Failed   Cause = iota // enough others suspect it: it is dead, or cut off
	Departed              // it said so itself: Notice.Exit is what it said
	Replaced              // it has started again
)

var causeNames = [...]string{"failed", "departed", "replaced"}

// String returns the cause's name.
func (c Cause) String() string { return causeNames[c] }

// MarshalText returns the cause's name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Notice is one change of the view.
type Notice struct {
	Zone   uint32 `json:"zone"` // of the member
	Kind   Kind   `json:"kind"`
	Member Member `json:"member"` // as it is, or was last
	// Of Left.
	Cause Cause  `json:"cause"`
	Exit  *uint8 `json:"exit,omitempty"` // code that it gave when it departed; nil: none
}

// String reports the notice in a few words.
func (n Notice) String() string {
	s := fmt.Sprintf("%s %v", n.Member.Name, n.Kind)
	if n.Kind != Left {
		return s
	}
	if n.Exit != nil {
		return fmt.Sprintf("%s (%v, exit code %d)", s, n.Cause, *n.Exit)
	}
	return fmt.Sprintf("%s (%v)", s, n.Cause)
}
