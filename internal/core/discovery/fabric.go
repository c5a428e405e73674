package discovery

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// Source is who says that a node or link is there.
type Source uint8

// The sources; both may say so.
const (
	Wire Source = 1 << iota
	File        // the operator's part
)

// String names the source.
func (s Source) String() string {
	return core.Name([]string{"nobody", "wire", "file", "file and wire"}, s, "unknown")
}

// Node is a switch or host of the map.
type Node struct {
	Name       string
	Kind       topology.Kind
	Capability topology.Capability // of a switch; zero: it only forwards
	Agent      string              // "host:port" of its gRPC; empty: none
	Up         bool
	Certified  bool // its name is that of a certificate
	From       Source
}

// End is one end of a link.
type End struct {
	Node string
	Port topology.Port
}

// String returns such as "leaf-0:3".
func (e End) String() string { return fmt.Sprintf("%s:%d", e.Node, e.Port) }

// place is for alarms about a port of which only the number is known.
func (e End) place() Place { return Place{e.Node, fmt.Sprintf("port %d", e.Port)} }

func (e End) compare(f End) int {
	return cmp.Or(cmp.Compare(e.Node, f.Node), cmp.Compare(e.Port, f.Port))
}

// Ends are those of a link, the lesser first.
type Ends [2]End

func endsOf(a, b End) Ends {
	if a.compare(b) > 0 {
		a, b = b, a
	}
	return Ends{a, b}
}

// String returns such as "h0:1--leaf-0:3".
func (e Ends) String() string { return e[0].String() + "--" + e[1].String() }

// Link is a cable of the map.
type Link struct {
	Ends
	topology.LinkSpec
	Interfaces [2]string     // their names; empty: not known
	Addresses  [2]netip.Addr // both or none
	Up         bool
	From       Source
}

// What is what has changed in the map.
type What uint8

// The changes. All but the last four make it another graph.
const (
	NodeAdded What = iota + 1
	NodeRemoved
	NodeChanged
	LinkAdded
	LinkRemoved
	LinkMoved // from Was to Link, which have an end in common
	LinkChanged
	NodeDown
	NodeUp
	LinkDown
	LinkUp
)

var whatNames = []string{
	"", "node added", "node removed", "node changed", "link added", "link removed", "link moved", "link changed",
	"node down", "node up", "link down", "link up",
}

// String names the change.
func (w What) String() string { return core.Name(whatNames, w, "unknown") }

// Structural reports whether the map is another graph after the change.
func (w What) Structural() bool { return w < NodeDown }

// Change is one change of the map, and what caused it.
type Change struct {
	What  What
	Node  Node // of a node's
	Link  Link // of a link's
	Was   Link // of a move
	Cause string
}

// String returns the change as a line of the history has it.
func (c Change) String() string {
	what := c.Node.Name
	switch {
	case c.What == LinkMoved:
		what = fmt.Sprintf("%v to %v", c.Was.Ends, c.Link.Ends)
	case c.Link != Link{}:
		what = c.Link.Ends.String()
	}
	return fmt.Sprintf("%v: %s (%s)", c.What, what, c.Cause)
}
