package p4rt

import (
	"fmt"
	"strings"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"

	"github.com/tributary-fabric/tributary/p4"
)

// words returns what an update does, for people, with the program's names. The
// update need not be one that the program has.
func (s *Schema) words(u Update) string {
	var b strings.Builder
	if u.Op != 0 {
		fmt.Fprintf(&b, "%s ", u.Op)
	}
	if u.Group != nil {
		fmt.Fprintf(&b, "multicast group %d", u.Group.ID)
		for i, r := range u.Group.Replicas {
			b.WriteString(separator(i, ": to ", ", "))
			fmt.Fprintf(&b, "port %d as %d", r.Port, r.Instance)
		}
		return b.String()
	}
	if u.Entry == nil {
		return b.String() + "nothing"
	}
	t := s.tables[u.Entry.Table]
	if t == nil {
		fmt.Fprintf(&b, "entry of unknown table %#x", u.Entry.Table)
		return b.String()
	}
	fmt.Fprintf(&b, "entry of table %s", t.name)
	for i, g := range u.Entry.Match {
		b.WriteString(separator(i, " for ", ", "))
		b.WriteString(t.matchWords(g))
	}
	if u.Entry.Priority != 0 {
		fmt.Fprintf(&b, ", priority %d", u.Entry.Priority)
	}
	if u.Op != Delete {
		s.actionWords(&b, u.Entry)
	}
	return b.String()
}

func separator(i int, first, others string) string {
	if i == 0 {
		return first
	}
	return others
}

func (t *table) matchWords(g p4.Field) string {
	for _, f := range t.fields {
		if f.id != g.ID {
			continue
		}
		w := f.name + " " + f.look.words(g.Value)
		if f.kind == p4config.MatchField_LPM {
			w += fmt.Sprintf("/%d", g.Prefix)
		}
		return w
	}
	return fmt.Sprintf("unknown field %#x", g.ID)
}

func (s *Schema) actionWords(b *strings.Builder, e *p4.Entry) {
	a := s.actions[e.Action]
	if a == nil {
		fmt.Fprintf(b, ": unknown action %#x", e.Action)
		return
	}
	fmt.Fprintf(b, ": %s(", a.name)
	for i, value := range e.Params {
		b.WriteString(separator(i, "", ", "))
		if i < len(a.params) {
			b.WriteString(a.params[i].name + " " + a.params[i].look.words(value))
		}
	}
	b.WriteByte(')')
}
