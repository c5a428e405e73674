package hierarchy

import (
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// entry is a node of a base zone.
type entry struct {
	id      gossip.ID
	key     gossip.Key
	version gossip.Version // the newest that a delegate has reported
	vouch   uint32         // delegates, by slot, who have it in their views; not 0 unless there is no delegate
}

// view is a base zone's view as its delegates report it: who is in the view of any
// of them. So neither a slow delegate's late word nor a zone that has parted
// makes a node dead that lives for another delegate. As all delegates are high
// priority monitors they learn of a death together, and this costs no time.
type view struct {
	zone    wire.Zone
	entries []entry
	index   map[gossip.Key]int32
	digest  uint64
}

func newView(zone wire.Zone) view { return view{zone: zone, index: map[gossip.Key]int32{}} }

// alive takes a delegate's word that a node is in its view.
func (w *view) alive(m *wire.Member, slot int, out *Output) {
	key := m.ID.Key()
	i, in := w.index[key]
	if !in {
		w.index[key] = int32(len(w.entries))
		w.entries = append(w.entries, entry{id: m.ID, key: key, version: m.Version, vouch: 1 << slot})
		w.digest ^= uint64(key.Life(m.Version.Incarnation))
		w.notice(out, m.ID, member.Join, m.Version, 0, gossip.Exit{})
		return
	}
	e := &w.entries[i]
	e.vouch |= 1 << slot
	if !e.version.Before(m.Version) {
		return
	}
	old := e.version
	e.version = m.Version
	if old.Incarnation != m.Version.Incarnation {
		w.digest ^= uint64(key.Life(old.Incarnation)) ^ uint64(key.Life(m.Version.Incarnation))
		w.notice(out, m.ID, member.Leave, old, member.Restarted, gossip.Exit{})
		w.notice(out, m.ID, member.Join, m.Version, 0, gossip.Exit{})
	}
}

// leave takes a delegate's word that a node is not in its view any more.
func (w *view) leave(l *wire.Leave, slot int, out *Output) {
	i, in := w.index[l.ID.Key()]
	if !in {
		return
	}
	if e := &w.entries[i]; e.vouch&^(1<<slot) != 0 {
		e.vouch &^= 1 << slot
		return
	}
	w.remove(i, l.Version, member.Cause(l.Cause), l.Exit, out)
}

func (w *view) remove(i int32, v gossip.Version, cause member.Cause, exit gossip.Exit, out *Output) {
	e := w.entries[i]
	w.digest ^= uint64(e.key.Life(e.version.Incarnation))
	last := len(w.entries) - 1
	w.entries[i] = w.entries[last]
	w.index[w.entries[i].key] = i
	w.entries[last] = entry{}
	w.entries = w.entries[:last]
	delete(w.index, e.key)
	w.notice(out, e.id, member.Leave, v, cause, exit)
}

func (w *view) notice(out *Output, id gossip.ID, kind member.NoticeKind, v gossip.Version, cause member.Cause, exit gossip.Exit) {
	out.Notices = append(out.Notices, Notice{Zone: w.zone, Kind: kind, ID: id, Version: v, Cause: cause, Exit: exit})
}

// reconcile removes whom no delegate has in its view: they left while there was
// none to report.
func (w *view) reconcile(out *Output) {
	for i := int32(len(w.entries)) - 1; i >= 0; i-- {
		if e := &w.entries[i]; e.vouch == 0 {
			w.remove(i, e.version, member.Suspected, gossip.Exit{}, out)
		}
	}
}

// unvouch takes a delegate's word back.
func (w *view) unvouch(slot int) {
	for i := range w.entries {
		w.entries[i].vouch &^= 1 << slot
	}
}

// members returns who is in the view, in no particular order.
func (w *view) members() []wire.Member {
	all := make([]wire.Member, len(w.entries))
	for i := range w.entries {
		all[i] = wire.Member{ID: w.entries[i].id, Version: w.entries[i].version}
	}
	return all
}
