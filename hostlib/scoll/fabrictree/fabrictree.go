package fabrictree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/ranktree"
)

// Kind is the kind of tree under which nodes have Shape.
const Kind = scoll.FirstOwnKind

// Errors that are wrapped by those of this package.
var (
	ErrPlan  = errors.New("fabrictree: not a tree of switches, or its number is taken")
	ErrKnown = errors.New("fabrictree: no such plan here")
	ErrPlace = errors.New("fabrictree: a node is on no switch of the plan")
)

// Plan is a tree of switches and where nodes hang on it, the same on all nodes.
// It must not be changed once it was added.
type Plan struct {
	Parents []int          // of each switch the parent's index; -1: the topmost
	At      map[string]int // the switch of each node
	// Radix is how those who stand for their switches pass a message on: 0 and 1
	// one to the next, with no link crossed twice the same way; k from 2 on in a
	// k-nomial tree, which is flatter and crosses links up to (k-1) log_k times.
	Radix int
}

// FromManager returns the plan of a communicator's collection tree. The nodes
// are named as its members' hosts.
func FromManager(c hostlib.CollectionTree, members []hostlib.Member, radix int) (Plan, error) {
	p := Plan{At: make(map[string]int, len(members)), Radix: radix}
	if len(c.Leaf) != len(members) {
		return Plan{}, fmt.Errorf("%w: a tree of %d members for %d", ErrPlan, len(c.Leaf), len(members))
	}
	for _, s := range c.Switches {
		p.Parents = append(p.Parents, s.Parent)
	}
	for rank, m := range members {
		p.At[m.Host] = c.Leaf[rank]
	}
	return p, p.Validate()
}

// Validate reports what is wrong with p; the error wraps ErrPlan.
func (p *Plan) Validate() error {
	if _, err := ranktree.List("switches", p.parents()); err != nil {
		return fmt.Errorf("%w: %w", ErrPlan, err)
	}
	if p.Radix < 0 {
		return fmt.Errorf("%w: a radix of %d", ErrPlan, p.Radix)
	}
	for node, s := range p.At {
		if s < 0 || s >= len(p.Parents) {
			return fmt.Errorf("%w: %s is on switch %d of %d", ErrPlan, node, s, len(p.Parents))
		}
	}
	return nil
}

func (p *Plan) parents() []int32 {
	all := make([]int32, len(p.Parents))
	for i, parent := range p.Parents {
		all[i] = int32(parent)
	}
	return all
}

// Order returns the targets in an order that matches the plan: those of a switch
// one behind the other, and those beneath a switch too, so that the subtrees of a
// k-nomial tree lie beneath few switches. Nodes that are not on the plan come
// last. All nodes that are to agree on a group must be given the same order.
func (p *Plan) Order(targets []scoll.Target) []scoll.Target {
	place := p.places()
	of := func(t scoll.Target) int {
		if s, ok := p.At[t.Node]; ok {
			return place[s]
		}
		return len(place)
	}
	ordered := slices.Clone(targets)
	slices.SortStableFunc(ordered, func(a, b scoll.Target) int {
		return cmp.Or(cmp.Compare(of(a), of(b)), cmp.Compare(a.Node, b.Node))
	})
	return ordered
}

// places returns the place of each switch in a walk down the tree.
func (p *Plan) places() []int {
	place := make([]int, len(p.Parents))
	t, err := ranktree.List("switches", p.parents())
	if err != nil {
		return place // there is no order in what is no tree
	}
	next := 0
	var walk func(s int)
	walk = func(s int) {
		place[s] = next
		next++
		for _, child := range t.AppendChildren(nil, s) {
			walk(child)
		}
	}
	walk(slices.Index(p.Parents, -1))
	return place
}

// Plans are those that a node has, by their numbers. They may be used from any
// goroutine.
type Plans struct {
	mu  sync.RWMutex
	all map[uint16]*Plan
}

// New returns a node's plans, of which there are none yet.
func New() *Plans { return &Plans{all: map[uint16]*Plan{}} }

// Tree returns the tree of a plan, for a group.
func Tree(number uint16) scoll.Tree { return scoll.Tree{Kind: Kind, Radix: int(number)} }

// NumberOf returns a number for the plan of a collection tree: those of a
// communicator's last 65,536 trees differ.
func NumberOf(epoch uint32) uint16 { return uint16(epoch / 2) } // the manager gives even epochs

// Add lets the node take part in trees of a plan. It fails with ErrPlan.
func (p *Plans) Add(number uint16, plan Plan) error {
	if err := plan.Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[number] != nil {
		return fmt.Errorf("%w: %d", ErrPlan, number)
	}
	p.all[number] = &plan
	return nil
}

// Remove forgets a plan. Groups that have their places in its trees keep them.
func (p *Plans) Remove(number uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, number)
}

// Shape makes the tree of the plan that radix is the number of. It is a
// scoll.Shape.
func (p *Plans) Shape(members *scoll.Members, root, radix int) (ranktree.Spanning, error) {
	p.mu.RLock()
	plan := p.all[uint16(radix)]
	p.mu.RUnlock()
	if plan == nil {
		return nil, fmt.Errorf("%w: %d", ErrKnown, radix)
	}
	at := make([]int32, members.Len())
	for i := range at {
		s, ok := plan.At[members.Target(i).Node]
		if !ok {
			return nil, fmt.Errorf("%w: %s", ErrPlace, members.Target(i).Node)
		}
		at[i] = int32(s)
	}
	return ranktree.AlongSwitches(plan.parents(), at, root, max(1, plan.Radix))
}
