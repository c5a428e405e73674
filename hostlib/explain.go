package hostlib

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/reduce"
)

// Question is an operation that Communicator.Explain is asked about.
type Question struct {
	Collective string // "allreduce", "reduce-scatter", "alltoallv", ...: as in Call; a wrong one's error lists them
	// Elements of a vector: in Gather, Scatter, Allgather, Alltoall and ReduceScatter of one member's
	// part.
	Elements int
	Type     reduce.Type // not of a barrier
	Width    int         // bytes of an element that Type does not name: 1 or 2, of collectives of Data
	Operator Operator    // of those that reduce
	Root     int         // of those with a root
}

// Way is a way of doing an operation.
type Way struct {
	Transport Transport
	Algorithm Algorithm     // of Hosts
	Predicted time.Duration // by the cost model
	Excluded  string        // why it is not taken, whatever it costs; empty: it may be
}

// String returns the way's name, "ring" for example.
func (w Way) String() string {
	if w.Transport == Hosts {
		return w.Algorithm.String()
	}
	return w.Transport.String()
}

// Explanation is how a communicator does an operation, and why.
type Explanation struct {
	Chosen  Way
	Reason  string        // in words
	Ways    []Way         // all, the fastest first
	Links   pathsel.Links // by which times are predicted
	Waiting *Wait         // the oldest operation of this member that has not ended, and for whom it waits; nil: there is none
}

