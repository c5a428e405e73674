package p4rt

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	p4config "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/tributary-fabric/tributary/p4"
)

// keyOf returns an entry as it is found or deleted, without its action.
func (s *Schema) keyOf(e *p4.Entry) (*p4v1.TableEntry, error) {
	t := s.tables[e.Table]
	switch {
	case t == nil:
		return nil, fmt.Errorf("%w: it has no table %#x", ErrEntry, e.Table)
	case t.fixed:
		return nil, fmt.Errorf("%w: the entries of table %s are the program's own", ErrEntry, t.name)
	case t.prioritised() != (e.Priority > 0) || e.Priority < 0 || e.Priority > math.MaxInt32:
		return nil, fmt.Errorf("%w: table %s: priority %d, want above 0 in a table with optional fields and 0 in others", ErrEntry, t.name, e.Priority)
	}
	m := &p4v1.TableEntry{TableId: e.Table, Priority: int32(e.Priority)}
	left := len(e.Match)
	for _, f := range t.fields {
		i := slices.IndexFunc(e.Match, func(g p4.Field) bool { return g.ID == f.id })
		if i < 0 {
			if f.kind == p4config.MatchField_EXACT {
				return nil, fmt.Errorf("%w: table %s: no value for %s", ErrEntry, t.name, f.name)
			}
			continue
		}
		left--
		match, err := f.encode(e.Match[i])
		if err != nil {
			return nil, fmt.Errorf("table %s: %s: %w", t.name, f.name, err)
		}
		m.Match = append(m.Match, match)
	}
	if left > 0 {
		return nil, fmt.Errorf("%w: table %s: a value for a field that it does not have, or two for one", ErrEntry, t.name)
	}
	return m, nil
}

// entry returns an entry as it is written.
func (s *Schema) entry(e *p4.Entry) (*p4v1.TableEntry, error) {
	m, err := s.keyOf(e)
	if err != nil {
		return nil, err
	}
	t, a := s.tables[e.Table], s.actions[e.Action]
	switch {
	case a == nil || !slices.Contains(t.actions, e.Action):
		return nil, fmt.Errorf("%w: table %s has no action %#x", ErrEntry, t.name, e.Action)
	case len(e.Params) != len(a.params):
		return nil, fmt.Errorf("%w: table %s: action %s takes %d parameters, not %d", ErrEntry, t.name, a.name, len(a.params), len(e.Params))
	}
	set := &p4v1.Action{ActionId: e.Action}
	for i, p := range a.params {
		value, err := shorten(e.Params[i], p.width)
		if err != nil {
			return nil, fmt.Errorf("table %s: action %s: %s: %w", t.name, a.name, p.name, err)
		}
		set.Params = append(set.Params, &p4v1.Action_Param{ParamId: p.id, Value: value})
	}
	m.Action = &p4v1.TableAction{Type: &p4v1.TableAction_Action{Action: set}}
	return m, nil
}

func (f *field) encode(g p4.Field) (*p4v1.FieldMatch, error) {
	value, err := shorten(g.Value, f.width)
	if err != nil {
		return nil, err
	}
	m := &p4v1.FieldMatch{FieldId: f.id}
	if f.kind != p4config.MatchField_LPM && g.Prefix != 0 {
		return nil, fmt.Errorf("%w: a prefix of %d bits in a field that has no prefixes", ErrEntry, g.Prefix)
	}
	switch f.kind {
	case p4config.MatchField_LPM:
		// A prefix of no bits matches everything: such a field is left out.
		if g.Prefix < 1 || g.Prefix > int(f.width) || !inPrefix(g.Value, int32(g.Prefix), f.width) {
			return nil, fmt.Errorf("%w: prefix %s/%d, want one of 1 to %d bits, with none set beyond", ErrEntry, f.look.words(g.Value), g.Prefix, f.width)
		}
		m.FieldMatchType = &p4v1.FieldMatch_Lpm{Lpm: &p4v1.FieldMatch_LPM{Value: value, PrefixLen: int32(g.Prefix)}}
	case p4config.MatchField_OPTIONAL:
		m.FieldMatchType = &p4v1.FieldMatch_Optional_{Optional: &p4v1.FieldMatch_Optional{Value: value}}
	default: // NewSchema lets no others in
		m.FieldMatchType = &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: value}}
	}
	return m, nil
}

