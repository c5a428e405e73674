package hierarchy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// A solo is one node with its role, to which everything comes from the test.
type solo struct {
	w    *world
	a    *actor
	zone wire.Zone
	log  strings.Builder
}

// do does what an event's name says.
func (s *solo) do(event string) {
	words := strings.Fields(event)
	switch words[0] {
	case "pass":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.w.t.Fatalf("%v", err)
		}
		for end := s.w.now.Add(d); ; s.a.step(nil) {
			if due := max(s.a.deadline(), s.w.now); due <= end {
				s.w.now = due
				continue
			}
			s.w.now = end
			return
		}
	case "report": // what another node of its zone has set: report s2 delegates
		other := s.w.named(words[1])
		key, value := DelegateKey, words[2]
		if s.a.supervisor != nil {
			key, value = keyOf(s.zone), string(publication{Summary: Summary{len(words[2]) - 1, 3, 7}}.bytes())
		}
		s.a.news = append(s.a.news, news{about: other, kind: keyNews, key: key, value: &value})
		s.w.hear(s.a, 1)
	case "lose":
		for _, name := range words[1:] {
			s.a.news = append(s.a.news, news{about: s.w.named(name), kind: leaveNews})
		}
		s.w.hear(s.a, len(words)-1)
	default:
		s.link(words)
	}
}

// link has something come on a link: of a supervisor, the one that was accepted
// from the named node, numbered as it is; of a delegate the one that it dialled.
func (s *solo) link(words []string) {
	number, kind := Link(0), words[len(words)-1]
	name := words[0]
	if s.a.supervisor != nil {
		number = Link(2*int(name[len(name)-1]) + 1)
	} else if l := s.a.delegate.linkTo(s.w.named(name).id); l != nil {
		number = l.link
	}
	id := gossip.ID("d9@10.9.9.9:1")
	if name[0] == 'h' {
		id = s.w.named(name[:2]).id
	}
	version := gossip.Version{Incarnation: 1, Minor: 1}
	in := Input{Kind: Received, Link: number}
	switch kind {
	case "hello":
		s.a.step(nil, Input{Kind: Accepted, Link: number})
		in.Message = &wire.Hello{Zone: s.zone, From: id, Incarnation: 1}
	case "fetch":
		s.a.step(nil, Input{Kind: Accepted, Link: number})
		in.Message = &wire.Fetch{Zone: s.zone, Follow: true}
	case "base":
		in.Message = &wire.Change{Zone: s.zone, Base: true, Last: true, Alives: []wire.Member{{ID: id, Version: version}}}
	case "change":
		in.Message = &wire.Change{Zone: s.zone, Leaves: []wire.Leave{{ID: id, Version: version}}, Alives: []wire.Member{{ID: "x@10.9.9.8:1", Version: version}}}
	case "connected":
		in.Kind = Connected
	case "fails":
		in.Kind = Failed
	default: // s1 assigns s1 s2
		m := &wire.Assign{Zone: s.zone}
		for _, other := range words[2:] {
			m.Supervisors = append(m.Supervisors, s.w.named(other).id)
		}
		in.Message = m
	}
	s.a.step(nil, in)
}

// String reports the role's state.
func (s *solo) String() string {
	if d := s.a.delegate; d != nil {
		state := "settled"
		switch {
		case d.active:
			state = "active"
		case !d.settled:
			return "waiting"
		}
		for i := range d.links {
			l := &d.links[i]
			state += " " + l.to.Name() + map[bool]string{true: "+", false: "?"}[l.open]
			if l.assigned {
				state += "+"
			}
		}
		return state
	}
	b := s.a.supervisor.base(s.zone)
	switch {
	case b == nil:
		return "absent"
	case b.leaving:
		return fmt.Sprintf("leaving %d of %d", len(b.entries), s.a.supervisor.complete(s.zone))
	case b.slots == 0:
		return fmt.Sprintf("lingering %d", len(b.entries))
	}
	return fmt.Sprintf("held %d of %d", len(b.entries), s.a.supervisor.complete(s.zone))
}

