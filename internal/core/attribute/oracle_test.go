package attribute

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// plain is the protocol as the paper's page has it, and the rules beyond it, with
// a map for everything and a look at all of it in every step.
type plain struct {
	self  attributes.Life
	view  map[attributes.Life]*copyOf
	peers map[attributes.Life]bool
	owed  map[attributes.Life]pendingOffer
	last  core.Time
	wants map[attributes.Life]map[attributes.Life]bool // of whom (0: all), what
	out   []string
}

// copyOf is a replica.
type copyOf struct {
	version, sent, pending, floor uint64
	target                        attributes.Life
	entries                       map[string]attributes.Entry
}

func newPlain(self attributes.Life) *plain {
	return &plain{
		self: self, view: map[attributes.Life]*copyOf{self: {entries: map[string]attributes.Entry{}}},
		peers: map[attributes.Life]bool{}, owed: map[attributes.Life]pendingOffer{}, last: -core.Time(time.Hour),
	}
}

func (p *plain) send(to attributes.Life, m attributes.Message) {
	p.out = append(p.out, fmt.Sprintf("to %s: %s", nameOf(to), messageText(m)))
}

func (p *plain) want(of, life attributes.Life) {
	if p.wants[of] == nil {
		p.wants[of] = map[attributes.Life]bool{}
	}
	p.wants[of][life] = true
}

// digestOf returns the versions of those for which a rule holds.
func (p *plain) digestOf(holds func(*copyOf) bool) []attributes.Map {
	var all []attributes.Map
	for _, life := range slices.Sorted(maps.Keys(p.view)) {
		if r := p.view[life]; holds(r) {
			all = append(all, attributes.Map{Life: life, Version: r.version})
		}
	}
	return all
}

func (p *plain) step(now core.Time, in Input) []string {
	p.out, p.wants = nil, map[attributes.Life]map[attributes.Life]bool{}
	switch in.Kind {
	case NeighbourUp:
		p.peers[in.Life] = true
		if all := p.digestOf(func(r *copyOf) bool { return r.version > 0 }); len(all) > 0 {
			p.send(in.Life, &attributes.Digest{Maps: all})
		}
	case NeighbourDown:
		delete(p.peers, in.Life)
		for life, r := range p.view {
			if r.target == in.Life {
				r.pending, r.target = 0, 0
				p.want(0, life)
			}
		}
	case Joined:
		p.join(in.Life)
	case Left:
		delete(p.view, in.Life)
		p.owed[in.Life] = pendingOffer{}
	case Message:
		if p.peers[in.Life] {
			p.message(in.Life, in.Message)
		}
	}
	p.ask()
	p.update(now)
	return p.out
}

func (p *plain) join(life attributes.Life) {
	p.view[life] = &copyOf{entries: map[string]attributes.Entry{}}
	owed, any := p.owed[life]
	delete(p.owed, life)
	switch {
	case any && p.peers[owed.from]:
		p.offer(owed.from, life, owed.version)
	case any:
		p.want(0, life)
	}
}

func (p *plain) offer(from, life attributes.Life, version uint64) {
	if r := p.view[life]; version > r.version && version > r.pending {
		r.pending, r.target = version, from
		p.want(from, life)
	}
}

func (p *plain) message(from attributes.Life, m attributes.Message) {
	switch m := m.(type) {
	case *attributes.Digest:
		for _, o := range m.Maps {
			old, known := p.owed[o.Life]
			switch {
			case o.Life == p.self:
			case p.view[o.Life] != nil:
				p.offer(from, o.Life, o.Version)
			case !known || old.version > 0 && old.version < o.Version:
				p.owed[o.Life] = pendingOffer{from: from, version: o.Version}
			}
		}
	case *attributes.Request:
		reply := &attributes.Reply{}
		for _, ask := range m.Maps {
			if s := p.section(ask); s.Version > 0 || !m.Push {
				reply.Sections = append(reply.Sections, s)
			}
		}
		if len(reply.Sections) > 0 {
			p.send(from, reply)
		}
	case *attributes.Reply:
		for i := range m.Sections {
			p.merge(from, &m.Sections[i])
		}
	}
}

func (p *plain) section(ask attributes.Map) attributes.Section {
	s := attributes.Section{Life: ask.Life}
	r := p.view[ask.Life]
	if r == nil || r.version <= ask.Version {
		return s
	}
	if s.Base = ask.Version; s.Base < r.floor {
		s.Base = 0
	}
	s.Version, s.Floor = r.version, r.floor
	for _, e := range r.entries {
		if e.Version > s.Base {
			s.Entries = append(s.Entries, e)
		}
	}
	slices.SortFunc(s.Entries, func(a, b attributes.Entry) int { return int(a.Version) - int(b.Version) })
	return s
}

func (p *plain) merge(from attributes.Life, s *attributes.Section) {
	r := p.view[s.Life]
	if r == nil || s.Life == p.self {
		return
	}
	if s.Version > 0 && s.Base <= r.version && s.Version > r.version {
		before, old := r.version, r.entries
		if s.Base == 0 {
			r.entries = map[string]attributes.Entry{}
		}
		for _, e := range s.Entries {
			if s.Base == 0 || e.Version > before {
				r.entries[e.Key] = e
			}
		}
		r.version, r.floor = s.Version, max(r.floor, s.Floor)
		maps.DeleteFunc(r.entries, func(_ string, e attributes.Entry) bool {
			return e.Deleted && e.Version <= r.floor && e.Version < r.version
		})
		p.notice(s, before, old)
	}
	switch {
	case r.pending == 0:
	case r.version >= r.pending:
		r.pending, r.target = 0, 0
	case r.target == from:
		r.pending, r.target = 0, 0
		p.want(0, s.Life)
	}
}