func (f *field) decode(m *p4v1.FieldMatch) (p4.Field, error) {
	var value []byte
	var prefix int
	switch f.kind {
	case p4config.MatchField_LPM:
		value, prefix = m.GetLpm().GetValue(), int(m.GetLpm().GetPrefixLen())
	case p4config.MatchField_OPTIONAL:
		value = m.GetOptional().GetValue()
	default:
		value = m.GetExact().GetValue()
	}
	long, err := lengthen(value, f.width)
	return p4.Field{ID: f.id, Value: long, Prefix: prefix}, err
}

// decode is the inverse of entry. Errors wrap ErrMalformed.
func (s *Schema) decode(m *p4v1.TableEntry) (p4.Entry, error) {
	e := p4.Entry{Table: m.GetTableId(), Priority: int(m.GetPriority())}
	t := s.tables[e.Table]
	if t == nil {
		return e, fmt.Errorf("%w: an entry of a table %#x", ErrMalformed, e.Table)
	}
	for _, sent := range m.GetMatch() {
		i := slices.IndexFunc(t.fields, func(f field) bool { return f.id == sent.GetFieldId() })
		if i < 0 {
			return e, fmt.Errorf("%w: table %s: an entry with a field %#x", ErrMalformed, t.name, sent.GetFieldId())
		}
		f := &t.fields[i]
		g, err := f.decode(sent)
		if err != nil {
			return e, fmt.Errorf("%w: table %s: %s: %w", ErrMalformed, t.name, f.name, err)
		}
		e.Match = append(e.Match, g)
	}
	s.sortFields(&e)
	set := m.GetAction().GetAction()
	e.Action = set.GetActionId()
	a := s.actions[e.Action]
	if a == nil || len(set.GetParams()) != len(a.params) {
		return e, fmt.Errorf("%w: table %s: an entry with action %#x of %d parameters", ErrMalformed, t.name, e.Action, len(set.GetParams()))
	}
	for _, p := range a.params {
		i := slices.IndexFunc(set.GetParams(), func(q *p4v1.Action_Param) bool { return q.GetParamId() == p.id })
		if i < 0 {
			return e, fmt.Errorf("%w: table %s: action %s without %s", ErrMalformed, t.name, a.name, p.name)
		}
		value, err := lengthen(set.GetParams()[i].GetValue(), p.width)
		if err != nil {
			return e, fmt.Errorf("%w: table %s: action %s: %s: %w", ErrMalformed, t.name, a.name, p.name, err)
		}
		e.Params = append(e.Params, value)
	}
	if _, err := s.entry(&e); err != nil { // the same rules as for what is sent
		return e, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return e, nil
}

// sortFields brings an entry's fields into the order of the table's keys.
func (s *Schema) sortFields(e *p4.Entry) {
	place := func(id uint32) int {
		return slices.IndexFunc(s.tables[e.Table].fields, func(f field) bool { return f.id == id })
	}
	slices.SortStableFunc(e.Match, func(a, b p4.Field) int { return cmp.Compare(place(a.ID), place(b.ID)) })
}

// Normal returns what is the same as w in the one form that Diff compares: as
// it would be read from a target. Errors wrap ErrEntry: something does not fit
// the program, or is there twice.
func (s *Schema) Normal(w p4.Program) (p4.Program, error) {
	n := newNormal(ErrEntry)
	for i := range w.Entries {
		m, err := s.entry(&w.Entries[i])
		if err != nil {
			return n.Program, err
		}
		e, err := s.decode(m)
		if err != nil {
			return n.Program, err
		}
		if err := n.addEntry(s, e); err != nil {
			return n.Program, err
		}
	}
	for _, g := range w.Groups {
		normal, err := normalGroup(g)
		if err != nil {
			return n.Program, err
		}
		if err := n.addGroup(normal); err != nil {
			return n.Program, err
		}
	}
	return n.Program, nil
}

// normal is a p4.Program in its normal form, in which nothing is there twice.
type normal struct {
	p4.Program
	twice   error           // that is wrapped where something is
	entries map[string]bool // by key
	groups  map[uint32]bool // by id
}

func newNormal(twice error) *normal {
	return &normal{twice: twice, entries: make(map[string]bool), groups: make(map[uint32]bool)}
}

func (p *normal) addEntry(s *Schema, e p4.Entry) error {
	key := entryKey(&e)
	if p.entries[key] {
		return fmt.Errorf("%w: twice: %s", p.twice, s.words(Update{Entry: &e}))
	}
	p.entries[key] = true
	p.Entries = append(p.Entries, e)
	return nil
}

func (p *normal) addGroup(g p4.Group) error {
	if p.groups[g.ID] {
		return fmt.Errorf("%w: multicast group %d is there twice", p.twice, g.ID)
	}
	p.groups[g.ID] = true
	p.Groups = append(p.Groups, g)
	return nil
}
