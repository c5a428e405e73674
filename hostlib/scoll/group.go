package scoll

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/tributary-fabric/tributary/internal/core/broadcast"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// GroupSpec is what a group is made of.
type GroupSpec struct {
	Name    string   // for people; at most MaxName bytes
	Targets []Target // in the order that all members agree upon; this node is one of them. Each stands for all its entities
	Tree    Tree     // the zero Tree: the node's default
	// Delayed has the first broadcast bring the members along, instead of a
	// broadcast of its own: for who wants to send at once. It is refused where
	// they do not fit into MaxRequest bytes beside it.
	Delayed bool
	Private any // the caller's; see Group.Private
}

// Group is an ordered list of targets that this node can broadcast to, as the
// root. Handles of regular and of out-of-band groups are alike.
type Group struct {
	service *Service
	id      uint64
	name    string
	private any
	index   *broadcastmsg.Index // of an out-of-band one
}

// CreateGroup begins to make a group. created is called once, with the group or
// with why there is none: within this call where the group is delayed; otherwise
// when all members have it, on another goroutine. There is no broadcast before.
// An error that is returned is all there is: created is not called then.
func (s *Service) CreateGroup(spec GroupSpec, created func(*Group, error)) error {
	if created == nil {
		return fmt.Errorf("create group %q: %w: nobody to notify", spec.Name, ErrConfig)
	}
	tree, err := s.tree(spec.Tree)
	if err != nil {
		return fmt.Errorf("create group %q: %w", spec.Name, err)
	}
	n := s.node
	g := &Group{service: s, name: spec.Name, private: spec.Private}
	n.mu.Lock()
	if err := s.open(); err != nil {
		n.mu.Unlock()
		return fmt.Errorf("create group %q: %w", spec.Name, err)
	}
	calls := len(n.out.Calls)
	g.id, err = n.core.CreateGroup(n.clock.Now(), broadcast.Creation{
		Service: broadcastmsg.Service(s.id), Name: spec.Name, Targets: coreTargets(spec.Targets), Tree: tree, Delayed: spec.Delayed,
	}, &n.out)
	if err != nil {
		n.mu.Unlock()
		return err
	}
	if spec.Delayed {
		n.out.Calls = n.out.Calls[:calls] // Created: here and now
	} else {
		n.creations[g.id] = creation{g, created}
	}
	n.mu.Unlock()
	if spec.Delayed {
		created(g, nil)
		return nil
	}
	n.loop.Wake()
	return nil
}

// creation is a group whose population is under way.
type creation struct {
	group   *Group
	created func(*Group, error)
}

// OutOfBandSpec is what an out-of-band group is made of.
type OutOfBandSpec struct {
	Name    string
	Index   Index // by which the service's MapGroup knows the members
	Tree    Tree  // the zero Tree: the node's default
	Private any
}

// OutOfBand returns a group whose members are known without a message. Nothing
// is sent. The service must have MapGroup.
func (s *Service) OutOfBand(spec OutOfBandSpec) (*Group, error) {
	tree, err := s.tree(spec.Tree)
	if err != nil {
		return nil, fmt.Errorf("out-of-band group %q: %w", spec.Name, err)
	}
	n := s.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("out-of-band group %q: %w", spec.Name, err)
	}
	id, err := n.core.CreateOutOfBand(broadcastmsg.Service(s.id), broadcastmsg.Index(spec.Index), tree)
	if err != nil {
		return nil, err
	}
	index := broadcastmsg.Index(spec.Index)
	return &Group{service: s, id: id, name: spec.Name, private: spec.Private, index: &index}, nil
}

// tree returns t, or the node's default.
func (s *Service) tree(t Tree) (broadcastmsg.Tree, error) {
	t = cmp.Or(t, s.node.cfg.Tree)
	if t.Radix < 0 || t.Radix > math.MaxUint16 {
		return broadcastmsg.Tree{}, fmt.Errorf("%w: kind %d of radix %d", ErrTree, t.Kind, t.Radix)
	}
	return t.core(), nil
}

// open returns why nothing can be made of the service any more. The caller holds
// the node's lock.
func (s *Service) open() error {
	if s.closing || s.node.closed {
		return ErrClosed
	}
	return nil
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Private returns what the group was made with.
func (g *Group) Private() any { return g.private }

// Service returns whose group it is.
func (g *Group) Service() *Service { return g.service }

// members asks the service for an out-of-band group's members; nil for a
// regular group, whose members the library knows.
func (g *Group) members() (*broadcast.Members, error) {
	if g.index == nil {
		return nil, nil
	}
	m, err := g.service.mapGroup(*g.index)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", g.name, err)
	}
	return m, nil
}

// Children returns this node's children in the tree of which it is the root, in
// the order of their numbers; none if it is alone.
func (g *Group) Children() ([]Child, error) {
	m, err := g.members()
	if err != nil {
		return nil, err
	}
	n := g.service.node
	n.mu.Lock()
	defer n.mu.Unlock()
	branches, err := n.core.Children(g.id, m)
	if err != nil {
		return nil, err
	}
	return publicChildren(branches), nil
}

// Alive returns the subset of the group's members that live whenever a
// broadcast is made. The members agree on it by a digest: one that holds another
// node for dead than the root does takes no part, and says so.
func (g *Group) Alive() (*Group, error) {
	n := g.service.node
	n.mu.Lock()
	defer n.mu.Unlock()
	id, err := n.core.Subset(g.id)
	if err != nil {
		return nil, err
	}
	alive := *g
	alive.id = id
	return &alive, nil
}

// Destroy frees the group at all its members that live, by a broadcast of no size
// that no service sees, and waits for it. Members that it does not reach, as the
// error says, free the group when all its roots are dead or have rebooted, or
// when Destroy is called again: who has freed it already passes it on. Of a subset it gives back the handle alone. It fails with
// ErrBusy while the first broadcast over a delayed group is under way. It must
// not be called from a callback that is Inline.
func (g *Group) Destroy(ctx context.Context) error {
	m, err := g.members()
	if err != nil {
		return err
	}
	n := g.service.node
	n.mu.Lock()
	id, err := n.core.Destroy(n.clock.Now(), g.id, m, &n.out)
	if err != nil || id == 0 {
		n.mu.Unlock()
		return err
	}
	ended := make(chan error, 1)
	n.destroys[id] = ended
	n.mu.Unlock()
	n.loop.Wake()
	select {
	case err := <-ended:
		return err
	case <-n.over:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("destroy group %q: %w", g.name, ctx.Err())
	}
}