// String returns the explanation as lines of text.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Chosen, e.Reason)
	if e.Links.Rate > 0 {
		fmt.Fprintf(&b, "  with links of %v\n", e.Links)
	}
	for _, w := range e.Ways {
		fmt.Fprintf(&b, "  %-20s %10v", w, w.Predicted.Round(100*time.Nanosecond))
		if w.Excluded != "" {
			fmt.Fprintf(&b, "  excluded: %s", w.Excluded)
		}
		b.WriteByte('\n')
	}
	if w := e.Waiting; w != nil {
		fmt.Fprintf(&b, "waiting for %v in %s, operation %d", w.For.Round(time.Millisecond), w.Collective, w.Operation)
		if len(w.Late) > 0 {
			fmt.Fprintf(&b, ": ranks %v have not called it", w.Late)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Explain returns how an operation would run that this member called now: each way with the time
// that the cost model predicts, the one that is taken, and why. Pieces of collectives in v count as
// equal. It starts nothing. The error wraps ErrArgument.
func (c *Communicator) Explain(q Question) (Explanation, error) {
	k, o, err := q.call(c)
	if err != nil {
		return Explanation{}, err
	}
	isCustom := false
	if q.Operator != nil {
		_, isFunction := q.Operator.(reduce.Function)
		isCustom = !isFunction
	}
	mayTree := schedule.HasTree(k.Collective) && !isCustom
	p := &pieced{hostCall: hostCall{Call: k, operation: o, element: uint8(q.Type)}, c: c}
	p.fix()
	k = p.Call
	isFixed := p.fixed.IsSet()
	mayTree = mayTree && (!isFixed || c.processes == nil)
	shares := c.processes != nil && c.processes.carries(p) && !isFixed
	t := c.policy()
	elements := k.Count
	if k.Collective == schedule.ReduceScatter || k.Collective == schedule.ReduceScatterv {
		elements = k.Elements()
	}
	agreement := c.agreement(p.fixed, elements)
	a, chosen := c.algorithm(&k, mayTree, agreement)
	e := Explanation{Links: t.costs.Links}
	if w, isWaiting := c.Waiting(); isWaiting {
		e.Waiting = &w
	}
	for _, by := range schedule.AllOf(k.Collective) {
		w := schedule.WorkOf(&k, by)
		way := Way{Transport: Hosts, Algorithm: Algorithm(by), Predicted: t.costs.Time(k.Collective.Family(), pathsel.ByMessages, &w)}
		if _, err := schedule.Make(&k, by); err != nil {
			way.Excluded = strings.TrimPrefix(err.Error(), schedule.ErrCall.Error()+": ")
		} else if shares {
			way.Excluded = sharesMemory
		} else if mayTree && c.options.keepsTree() {
			way.Excluded = "the communicator's options keep to its tree"
		} else if mayTree && c.processes != nil {
			way.Excluded = sharesMemory
		} else if len(c.options.algorithms) > 0 && chosen == asked && by != a {
			way.Excluded = "OnHosts does not name it"
			if slices.Contains(c.options.algorithms, way.Algorithm) {
				way.Excluded = "OnHosts names another before it"
			}
		}
		e.Ways = append(e.Ways, way)
	}
	if shares {
		slices.SortStableFunc(e.Ways, func(a, b Way) int { return int(a.Predicted - b.Predicted) })
		e.Chosen.Transport, e.Reason = c.processes.transport()
		e.Reason = sharesMemory + "; " + e.Reason
		return e, nil
	}
	never, why := "", ""
	var tree *schedule.Tree
	switch {
	case isCustom:
		never = "it is an operator of the caller's own"
	case isFixed && !mayTree:
		never, why = fixedOnHosts, fixedOnHosts
	case !schedule.HasTree(k.Collective):
		if tree, never = p.fits(); tree != nil && !c.mayCarryPieces() {
			never = "the communicator's options, or its processes, keep it to hosts"
		}
	}
	if !schedule.HasTree(k.Collective) && !isFixed {
		if taken, by, whyNot := p.overTree(); taken != nil {
			mayTree, a, chosen = true, schedule.Auto, by
		} else {
			why = whyNot
		}
	}
	e.Ways = append(e.Ways, c.treeWays(&k, tree, t, never, a)...)
	if agreement != nil {
		for i := range e.Ways {
			switch w := &e.Ways[i]; w.Transport {
			case Hosts:
				w.Predicted += c.takes(t, agreement)
			case HostTree:
				w.Predicted += t.takes(agreement, pathsel.ByHostTree)
			default:
				w.Predicted += t.takes(agreement, pathsel.BySwitches)
			}
		}
	}
	slices.SortStableFunc(e.Ways, func(a, b Way) int { return int(a.Predicted - b.Predicted) })
	e.Chosen = e.find(a)
	if e.Reason = c.reason(&k, a, mayTree, chosen); why != "" {
		e.Reason += "; not over the tree: " + why
	}
	if isCustom && schedule.HasTree(k.Collective) && len(c.options.algorithms) == 0 {
		e.Reason += "; an operator of the caller's own runs on hosts alone"
	}
	if isFixed {
		e.Reason += "; Reproducible: the members agree on exponents first, and sum integers"
	}
	if c.apart != "" && !schedule.HasTree(k.Collective) {
		e.Reason += "; " + c.apart
	}
	return e, nil
}

// sharesMemory says why operations that can run over the tree do.
const sharesMemory = "processes of a host use shared memory, and one of each host the tree"

// treeWays returns the ways by the communicator's tree, of hosts and of switches; where processes of a
// host share memory, those of the operation between hosts. Of pieces they are those of tree, nil where
// it cannot carry them. Never says why none is possible, a is what is chosen; Auto: one of them.
func (c *Communicator) treeWays(k *schedule.Call, tree *schedule.Tree, t *policy, never string, a schedule.Algorithm) []Way {
	all := []Way{{Transport: HostTree}, {Transport: Offload}}
	of, between := k.Collective.Family(), *k
	if c.processes != nil {
		between.Size, between.Rank, between.Root, between.Order = len(c.processes.hosts), 0, 0, nil
	}
	for i, kind := range []pathsel.Kind{pathsel.ByHostTree, pathsel.BySwitches} {
		var w pathsel.Work
		switch {
		case tree != nil:
			w = tree.Work(kind)
		case schedule.HasTree(k.Collective):
			w = schedule.TreeWork(&between, kind)
		}
		if all[i].Predicted = t.costs.Time(of, kind, &w); !t.costs.Knows(of, kind) {
			all[i].Excluded = "what it takes is not measured"
		}
	}
	if t.isGuess(of) && tree != nil {
		_, all[1].Excluded = tree.Gains()
	}
	c.mu.Lock()
	switches, why := t.switches, c.status.why
	c.mu.Unlock()
	if c.processes != nil {
		var way Transport
		way, why = c.processes.transport()
		switches = way != HostTree
	}
	switch {
	case len(c.options.algorithms) > 0 && a != schedule.Auto:
		all[0].Excluded, all[1].Excluded = "OnHosts", "OnHosts"
	case never != "":
		all[0].Excluded, all[1].Excluded = never, never
	case switches:
		all[0].Excluded = "the tree is one of switches"
	default:
		all[1].Excluded = why
	}
	if i := 0; a == schedule.Auto { // it is taken, whatever is known of it
		if switches {
			i = 1
		}
		all[i].Excluded = ""
	}
	return all
}

// find returns the way of an algorithm; Auto: by the tree.
func (e *Explanation) find(a schedule.Algorithm) Way {
	i := slices.IndexFunc(e.Ways, func(w Way) bool {
		if a == schedule.Auto {
			return w.Transport != Hosts && w.Excluded == ""
		}
		return w.Transport == Hosts && w.Algorithm == Algorithm(a)
	})
	return e.Ways[i]
}

// reason returns in words why a call runs as it does.
func (c *Communicator) reason(k *schedule.Call, a schedule.Algorithm, mayTree bool, chosen choice) string {
	c.mu.Lock()
	tree := c.status.why
	c.mu.Unlock()
	switch o := &c.options; {
	case len(o.algorithms) > 0 && chosen == asked:
		if a == schedule.Auto {
			return fmt.Sprintf("OnHosts has %v, of which none does this; %s", o.algorithms, tree)
		}
		return fmt.Sprintf("OnHosts has it so, with %v", o.algorithms)
	case len(o.algorithms) > 0:
		return "the fastest algorithm of hosts by the cost model; OnHosts leaves the tree out"
	case mayTree && k.Size == 1:
		return tree
	case mayTree && o.onTree:
		return "OnTree or OnTreeOfHosts has it so; " + tree
	case mayTree && o.keepsTree():
		return "Stripes, Roots, BlockFloat and Compressed hold over trees alone; " + tree
	case mayTree && c.processes != nil:
		_, tree = c.processes.transport()
		return sharesMemory + "; " + tree
	case mayTree:
		return new(spoken).say(chosen, tree)
	}
	return chosen.String()
}

// call returns the operation as this member would call it.
func (q *Question) call(c *Communicator) (k schedule.Call, o operation, err error) {
	k = schedule.Call{Rank: c.rank, Size: len(c.members), Root: q.Root, Segment: schedule.SegmentBytes, Count: q.Elements, Order: c.arranged}
	var names []string
	for of := schedule.Collective(1); of < schedule.Collectives; of++ {
		if names = append(names, of.String()); of.String() == q.Collective {
			k.Collective = of
		}
	}
	switch {
	case k.Collective == 0:
		return k, o, fmt.Errorf("%w: no collective %q, but %q", ErrArgument, q.Collective, names)
	case k.Collective.Reduces() && q.Operator == nil:
		return k, o, fmt.Errorf("%w: %s: there is no operator", ErrArgument, k.Collective)
	case !k.Collective.Reduces() && q.Operator != nil:
		return k, o, fmt.Errorf("%w: %s does not reduce, but has the operator %v", ErrArgument, k.Collective, q.Operator)
	case k.Collective == schedule.Barrier:
		return k, o, nil
	case q.Width != 0 && (k.Collective.Reduces() || schedule.HasTree(k.Collective) || q.Type != reduce.NoType || q.Width != 1 && q.Width != 2):
		return k, o, fmt.Errorf("%w: %s of elements of type %v, and of %d bytes; without a type, collectives of Data have some of 1 or 2", ErrArgument, k.Collective, q.Type, q.Width)
	case q.Width == 0 && !q.Type.Valid():
		return k, o, fmt.Errorf("%w: %s of elements of type %v", ErrArgument, k.Collective, q.Type)
	}
	function := reduce.NoFunction
	if q.Operator != nil {
		if o, err = operationOf(q.Operator, q.Type); err != nil {
			return k, o, err
		}
		function, k.Ordered = o.function, o.ordered
	}
	k.Width = cmp.Or(q.Width, reduce.ElementSize(function, q.Type))
	if k.Collective.HasCounts() {
		k.Counts = slices.Repeat([]int{q.Elements}, k.Size)
		k.RecvCounts, k.Own, k.Count = k.Counts, q.Elements, 0
	}
	if err := k.Validate(); err != nil {
		return k, o, fmt.Errorf("%w: %s: %s", ErrArgument, k.Collective, strings.TrimPrefix(err.Error(), schedule.ErrCall.Error()+": "))
	}
	return k, o, nil
}
