package hierarchy

import (
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// end is a role's end of a link that stands or is being dialled.
type end struct {
	link  Link
	open  bool
	sent  core.Time // last
	heard core.Time // last
}

// send sends m on e.
func (e *end) send(now core.Time, m wire.Message, out *Output) {
	e.sent = now
	out.Sends = append(out.Sends, Send{Link: e.link, Message: m})
}

// due returns when e has to beat or to be given up.
func (e *end) due(s *Settings) core.Time {
	switch {
	case e.link == 0:
		return core.Never
	case !e.open:
		return e.silent(s)
	}
	return e.sent.Add(s.Beat).Earlier(e.silent(s))
}

// silent returns when e is given up: also a dial that nobody answers, not even by
// a refusal.
func (e *end) silent(s *Settings) core.Time {
	return e.heard.Add(time.Duration(s.Silence) * s.Beat)
}

// beat says that e is there, if it is time, and reports whether the other end is
// silent.
func (e *end) beat(now core.Time, s *Settings, out *Output) (silent bool) {
	switch {
	case e.link == 0:
		return false
	case now >= e.silent(s):
		return true
	case e.open && now >= e.sent.Add(s.Beat):
		e.send(now, &wire.Beat{}, out)
	}
	return false
}

// parts cuts a change, or a view (Base), into messages of a bounded size, leaves
// first.
func parts(c wire.Change, bytes int) []*wire.Change {
	c.Last = c.Base
	if c.Size() <= bytes {
		return []*wire.Change{&c}
	}
	var all []*wire.Change
	next := func() *wire.Change {
		all = append(all, &wire.Change{Zone: c.Zone, Base: c.Base})
		return all[len(all)-1]
	}
	last := next()
	size := last.Size()
	room := func(n int) {
		if size += n; size > bytes {
			last = next()
			size = last.Size() + n
		}
	}
	for i := range c.Leaves {
		room(c.Leaves[i].Size())
		last.Leaves = append(last.Leaves, c.Leaves[i])
	}
	for i := range c.Alives {
		room(c.Alives[i].Size())
		last.Alives = append(last.Alives, c.Alives[i])
	}
	last.Last = c.Last
	return all
}
