package discovery

import (
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// Kind is what an Input is.
type Kind uint8

// The inputs.
const (
	Connected Kind = iota + 1 // Target has answered; Name is that of its certificate, empty without one
	Reported                  // Target says Facts, which replace those of before
	Lost                      // the connection to Target has ended, for Why; it is being dialled again
	Failed                    // Target could not be reached, for Why; it is being dialled again
	Operator                  // the operator's part is Graph from now on; nil: there is none
)

var kindNames = []string{"", "connected", "reported", "lost", "failed", "operator"}

// String returns the kind's name.
func (k Kind) String() string { return core.Name(kindNames, k, "unknown") }

// Input is one event. Who posts it does not change what it refers to afterwards.
type Input struct {
	Kind   Kind
	Target string
	Name   string
	Facts  *Facts
	Why    string
	Graph  *topology.Graph
}

// Output is what a step of the core wants and reports.
type Output struct {
	Dial    []string // targets to connect to, and to keep connected
	Retry   []string // those that are being dialled, and are to be dialled at once
	Drop    []string // those to disconnect from
	Alarms  []AlarmChange
	Changes []Change // of the map
}

// Reset empties o.
func (o *Output) Reset() {
	*o = Output{Dial: o.Dial[:0], Retry: o.Retry[:0], Drop: o.Drop[:0], Alarms: o.Alarms[:0], Changes: o.Changes[:0]}
}
