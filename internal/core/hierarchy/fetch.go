package hierarchy

import (
	"cmp"
	"slices"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// fetch is a base zone's view that is wanted here.
type fetch struct {
	end
	zone    wire.Zone
	follow  bool
	from    attributes.Life   // of whom it is asked; 0: of nobody yet
	tried   []attributes.Life // without an answer, or lost
	members []wire.Member     // so far
	whole   bool              // the view was given; changes follow
}

// Fetch asks for a base zone's view, which comes as a View of an Output; to
// follow it is to be given notices of what changes from then on, until Forget.
// If its supervisor is lost, another one gives the whole view again. Deadline
// then reports when the next Step is due, which sends it.
func (s *Supervisor) Fetch(zone wire.Zone, follow bool) {
	if follow {
		s.Forget(zone)
	}
	s.fetches = append(s.fetches, fetch{zone: zone, follow: follow})
}

// Forget ends following a zone.
func (s *Supervisor) Forget(zone wire.Zone) {
	for i := range s.fetches {
		if f := &s.fetches[i]; f.zone == zone && f.follow {
			f.follow, f.whole = false, true
		}
	}
}

// due returns when a fetch wants a step.
func (f *fetch) due(cfg *Settings) core.Time {
	if f.from == 0 || f.whole && !f.follow {
		return 0
	}
	return f.end.due(cfg)
}

// fetch goes on with what is wanted.
func (s *Supervisor) fetch(now core.Time, out *Output) {
	kept := s.fetches[:0]
	for i := range s.fetches {
		f := s.fetches[i]
		if f.beat(now, &s.cfg, out) {
			s.hangUp(&f, out)
			f.lost()
		}
		if s.pursue(now, &f, out) {
			kept = append(kept, f)
		} else {
			s.hangUp(&f, out)
		}
	}
	clear(s.fetches[len(kept):])
	s.fetches = kept
}

// pursue asks the next who may know, and reports whether there is something
// still to come.
func (s *Supervisor) pursue(now core.Time, f *fetch, out *Output) bool {
	own := s.base(f.zone)
	switch {
	case f.whole && !f.follow:
		return false
	case own != nil && !own.whole: // its delegates are about to report
		if f.from != s.zone.Self() {
			s.hangUp(f, out)
			*f = fetch{zone: f.zone, follow: f.follow, from: s.zone.Self()}
		}
	case own != nil && (f.from != s.zone.Self() || !f.whole):
		s.hangUp(f, out)
		*f = fetch{zone: f.zone, follow: f.follow, from: s.zone.Self(), whole: true}
		out.Views = append(out.Views, View{Zone: f.zone, Members: own.members()})
		return f.follow
	case own == nil && f.from == s.zone.Self():
		f.lost()
	}
	if f.from != 0 {
		return true
	}
	all := slices.Clone(s.holdings.zones[f.zone])
	slices.SortFunc(all, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.Delegates, a.Delegates), cmp.Compare(weight(f.zone, a.life), weight(f.zone, b.life)))
	})
	for _, h := range all {
		if node, in := s.zone.Find(h.life); in && h.life != s.zone.Self() && !slices.Contains(f.tried, h.life) {
			f.end = end{link: s.nextLink, heard: now, sent: now}
			f.from = h.life
			s.nextLink += 2
			out.Dials = append(out.Dials, Dial{Link: f.link, To: s.zone.ID(node)})
			return true
		}
	}
	out.Views = append(out.Views, View{Zone: f.zone, Err: ErrUnknownZone})
	return false
}

// hangUp closes a fetch's link, if it has one.
func (s *Supervisor) hangUp(f *fetch, out *Output) {
	if f.link != 0 {
		out.Closes = append(out.Closes, f.link)
		f.end = end{}
	}
}

// lost has a fetch begin again, with another.
func (f *fetch) lost() {
	if f.whole {
		f.tried = nil // it was one that knew
	}
	f.tried = append(f.tried, f.from)
	f.end, f.from, f.members, f.whole = end{}, 0, nil, false
}

// fetched takes what has come on the link of a fetch.
func (s *Supervisor) fetched(now core.Time, in *Input, out *Output) {
	i := slices.IndexFunc(s.fetches, func(f fetch) bool { return f.link == in.Link && f.link != 0 })
	if i < 0 {
		return
	}
	f := &s.fetches[i]
	f.heard = now
	switch in.Kind {
	case Connected:
		f.open = true
		f.send(now, &wire.Fetch{Zone: f.zone, Follow: f.follow}, out)
	case Failed:
		f.lost()
	case Received:
		if m, ok := in.Message.(*wire.Change); ok && m.Zone == f.zone {
			s.piece(f, m, out)
		}
	}
}

// piece takes a piece of a view that was fetched, or a change of it.
func (s *Supervisor) piece(f *fetch, m *wire.Change, out *Output) {
	switch {
	case m.None:
		s.hangUp(f, out)
		f.lost()
	case m.Base:
		if f.members = append(f.members, m.Alives...); m.Last {
			out.Views = append(out.Views, View{Zone: f.zone, Members: f.members})
			f.members, f.whole = nil, true
		}
	case f.whole:
		for i := range m.Leaves {
			l := &m.Leaves[i]
			out.Notices = append(out.Notices, Notice{Zone: f.zone, Kind: member.Leave, ID: l.ID, Version: l.Version, Cause: member.Cause(l.Cause), Exit: l.Exit})
		}
		for i := range m.Alives {
			out.Notices = append(out.Notices, Notice{Zone: f.zone, Kind: member.Join, ID: m.Alives[i].ID, Version: m.Alives[i].Version})
		}
	}
}

// give answers one who fetches.
func (s *Supervisor) give(now core.Time, l *downlink, m *wire.Fetch, out *Output) {
	b := s.base(m.Zone)
	if b == nil {
		l.send(now, &wire.Change{Zone: m.Zone, None: true}, out)
		return
	}
	if !b.whole {
		l.zone, l.waiting = m.Zone, m
		return
	}
	l.zone, l.follows, l.waiting = m.Zone, m.Follow, nil
	for _, piece := range parts(wire.Change{Zone: m.Zone, Base: true, Alives: b.members()}, s.cfg.PieceBytes) {
		l.send(now, piece, out)
	}
}

// giveWaiting answers those who have waited for the whole view of a zone.
func (s *Supervisor) giveWaiting(now core.Time, b *base, out *Output) {
	if !b.whole {
		return
	}
	for i := range s.links {
		if l := &s.links[i]; l.waiting != nil && l.zone == b.zone {
			s.give(now, l, l.waiting, out)
		}
	}
}
