package hierarchy

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// DelegateKey is the attribute of a node of a base zone that is a delegate, with
// the value yes; that is never to be elected, with the value no; or not for a
// while, having reached no supervisor, with the value later.
const DelegateKey = "tributary.delegate"

// The values of DelegateKey.
var (
	yes   = []byte("yes")
	no    = []byte("no")
	later = []byte("later")
)

// weight orders candidates: the lowest goes first. It is another order for every
// zone, and the same at everyone.
func weight(zone wire.Zone, life attributes.Life) uint64 {
	return uint64(gossip.Key(life).Life(uint64(zone)))
}

// election decides whether a node is one of its zone's delegates. The rule is
// the same at all nodes, so that they agree as soon as their views and
// attributes do: who has declared itself remains, while no more than wanted have;
// else those of the lowest weight do. Free places are for those who have not
// declared themselves, and are of the lowest weight in the view.
type election struct {
	declared []attributes.Life // in the view, self aside
	barred   []attributes.Life // in the view, not to be elected
	strayed  []attributes.Life // of these, who has reached no supervisor
	vacant   core.Time         // since when a place is free, where one is
}

// learn takes what a node has declared.
func (e *election) learn(zone Zone, life attributes.Life) {
	value, has := zone.Attribute(life, DelegateKey)
	e.declared = core.Include(e.declared, life, has && slices.Equal(value, yes))
	strayed := has && slices.Equal(value, later)
	e.strayed = core.Include(e.strayed, life, strayed)
	e.barred = core.Include(e.barred, life, strayed || has && slices.Equal(value, no))
}

// forget drops who is not in the view any more.
func (e *election) forget(zone Zone) {
	gone := func(l attributes.Life) bool { _, in := zone.Find(l); return !in }
	e.declared = slices.DeleteFunc(e.declared, gone)
	e.barred = slices.DeleteFunc(e.barred, gone)
	e.strayed = slices.DeleteFunc(e.strayed, gone)
}

// surplus reports whether a node that has declared itself is one too many.
func (e *election) surplus(zone Zone, number wire.Zone, wanted int) bool {
	own, better := weight(number, zone.Self()), 0
	for _, life := range e.declared {
		if weight(number, life) < own {
			better++
		}
	}
	return better >= wanted
}

// turn returns how many of a free place's candidates come before the node, per
// free place; ok is false if no place is free for it.
func (e *election) turn(zone Zone, number wire.Zone, wanted int) (before int, ok bool) {
	free := wanted - len(e.declared)
	if free <= 0 {
		return 0, false
	}
	own := weight(number, zone.Self())
	for _, i := range zone.View() {
		life := zone.Life(i)
		if life != zone.Self() && weight(number, life) < own && !has(e.declared, life) && !has(e.barred, life) {
			before++
		}
	}
	return before / free, true
}

// others reports whether somebody in the view could be elected in a delegate's
// place.
func (e *election) others(zone Zone) bool {
	return slices.ContainsFunc(zone.View(), func(i member.Index) bool {
		life := zone.Life(i)
		return life != zone.Self() && !has(e.declared, life) && !has(e.barred, life)
	})
}

func has(all []attributes.Life, life attributes.Life) bool {
	_, in := slices.BinarySearch(all, life)
	return in
}

// Candidates returns the first n nodes of a zone's view in the order in which
// they are elected, whoever has declared itself: where nobody has, its delegates.
func Candidates(zone Zone, number wire.Zone, n int) []member.Index {
	all := slices.Clone(zone.View())
	slices.SortFunc(all, func(a, b member.Index) int {
		return cmp.Compare(weight(number, zone.Life(a)), weight(number, zone.Life(b)))
	})
	return all[:min(n, len(all))]
}
