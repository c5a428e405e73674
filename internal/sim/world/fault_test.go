package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/sim"
	"github.com/tributary-fabric/tributary/topology"
)

// FaultKind is the kind of a Fault.
type FaultKind uint8

// The faults, with what they are done to.
const (
	CrashSwitch    FaultKind = iota // a switch; it stays dead
	RestartSwitch                   // a switch; after a while it comes back empty
	CutEdge                         // an edge of the tree, for a while
	BadEdge                         // an edge of the tree that loses half of all packets, for a while
	BreakPair                       // the connection of two members
	CutPair                         // the connection of two members, for a while: what they say waits
	PauseHost                       // a member, for a while
	PauseSwitch                     // a switch, for a while
	CrashManager                    // the manager; it stays dead
	RestartManager                  // the manager; after a while it comes back, from its disk
	IsolateManager                  // all ways of the manager are cut, for a while
	BreakAgent                      // the connection of the manager with a switch
	BreakClient                     // the connection of the manager with a member
	DownLink                        // a link of the fabric is cut, and the manager is notified, for a while
	DrainSwitch                     // the manager is to keep off a switch, for a while
	CrashHost                       // a member; it stays dead
	DeafEdge                        // an edge of the tree that loses all that goes one way, for a while
	SlowEdge                        // an edge of the tree that delays all packets by a millisecond, for a while
)

var faultNames = [...]string{
	"crash switch", "restart switch", "cut edge", "bad edge", "break pair", "cut pair", "pause host", "pause switch",
	"crash manager", "restart manager", "isolate manager", "break agent", "break client",
	"down link", "drain switch", "crash host", "deaf edge", "slow edge",
}

// String returns the kind's name.
func (k FaultKind) String() string { return faultNames[k] }

// Fault is one thing that goes wrong.
type Fault struct {
	Kind  FaultKind
	Event uint64        // happens just before the event of this index
	Which int           // of the targets of its kind, modulo their number
	For   time.Duration // of what passes
}

// String reports the fault.
func (f Fault) String() string {
	return fmt.Sprintf("%v %d at event %d for %v", f.Kind, f.Which, f.Event, f.For)
}

// Targets are what faults are done to.
type Targets struct {
	Switches []sim.NodeID
	Hosts    []sim.NodeID
	Edges    [][2]sim.NodeID  // switch and child
	Pairs    [][2]sim.NodeID  // connections of hosts
	Fabric   *Fabric          // of the switches, and with a manager; nil: there is none
	Kill     func(sim.NodeID) // ends a member's host; nil: its node alone
	Renew    func() *Switch   // makes the next life of a switch without agent; nil: an empty Switch
}

// Plan is a list of faults, in no order.
type Plan []Fault

// Draw draws n faults of the given kinds, all kinds before CrashHost where there
// are none, within the first so many events. Durations are up to longest.
func Draw(r *rand.Rand, n int, events uint64, longest time.Duration, kinds ...FaultKind) Plan {
	if len(kinds) == 0 {
		for k := range CrashHost {
			kinds = append(kinds, k)
		}
	}
	plan := make(Plan, n)
	for i := range plan {
		plan[i] = Fault{
			Kind:  kinds[r.IntN(len(kinds))],
			Event: r.Uint64N(max(events, 1)),
			Which: r.IntN(1 << 20),
			For:   time.Duration(r.Int64N(int64(longest) + 1)),
		}
	}
	return plan
}

// Schedule has the faults happen in w. Those without a target are left out.
func (p Plan) Schedule(w *sim.World, t Targets) {
	for _, f := range p {
		if do := f.prepare(w, t); do != nil {
			w.AtEvent(f.Event, f.String(), do)
		}
	}
}

