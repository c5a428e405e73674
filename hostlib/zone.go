package hostlib

import (
	"log/slog"

	"github.com/tributary-fabric/tributary/membership"
)

// watchZone ends communicators whose members have died, until the host is
// closed.
func (h *Host) watchZone(w *membership.Watcher) {
	defer w.Close()
	known := lives{}
	for {
		notices, err := w.Next(h.ctx)
		if err != nil {
			if h.ctx.Err() == nil {
				h.cfg.Log.Warn("the zone does not report any more who dies", slog.Any("error", err))
			}
			return
		}
		for _, x := range notices {
			if known.end(x) && x.Cause != membership.Departed {
				h.died(x)
			}
		}
	}
}

// lives are the incarnations of the nodes in the zone, by name.
type lives map[string]uint64

// end takes a notice, and reports whether it is of the end of a node's last life.
// A node that starts again at another address may be there before its earlier life
// is found dead, which then says nothing of the present one.
func (l lives) end(x membership.Notice) bool {
	name, incarnation := x.Member.Name, x.Member.Version.Incarnation
	switch newest, ok := l[name]; {
	case x.Kind == membership.Joined:
		l[name] = max(newest, incarnation)
		return false
	case ok && newest > incarnation:
		return false
	}
	delete(l, name)
	return true
}

// died reports the links to a host in all communicators that it is dead. Whoever
// has one says so to all members.
func (h *Host) died(x membership.Notice) {
	h.mu.Lock()
	var all []*link
	for _, c := range h.comms {
		for _, l := range c.links {
			if c.members[l.peer].Host == x.Member.Name {
				all = append(all, l)
			}
		}
	}
	h.mu.Unlock()
	for _, l := range all {
		h.cfg.Log.Info("a member has died, says the zone", slog.String("communicator", l.c.name), slog.Int("rank", l.peer), slog.String("notice", x.String()))
		l.dead("the zone of hosts says: " + x.String())
	}
}