func (p *plain) notice(s *attributes.Section, before uint64, old map[string]attributes.Entry) {
	var keys []string
	for _, e := range slices.SortedFunc(maps.Values(old), func(a, b attributes.Entry) int { return int(a.Version) - int(b.Version) }) {
		if _, kept := p.view[s.Life].entries[e.Key]; !kept && !e.Deleted && s.Base == 0 && !slices.ContainsFunc(s.Entries, func(n attributes.Entry) bool { return n.Key == e.Key }) {
			keys = append(keys, e.Key)
		}
	}
	for _, e := range s.Entries {
		if e.Version > before {
			keys = append(keys, e.Key)
		}
	}
	p.out = append(p.out, fmt.Sprintf("notice %s %d..%d %s", nameOf(s.Life), before, s.Version, strings.Join(keys, " ")))
}

// ask sends the requests of a step.
func (p *plain) ask() {
	for _, of := range slices.Sorted(maps.Keys(p.wants)) {
		m := &attributes.Request{Push: of == 0}
		for _, life := range slices.Sorted(maps.Keys(p.wants[of])) {
			if r := p.view[life]; r != nil && (of == 0) == (r.pending == 0) {
				m.Maps = append(m.Maps, attributes.Map{Life: life, Version: r.version})
			}
		}
		for _, to := range slices.Sorted(maps.Keys(p.peers)) {
			if (of == 0 || of == to) && len(m.Maps) > 0 {
				p.send(to, m)
			}
		}
	}
}

func (p *plain) update(now core.Time) {
	news := p.digestOf(func(r *copyOf) bool { return r.version > r.sent })
	if len(news) == 0 || now.Sub(p.last) < period {
		return
	}
	for _, m := range news {
		p.view[m.Life].sent = m.Version
	}
	for _, to := range slices.Sorted(maps.Keys(p.peers)) {
		p.send(to, &attributes.Digest{Maps: news})
		p.last = now
	}
}

// TestOracle (14 to 19) gives a core and the plain one the same inputs, of any sort and in
// any order: they send and report the same.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trial, slow := newTrial(), newPlain(life("a"))
		member := rapid.SampledFrom([]string{"b", "c", "p", "q"})
		peer := rapid.SampledFrom([]string{"b", "c"})
		version := rapid.Uint64Range(0, 6)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			var line string
			switch who := member.Draw(t, "who"); rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				line = "join " + who
			case 1:
				line = "left " + who
			case 2:
				line = "up " + peer.Draw(t, "peer")
			case 3:
				line = "down " + peer.Draw(t, "peer")
			case 4, 5:
				line = fmt.Sprintf("from %s digest %s:%d a:9", peer.Draw(t, "peer"), who, version.Draw(t, "version")+1)
			case 6:
				line = fmt.Sprintf("from %s %s %s:%d a:%d", peer.Draw(t, "peer"), rapid.SampledFrom([]string{"request", "push"}).Draw(t, "kind"), who, version.Draw(t, "version"), version.Draw(t, "version"))
			case 7, 8:
				line = fmt.Sprintf("from %s reply %s", peer.Draw(t, "peer"), drawSection(t, who))
			case 9:
				trial.now = trial.now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "ms")) * time.Millisecond)
				line = "pass 0s"
			}
			in := Input{}
			words := strings.Fields(line)
			if words[0] != "pass" {
				in = inputOf(words)
			}
			if skip(slow, in) {
				continue
			}
			fast := trial.do(line)
			got, want := strings.Split(strings.TrimSpace(fast), "\n"), slow.step(trial.now, in)
			if fast == "" {
				got = nil
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%s:\n%s\nthe plain one:\n%s", line, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// skip reports whether an input means nothing to a core, which the plain one does
// not ask.
func skip(p *plain, in Input) bool {
	switch _, known := p.view[in.Life]; in.Kind {
	case Joined:
		return known
	case Left:
		return !known
	case NeighbourUp:
		return p.peers[in.Life]
	case NeighbourDown:
		return !p.peers[in.Life]
	}
	return false
}

// drawSection draws a section of a map, whose entry of version v has the key k and
// v mod 3, and is a tombstone where v is a multiple of 4.
func drawSection(t *rapid.T, who string) string {
	base := rapid.IntRange(0, 5).Draw(t, "base")
	to := base + rapid.IntRange(0, 4).Draw(t, "rise")
	if to == base {
		return who + ":none"
	}
	floor := rapid.IntRange(0, base).Draw(t, "floor")
	text := fmt.Sprintf("%s:%d..%d^%d", who, base, to, floor)
	for v := base + 1; v <= to; v++ {
		if v <= to-3 {
			continue // overwritten since
		}
		if v%4 == 0 {
			text += fmt.Sprintf(" -k%d@%d", v%3, v)
		} else {
			text += fmt.Sprintf(" k%d=v%d@%d", v%3, v, v)
		}
	}
	return text
}
