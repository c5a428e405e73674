package manager

import (
	"fmt"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/pathsel"
)

// Bundle says which of several groups of one communicator a group is. The zero
// value is a group that is the only one of its communicator.
type Bundle struct {
	Name  string // of the communicator: the groups of one bundle have the same
	Kind  BundleKind
	Index int // of this group
	Count int // of groups that are wanted, 2 to MaxBundle; fewer may be made
	// PerRail: of stripes, no more are wanted than have links of their own at each
	// member's host.
	PerRail bool
}

// MaxBundle is the most groups of one bundle.
const MaxBundle = 64

// BundleKind is what the groups of a bundle are to each other.
type BundleKind uint8

// The kinds of bundles.
const (
	NoBundle BundleKind = iota
	Stripes             // all have the same members, whose vectors are cut by stripes
	Parts               // each has some of the members, and a root of its own
)

var bundleNames = [...]string{"none", "stripes", "parts"}

// String returns "none", "stripes" or "parts".
func (k BundleKind) String() string { return core.Name(bundleNames[:], k, "bundle(?)") }

// String says which group it is, such as "stripe 1 of 4 of job"; of none, nothing.
func (b Bundle) String() string {
	switch b.Kind {
	case Stripes:
		return fmt.Sprintf("stripe %d of %d of %s", b.Index, b.Count, b.Name)
	case Parts:
		return fmt.Sprintf("part %d of %d of %s", b.Index, b.Count, b.Name)
	}
	return ""
}

// Validate reports a bundle of an unknown kind, without a name, or of too many or
// too few groups. Its errors wrap ErrRequest.
func (b Bundle) Validate() error {
	switch {
	case b == Bundle{}:
		return nil
	case b.Kind != Stripes && b.Kind != Parts:
		return fmt.Errorf("a bundle of kind %d: %w", b.Kind, ErrRequest)
	case b.PerRail && b.Kind != Stripes:
		return fmt.Errorf("%v, and not stripes, over a rail each: %w", b.Kind, ErrRequest)
	case b.Name == "" || len(b.Name) > maxName:
		return fmt.Errorf("a bundle's name of %d bytes, want 1 to %d: %w", len(b.Name), maxName, ErrRequest)
	case b.Count < 2 || b.Count > MaxBundle:
		return fmt.Errorf("a bundle of %d groups, want 2 to %d: %w", b.Count, MaxBundle, ErrRequest)
	case b.Index < 0 || b.Index >= b.Count:
		return fmt.Errorf("group %d of a bundle of %d: %w", b.Index, b.Count, ErrRequest)
	}
	return nil
}

// bundle is the groups of one bundle that are not released.
type bundle struct {
	Bundle          // without an Index
	groups []*group // by index; nil: not there
}

// fits returns why a group of these members cannot be that of a bundle.
func (c *Core) fits(as Bundle, members []string) error {
	b := c.bundles[as.Name]
	if b == nil || as.Kind == NoBundle {
		return nil
	}
	if b.Kind != as.Kind || b.Count != as.Count {
		return fmt.Errorf("%q has %d %v, and not %d %v: %w", b.Name, b.Count, b.Kind, as.Count, as.Kind, ErrBundle)
	}
	if g := b.groups[as.Index]; g != nil {
		return fmt.Errorf("%v is group %d, %q: %w", as, g.id, g.spec.Name, ErrBundle)
	}
	for _, g := range b.groups {
		switch {
		case g == nil:
		case b.Kind == Stripes && !slices.Equal(g.spec.Members, members):
			return fmt.Errorf("%v has other members than %v: %w", as, g.spec.Bundle, ErrBundle)
		case b.Kind == Parts:
			if twice := common(g.spec.Members, members); twice != "" {
				return fmt.Errorf("%s is in %v and in %v: %w", twice, g.spec.Bundle, as, ErrBundle)
			}
		}
	}
	return nil
}

// common returns the first host that is in others too; empty: none is.
func common(others, hosts []string) string {
	there := make(map[string]bool, len(others))
	for _, h := range others {
		there[h] = true
	}
	for _, h := range hosts {
		if there[h] {
			return h
		}
	}
	return ""
}

// enrol makes a group known by its name, and to its sisters.
func (c *Core) enrol(g *group) {
	c.names[g.spec.Name] = g.id
	of := g.spec.Bundle
	if of.Kind == NoBundle {
		return
	}
	b := c.bundles[of.Name]
	if b == nil {
		b = &bundle{Bundle: Bundle{Name: of.Name, Kind: of.Kind, Count: of.Count}, groups: make([]*group, of.Count)}
		c.bundles[of.Name] = b
	}
	b.groups[of.Index], g.bundle = g, b
}

// strike is the reverse of enrol, for a group that is released.
func (c *Core) strike(g *group) {
	delete(c.names, g.spec.Name)
	b := g.bundle
	if b == nil {
		return
	}
	b.groups[g.spec.Bundle.Index], g.bundle = nil, nil
	if !slices.ContainsFunc(b.groups, func(g *group) bool { return g != nil }) {
		delete(c.bundles, b.Name)
	}
}

// sisters returns the other groups of g's bundle, by index.
func (g *group) sisters() (all []*group) {
	if g.bundle == nil {
		return nil
	}
	for _, s := range g.bundle.groups {
		if s != nil && s != g {
			all = append(all, s)
		}
	}
	return all
}

// sisterPlans reports whether a plan of a sister of g is out. Those of one bundle
// are made one after the other, so that each can be apart from those before.
func (g *group) sisterPlans() bool {
	return g.bundle != nil && slices.ContainsFunc(g.sisters(), func(s *group) bool { return s.plan != 0 })
}

// touchSisters has the sisters of g advanced, who may have waited for its plan.
func (c *Core) touchSisters(g *group) {
	for _, s := range g.sisters() {
		c.touch(s)
	}
}

// newest returns the tree that g has or is to have; nil: none.
func (g *group) newest() *tree {
	if g.building != nil {
		return g.building
	}
	return g.active
}

// apartFrom returns the trees of g's sisters.
func (g *group) apartFrom() (trees []pathsel.Tree) {
	for _, s := range g.sisters() {
		if t := s.newest(); t != nil {
			trees = append(trees, t.plan.Tree)
		}
	}
	return trees
}

// purpose returns what the group's trees are for: a stripe carries its share of a
// vector.
func (s *Spec) purpose() pathsel.Purpose {
	p := s.Purpose
	if n := int64(s.Bundle.Count); s.Bundle.Kind == Stripes && !s.Bundle.PerRail {
		p.Bytes = p.Bytes/n + min(p.Bytes%n, 1)
	}
	return p
}
