package schedule

import (
	"time"

	"github.com/tributary-fabric/tributary/pathsel"
)

// unknownPiece is what pieces are taken to have whose lengths only some members know, in bytes.
const unknownPiece = 64 << 10

// Choose returns the algorithm that does a call in the least time by costs, and that time.
// Members with the same costs that call the same choose the same: it depends on nothing that they
// may not give alike.
func Choose(c *Call, costs *pathsel.Costs) (best Algorithm, least time.Duration) {
	all, of := ways[c.Collective], c.Collective.Family()
	for i := range all {
		if !c.can(&all[i]) {
			continue
		}
		w := WorkOf(c, all[i].algorithm)
		if t := costs.Time(of, pathsel.ByMessages, &w); best == Auto || t < least {
			best, least = all[i].algorithm, t
		}
	}
	return best, least
}

// can reports whether a way can do a call of its collective.
func (c *Call) can(w *way) bool {
	return !(w.unordered && c.Ordered) && !(w.power && c.Size&(c.Size-1) != 0)
}
