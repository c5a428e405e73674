package p4rt

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tributary-fabric/tributary/p4"
)

// An Op is what an update does.
type Op uint8

// The operations.
const (
	Insert Op = iota + 1
	Modify
	Delete
)

// String returns the operation's name.
func (o Op) String() string {
	switch o {
	case Insert:
		return "insert"
	case Modify:
		return "modify"
	case Delete:
		return "delete"
	}
	return "operation " + strconv.Itoa(int(o))
}

// Update changes one entry or one group; the other is nil. Of what is deleted,
// action and replicas are not looked at.
type Update struct {
	Op    Op
	Entry *p4.Entry
	Group *p4.Group
}

// table returns the id of the table that u is about; 0: it is about a group.
func (u Update) table() uint32 {
	if u.Entry == nil {
		return 0
	}
	return u.Entry.Table
}

// Diff returns the updates that make want of have, arranged. Both are sets, in
// the form in which Normal returns them. What is replaced under another key is
// gone meanwhile: a full table has no room for both.
func (s *Schema) Diff(have, want p4.Program) []Update {
	entries := diff(have.Entries, want.Entries, entryKey, sameAction, func(o Op, e *p4.Entry) Update { return Update{Op: o, Entry: e} })
	groups := diff(have.Groups, want.Groups, groupKey, sameReplicas, func(o Op, g *p4.Group) Update { return Update{Op: o, Group: g} })
	return s.arrange(append(entries, groups...))
}

// arrange returns updates in an order in which they can be written: first
// entries go, those of the tables that are written last before others; then
// groups come, then entries, in the order of tables; groups that nothing needs
// any more go last.
func (s *Schema) arrange(updates []Update) []Update {
	const entriesGo, groupsCome, entriesCome, groupsGo = 0, 1, 2, 3
	place := func(u Update) (stage, rank int) {
		switch {
		case u.Entry == nil && u.Op == Delete:
			return groupsGo, 0
		case u.Entry == nil:
			return groupsCome, 0
		}
		if t := s.tables[u.Entry.Table]; t != nil { // if not, encoding it says so
			rank = t.rank
		}
		if u.Op == Delete {
			return entriesGo, -rank
		}
		return entriesCome, rank
	}
	arranged := slices.Clone(updates)
	slices.SortStableFunc(arranged, func(a, b Update) int {
		stageA, rankA := place(a)
		stageB, rankB := place(b)
		return cmp.Or(cmp.Compare(stageA, stageB), cmp.Compare(rankA, rankB))
	})
	return arranged
}

// diff returns the updates that make want of have: of what has the same key in both
// and is not the same, a Modify.
func diff[T any, K comparable](have, want []T, key func(*T) K, same func(a, b *T) bool, update func(Op, *T) Update) []Update {
	var updates []Update
	kept := make(map[K]*T, len(have))
	for i := range have {
		kept[key(&have[i])] = &have[i]
	}
	for i := range want {
		w := &want[i]
		h, there := kept[key(w)]
		delete(kept, key(w))
		if !there {
			updates = append(updates, update(Insert, w))
		} else if !same(h, w) {
			updates = append(updates, update(Modify, w))
		}
	}
	for i := range have { // in its order: that of a map is another each time
		if kept[key(&have[i])] != nil {
			updates = append(updates, update(Delete, &have[i]))
		}
	}
	return updates
}

// stepLength is the most updates of one request.
const stepLength = 256

// steps cuts updates into those that one request may carry, which a target may
// carry out in any order: those that follow each other, do the same, and are
// about one table, or about groups. Inserting and modifying is the same here.
func steps(updates []Update) [][]Update {
	var all [][]Update
	for begin := 0; begin < len(updates); {
		first, end := updates[begin], begin+1
		for end < len(updates) && end-begin < stepLength &&
			updates[end].table() == first.table() && (updates[end].Op == Delete) == (first.Op == Delete) {
			end++
		}
		all = append(all, updates[begin:end])
		begin = end
	}
	return all
}

// entryKey distinguishes a normal entry from all others.
func entryKey(e *p4.Entry) string {
	b := strconv.AppendInt(nil, int64(e.Table), 10)
	b = strconv.AppendInt(append(b, ' '), int64(e.Priority), 10)
	for _, f := range e.Match {
		b = strconv.AppendInt(append(b, ' '), int64(f.ID), 10)
		b = strconv.AppendInt(append(b, '/'), int64(f.Prefix), 10)
		b = strconv.AppendInt(append(b, ':'), int64(len(f.Value)), 10)
		b = append(append(b, ':'), f.Value...)
	}
	return string(b)
}

// sameAction reports whether two normal entries of one key do the same.
func sameAction(a, b *p4.Entry) bool {
	return a.Action == b.Action && slices.EqualFunc(a.Params, b.Params, slices.Equal)
}

func groupKey(g *p4.Group) uint32 { return g.ID }

func sameReplicas(a, b *p4.Group) bool { return slices.Equal(a.Replicas, b.Replicas) }