// prepare returns what the fault does; nil if there is nothing to do it to.
func (f Fault) prepare(w *sim.World, t Targets) func() {
	nodes, pairs := f.targets(t)
	switch {
	case f.Kind == DownLink && t.Fabric != nil:
		return func() { t.Fabric.downLink(topology.LinkID(f.Which%t.Fabric.Graph.Links()), f.For) }
	case f.Kind == DrainSwitch && t.Fabric != nil:
		return func() { t.Fabric.drain(f.Which%t.Fabric.Graph.Switches(), f.For) }
	case f.Kind == DownLink || f.Kind == DrainSwitch:
		return nil
	case len(nodes) > 0:
		which := f.Which % len(nodes)
		return f.toNode(w, t, which, nodes[which])
	case len(pairs) > 0:
		pair := pairs[f.Which%len(pairs)]
		return f.toPair(w, pair[0], pair[1])
	}
	return nil
}

func (f Fault) toNode(w *sim.World, t Targets, which int, id sim.NodeID) func() {
	switch f.Kind {
	case RestartSwitch:
		return func() {
			w.Crash(id)
			w.After(f.For, "restart switch", func() {
				switch {
				case t.Fabric != nil:
					t.Fabric.RestartSwitch(which)
				case t.Renew != nil:
					w.Restart(id, t.Renew())
				default:
					w.Restart(id, &Switch{})
				}
			})
		}
	case RestartManager:
		return func() {
			w.Crash(id)
			w.After(f.For, "restart manager", t.Fabric.RestartManager)
		}
	case IsolateManager:
		return func() {
			w.Partition([]sim.NodeID{id})
			w.After(f.For, "manager reached again", func() { w.Partition() })
		}
	case PauseHost, PauseSwitch:
		return func() { w.Pause(id, f.For) }
	case CrashHost:
		if t.Kill != nil {
			return func() { t.Kill(id) }
		}
		return func() { w.Crash(id) }
	default:
		return func() { w.Crash(id) }
	}
}

func (f Fault) toPair(w *sim.World, a, b sim.NodeID) func() {
	switch f.Kind {
	case CutEdge, CutPair:
		return func() {
			w.Cut(a, b)
			w.After(f.For, "repair", func() { w.Repair(a, b) })
		}
	case BadEdge:
		return func() {
			bad := w.DefaultLink()
			bad.Loss = 0.5
			spoil(w, a, b, f.For, bad, bad)
		}
	case DeafEdge:
		return func() {
			bad := w.DefaultLink()
			bad.Loss = 1
			if f.Which%2 == 0 {
				a, b = b, a
			}
			spoil(w, a, b, f.For, bad, w.DefaultLink())
		}
	case SlowEdge:
		return func() {
			bad := w.DefaultLink()
			bad.Delay += time.Millisecond
			spoil(w, a, b, f.For, bad, bad)
		}
	default:
		return func() { w.Break(a, b) }
	}
}

func (f Fault) targets(t Targets) (nodes []sim.NodeID, pairs [][2]sim.NodeID) {
	switch f.Kind {
	case CrashSwitch, RestartSwitch, PauseSwitch:
		return t.Switches, nil
	case PauseHost, CrashHost:
		return t.Hosts, nil
	case CutEdge, BadEdge, DeafEdge, SlowEdge:
		return nil, t.Edges
	case BreakPair, CutPair:
		return nil, t.Pairs
	default:
		if t.Fabric == nil {
			return nil, nil
		}
		return f.ofManager(t)
	}
}

func (f Fault) ofManager(t Targets) (nodes []sim.NodeID, pairs [][2]sim.NodeID) {
	m := t.Fabric.Manager
	switch f.Kind {
	case BreakAgent:
		return nil, pairsWith(m, t.Switches)
	case BreakClient:
		return nil, pairsWith(m, t.Hosts)
	default:
		return []sim.NodeID{m}, nil
	}
}

func pairsWith(m sim.NodeID, nodes []sim.NodeID) [][2]sim.NodeID {
	pairs := slices.Repeat([][2]sim.NodeID{{m, m}}, len(nodes))
	for i, id := range nodes {
		pairs[i][1] = id
	}
	return pairs
}

// spoil has the links between two nodes be others for a while.
func spoil(w *sim.World, a, b sim.NodeID, d time.Duration, there, back sim.Link) {
	w.SetLink(a, b, there)
	w.SetLink(b, a, back)
	w.After(d, "good again", func() {
		w.SetLink(a, b, w.DefaultLink())
		w.SetLink(b, a, w.DefaultLink())
	})
}