// newSolo returns a node whose zone has settled: of three supervisors, for a zone
// that is at home there, the one that goes first when there are too many; or of
// three nodes of a base zone the first that is elected.
func newSolo(t *testing.T, supervisor bool) *solo {
	w := newWorld(t, 1, 1, 3, 3, DefaultSettings())
	s := &solo{w: w}
	w.solo = true
	group := w.bases[0]
	if supervisor {
		group = w.mesh
	}
	for _, a := range group.nodes {
		w.hear(a, len(a.news))
	}
	w.now = w.now.Add(DefaultSettings().Settle)
	if supervisor {
		s.a = w.mesh.nodes[0]
		s.a.step(nil)
		for !slices.Contains(s.a.supervisor.holdings.assigned(s.zone, s.a, 2), s.a.life) || slices.ContainsFunc(w.mesh.nodes, func(b *actor) bool { return weight(s.zone, b.life) > weight(s.zone, s.a.life) }) {
			s.zone++
		}
	} else {
		s.a = group.nodes[Candidates(group.nodes[0], 0, 1)[0]]
		w.now = 0
	}
	return s
}

var supervisorStates = []struct {
	name string
	by   []string
}{
	{"absent", nil},
	{"held", []string{"h4 hello", "h4 base"}},
	{"lingering", []string{"h4 hello", "h4 base", "h4 fails"}},
	{"leaving", []string{"h4 hello", "h4 base", "report s2 0", "report s3 0"}},
}

var supervisorEvents = []string{
	"h4 hello", "h5 hello", "h4 base", "h5 base", "h4 change", "h4 fails", "x9 fetch",
	"report s2 0", "report s3 0", "report s2 01", "report s3 01", "lose s2", "lose s2 s3", "pass 4s", "pass 11m",
}

var delegateStates = []struct {
	name string
	by   []string
}{
	{"waiting", nil},
	{"active", []string{"pass 500ms"}},
	{"asking", []string{"pass 500ms", "s1 connected"}},
	{"assigned", []string{"pass 500ms", "s1 connected", "s1 assigns s1 s2"}},
	{"linked", []string{"pass 500ms", "s1 connected", "s1 assigns s1 s2", "s2 connected", "s2 assigns s1 s2"}},
}

var delegateEvents = []string{
	"s1 connected", "s1 assigns s1 s2", "s1 assigns s2 s3", "s1 assigns s1", "s2 assigns s2 s3", "s1 fails", "s2 fails",
	"report h5 yes", "report h4 yes", "lose h5", "pass 400ms", "pass 4s",
}

// table reports, for both roles and in every state, what each event brings about
// and what the state is then.
func table(t *testing.T) string {
	var b strings.Builder
	row := func(supervisor bool, state string, by []string, event string) {
		s := newSolo(t, supervisor)
		// The first in the order of election may be any of the three.
		event, by = s.names(event), slices.Clone(by)
		for _, one := range by {
			s.do(one)
		}
		s.w.log = func(format string, args ...any) {
			line := strings.TrimSpace(fmt.Sprintf(format, args...))
			_, line, _ = strings.Cut(line, "  ")
			s.log.WriteString("; " + strings.TrimPrefix(line, s.a.id.Name()+" "))
		}
		notices := len(s.a.notices)
		s.do(event)
		for _, n := range s.a.notices[notices:] {
			fmt.Fprintf(&s.log, "; notice %s %s", []string{"join", "leave"}[n.Kind], n.ID.Name())
		}
		line := fmt.Sprintf("%-11s%-20s%-22s%s", state, event, s, strings.TrimPrefix(s.log.String(), "; "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, s := range delegateStates {
		for _, event := range delegateEvents {
			row(false, s.name, s.by, event)
		}
	}
	b.WriteString("\n")
	for _, s := range supervisorStates {
		for _, event := range supervisorEvents {
			row(true, s.name, s.by, event)
		}
	}
	return strings.ReplaceAll(b.String(), "\n\n", "\n")
}

// names has an event of the base zone be of other nodes than the one that is
// stepped.
func (s *solo) names(event string) string {
	if s.a.supervisor != nil {
		return event
	}
	var others []string
	for _, a := range s.w.bases[0].nodes {
		if a != s.a {
			others = append(others, a.id.Name())
		}
	}
	return strings.NewReplacer("h4", others[0], "h5", others[1]).Replace(event)
}
