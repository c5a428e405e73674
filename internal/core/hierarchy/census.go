package hierarchy

import (
	"maps"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// Row is what every node of the management zone knows of a base zone.
type Row struct {
	Zone wire.Zone
	Summary
	Supervisors []gossip.ID // whoever says that it supervises the zone
}

// Census returns all base zones by number.
func (s *Supervisor) Census() []Row {
	rows := make([]Row, 0, len(s.holdings.zones))
	for _, zone := range slices.Sorted(maps.Keys(s.holdings.zones)) {
		row := Row{Zone: zone, Supervisors: s.Supervisors(zone)}
		row.Summary, _ = s.Summary(zone)
		rows = append(rows, row)
	}
	return rows
}

// Supervisors returns who says that it supervises a zone.
func (s *Supervisor) Supervisors(zone wire.Zone) []gossip.ID {
	var ids []gossip.ID
	for _, h := range s.holdings.zones[zone] {
		if node, in := s.zone.Find(h.life); in {
			ids = append(ids, s.zone.ID(node))
		}
	}
	return ids
}

// Summary returns what the census has of a zone, and how many supervise it. What
// its supervisors publish differs for a moment after each change; this is what
// the one with the most delegates does, and of these the one with the larger
// view.
func (s *Supervisor) Summary(zone wire.Zone) (summary Summary, supervisors int) {
	all := s.holdings.zones[zone]
	for i, h := range all {
		if i == 0 || h.Delegates > summary.Delegates || h.Delegates == summary.Delegates && h.Size > summary.Size {
			summary = h.Summary
		}
	}
	return summary, len(all)
}

// forget drops supervisors that are not in the view any more.
func (h *holdings) forget(zone Zone) {
	var gone []attributes.Life
	for life := range h.loads {
		if _, in := zone.Find(life); !in {
			gone = append(gone, life)
		}
	}
	for number, all := range h.zones {
		for _, one := range slices.Clone(all) {
			if slices.Contains(gone, one.life) {
				h.drop(number, one.life)
			}
		}
	}
}

// assign looks after the zones that are supervised here: their delegates are informed
// who supervises them now, and one that is one too many goes when all others
// have a delegate.
func (s *Supervisor) assign(now core.Time, out *Output) {
	if !s.settled {
		return
	}
	for k := len(s.held) - 1; k >= 0; k-- {
		b := s.held[k]
		to := s.holdings.assigned(b.zone, s.zone, s.cfg.Supervisors)
		if !slices.Equal(to, b.reported) {
			b.reported = to
			m := s.assignment(b.zone, to)
			for i := range s.links {
				if l := &s.links[i]; l.slot != none && l.zone == b.zone {
					l.send(now, m, out)
				}
			}
		}
		b.leaving = !slices.Contains(to, s.zone.Self())
		if b.leaving && s.holdings.served(b.zone, to) {
			s.release(now, k, out)
		}
	}
}

// served reports whether all of these supervise a zone with a delegate at least.
func (h *holdings) served(zone wire.Zone, by []attributes.Life) bool {
	for _, life := range by {
		if i, is := find(h.zones[zone], life); !is || h.zones[zone][i].Delegates == 0 {
			return false
		}
	}
	return true
}

// release ends supervising a zone.
func (s *Supervisor) release(now core.Time, k int, out *Output) {
	zone := s.held[k].zone
	s.held = slices.Delete(s.held, k, k+1)
	s.holdings.drop(zone, s.zone.Self())
	s.moved(now)
	_ = s.zone.Retract(keyOf(zone)) // a tombstone is shorter than what it replaces: it fits
	for i := range s.links {
		if l := &s.links[i]; l.zone == zone && (l.slot != none || l.follows || l.waiting != nil) {
			out.Closes = append(out.Closes, l.link)
			l.slot, l.open = none, false
		}
	}
}

// publish writes what has changed in the summaries, and gives up zones that have
// had no delegate for too long.
func (s *Supervisor) publish(now core.Time, out *Output) {
	for k := len(s.held) - 1; k >= 0; k-- {
		b := s.held[k]
		if b.slots == 0 && now >= b.empty.Add(s.cfg.Linger) {
			s.release(now, k, out)
			continue
		}
		p := publication{Summary{Delegates: s.complete(b.zone), Size: len(b.entries), Digest: b.digest}, b.heir}
		if b.shown && p == b.published {
			continue
		}
		// Where there is no room for it, it is tried again at the next step.
		if err := s.zone.Declare(keyOf(b.zone), p.bytes()); err == nil {
			b.published, b.shown = p, true
			s.holdings.put(b.zone, s.zone.Self(), p)
		}
	}
}

// complete returns how many delegates of a zone are connected and have reported
// their whole view.
func (s *Supervisor) complete(zone wire.Zone) int {
	n := 0
	for i := range s.links {
		if l := &s.links[i]; l.zone == zone && l.slot != none && l.complete {
			n++
		}
	}
	return n
}
