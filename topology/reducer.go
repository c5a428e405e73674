package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/reduce"
)

// Pipeline is what reduces in a switch.
type Pipeline uint8

// The pipelines.
const (
	UnknownPipeline Pipeline = iota // of an agent that does not say
	Software                        // the agent's own process
	Kernel                          // the switch's operating system
	P4                              // a P4 target
	AgentCPU                        // the agent beside one of these two, for what that does not reduce
)

// Pipelines is how many there are.
const Pipelines = int(AgentCPU) + 1

var pipelineNames = [Pipelines]string{"unknown", "software", "kernel", "p4", "agent-cpu"}

// String returns the pipeline's name, such as "p4" or "agent-cpu".
func (p Pipeline) String() string {
	if int(p) < len(pipelineNames) {
		return pipelineNames[p]
	}
	return fmt.Sprintf("pipeline(%d)", uint8(p))
}

// Pairs are functions by the element type that they are of.
type Pairs [reduce.Block32 + 1]Functions

// AllPairs returns every function of every type.
func AllPairs() Pairs {
	var p Pairs
	for _, t := range AllTypes().List() {
		p[t] = AllFunctions()
	}
	return p
}

// Has reports whether f is there for values of type t.
func (p *Pairs) Has(f reduce.Function, t reduce.Type) bool { return int(t) < len(p) && p[t].Has(f) }

// String lists types that have the same functions together, such as "int32,int64:
// sum,min; float32: min".
func (p Pairs) String() string {
	if p == AllPairs() {
		return "all"
	}
	var parts []string
	for _, t := range AllTypes().List() {
		if p[t] == 0 || slices.Contains(p[:t], p[t]) {
			continue
		}
		var same Types
		for _, o := range AllTypes().List() {
			if p[o] == p[t] {
				same |= TypesOf(o)
			}
		}
		parts = append(parts, fmt.Sprintf("%v: %v", same, p[t]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

// Reducer is what reduces for one tree on a switch.
type Reducer struct {
	Pipeline Pipeline
	Own      Pairs // what the pipeline reduces by itself; its agent's CPU does the rest
}

// SoftwareReducer returns the reducer of a switch whose agent does all by itself.
func SoftwareReducer() Reducer { return Reducer{Software, AllPairs()} }

// Serves returns what serves operations of a function on elements of a type. For
// those that reduce nothing the function is reduce.NoFunction: copies and barriers
// are every pipeline's own.
func (r *Reducer) Serves(f reduce.Function, t reduce.Type) Pipeline {
	if r.Pipeline == Software || r.Pipeline == UnknownPipeline || f == reduce.NoFunction || r.Own.Has(f, t) {
		return r.Pipeline
	}
	return AgentCPU
}

// String says it in words.
func (r Reducer) String() string {
	if r.Pipeline == Software || r.Pipeline == UnknownPipeline {
		return r.Pipeline.String()
	}
	return fmt.Sprintf("%v (%v), the rest by its agent's CPU", r.Pipeline, r.Own)
}
