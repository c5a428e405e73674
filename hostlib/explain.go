package hostlib

import (
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
	Reason  string // in words
	Ways    []Way  // all, the fastest first
	Waiting *Wait  // the oldest operation of this member that has not ended, and for whom it waits; nil: there is none
}

// String returns the explanation as lines of text.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Chosen, e.Reason)
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
	t := c.policy()
	chosen, isChosen := c.algorithm(&k, mayTree)
	var e Explanation
	if w, isWaiting := c.Waiting(); isWaiting {
		e.Waiting = &w
	}
	for _, a := range schedule.AllOf(k.Collective) {
		w := schedule.WorkOf(&k, a)
		way := Way{Transport: Hosts, Algorithm: Algorithm(a), Predicted: t.costs.Time(k.Collective.Family(), pathsel.ByMessages, &w)}
		if _, err := schedule.Make(&k, a); err != nil {
			way.Excluded = strings.TrimPrefix(err.Error(), schedule.ErrCall.Error()+": ")
		} else if mayTree && c.options.keepsTree() {
			way.Excluded = "the communicator's options keep to its tree"
		} else if mayTree && c.processes != nil {
			way.Excluded = sharesMemory
		} else if len(c.options.algorithms) > 0 && !isChosen && a != chosen {
			way.Excluded = "OnHosts does not name it"
			if slices.Contains(c.options.algorithms, way.Algorithm) {
				way.Excluded = "OnHosts names another before it"
			}
		}
		e.Ways = append(e.Ways, way)
	}
	if schedule.HasTree(k.Collective) {
		e.Ways = append(e.Ways, c.treeWays(&k, t, isCustom, chosen)...)
	}
	slices.SortStableFunc(e.Ways, func(a, b Way) int { return int(a.Predicted - b.Predicted) })
	why := ""
	if !schedule.HasTree(k.Collective) {
		p := &pieced{c: c}
		p.Call, p.operation = k, o
		var tree *schedule.Tree
		if tree, why = p.overTree(); tree != nil {
			e.Chosen.Transport, e.Reason = c.ownTransport()
			e.Reason = "the tree spares the members messages or bytes, or OnTree has it so; " + e.Reason
			return e, nil
		}
	}
	e.Chosen = e.find(chosen)
	if e.Reason = c.reason(&k, t, chosen, mayTree, isChosen); why != "" {
		e.Reason += "; not over the tree: " + why
	}
	return e, nil
}

// sharesMemory says why operations that can run over the tree do.
const sharesMemory = "processes of a host reduce in shared memory, and one of each host over the tree"

// treeWays returns the ways by the communicator's tree, of hosts and of switches; where processes of a
// host share memory, those of the operation between hosts.
func (c *Communicator) treeWays(k *schedule.Call, t *policy, isCustom bool, chosen schedule.Algorithm) []Way {
	all := []Way{{Transport: HostTree}, {Transport: Offload}}
	between := *k
	if c.processes != nil {
		between.Size, between.Rank, between.Root, between.Order = len(c.processes.hosts), 0, 0, nil
	}
	for i, kind := range []pathsel.Kind{pathsel.ByHostTree, pathsel.BySwitches} {
		w := schedule.TreeWork(&between, kind)
		all[i].Predicted = t.costs.Time(k.Collective.Family(), kind, &w)
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
	case len(c.options.algorithms) > 0 && chosen != schedule.Auto:
		all[0].Excluded, all[1].Excluded = "OnHosts", "OnHosts"
	case isCustom:
		all[0].Excluded, all[1].Excluded = "it is an operator of the caller's own", "it is an operator of the caller's own"
	case switches:
		all[0].Excluded = "the tree is one of switches"
	default:
		all[1].Excluded = why
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
func (c *Communicator) reason(k *schedule.Call, t *policy, a schedule.Algorithm, mayTree, isChosen bool) string {
	c.mu.Lock()
	tree := c.status.why
	c.mu.Unlock()
	switch o := &c.options; {
	case len(o.algorithms) > 0 && !isChosen:
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
		return "Stripes, Roots and BlockFloat hold over trees alone; " + tree
	case mayTree && c.processes != nil:
		_, tree = c.processes.transport()
		return sharesMemory + "; " + tree
	case !mayTree && !schedule.HasTree(k.Collective):
		return "the fastest algorithm of hosts by the cost model"
	case !mayTree:
		return "the fastest way by the cost model; an operator of the caller's own runs on hosts alone"
	case t.switches && !t.measured:
		return "switches are taken until costs are measured on this fabric (collbench costs)"
	case t.switches:
		return "the fastest way by the cost model, switches included"
	}
	return "the fastest way by the cost model; " + tree
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
	case !q.Type.Valid():
		return k, o, fmt.Errorf("%w: %s of elements of type %v", ErrArgument, k.Collective, q.Type)
	}
	function := reduce.NoFunction
	if q.Operator != nil {
		if o, err = operationOf(q.Operator, q.Type); err != nil {
			return k, o, err
		}
		function, k.Ordered = o.function, o.ordered
	}
	k.Width = reduce.ElementSize(function, q.Type)
	if k.Collective.HasCounts() {
		k.Counts = slices.Repeat([]int{q.Elements}, k.Size)
		k.RecvCounts, k.Own, k.Count = k.Counts, q.Elements, 0
	}
	if err := k.Validate(); err != nil {
		return k, o, fmt.Errorf("%w: %s: %s", ErrArgument, k.Collective, strings.TrimPrefix(err.Error(), schedule.ErrCall.Error()+": "))
	}
	return k, o, nil
}
