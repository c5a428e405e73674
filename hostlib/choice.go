package hostlib

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/pathsel"
)

// choice is why an operation runs as it does.
type choice uint8

const (
	asked        choice = iota // by the group's options, or nothing else can do it
	byCosts                    // it is the fastest way
	bySwitches                 // switches can reduce it, and what they take is not known
	sparingHosts               // switches spare members messages or bytes, and what they take is not known
	choices
)

var choiceNames = [choices]string{
	byCosts:      "the fastest way by the cost model",
	bySwitches:   "switches are taken until costs are measured on this fabric (collbench costs)",
	sparingHosts: "switches spare the members messages or bytes, and are taken until costs are measured on this fabric (collbench costs)",
}

// String returns the reason in words; of asked none.
func (c choice) String() string { return choiceNames[c] }

// reasons are Outcome.Reason of operations by algorithms of hosts.
var reasons = func() (r [choices][schedule.Algorithms]string) {
	for c := range choices {
		for a := range schedule.Algorithms {
			if r[c][a] = "by an algorithm of hosts: " + a.String(); c != asked {
				r[c][a] += ", " + c.String()
			}
		}
	}
	return r
}()

// spoken is the reason of operations over the tree that were chosen for one reason, as text. It is
// made once for many of them.
type spoken struct{ why, text string }

// say returns the reason of an operation over the tree: of the choice, and of the tree.
func (s *spoken) say(c choice, why string) string {
	if c == asked {
		return why
	}
	if s.why != why || s.text == "" {
		s.why, s.text = why, c.String()+"; "+why
	}
	return s.text
}

// kind returns what the tree is taken to be.
func (t *policy) kind() pathsel.Kind {
	if t.switches {
		return pathsel.BySwitches
	}
	return pathsel.ByHostTree
}

// isGuess reports that nothing is known of what the tree's switches take.
func (t *policy) isGuess(f pathsel.Family) bool {
	return t.switches && (!t.measured || !t.costs.Knows(f, pathsel.BySwitches))
}

// beats reports whether the tree is known to take no more time for work than the best algorithm of
// hosts.
func (t *policy) beats(least time.Duration, f pathsel.Family, work pathsel.Work) bool {
	return t.costs.Knows(f, t.kind()) && t.costs.Time(f, t.kind(), &work) <= least
}
