package peer

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/core/peering"
)

// LoseRail ends all paths of a rail of this host: its link is down, say. They are made again
// when it carries something.
func (h *Host) LoseRail(name string, why error) {
	why = fmt.Errorf("%w: %s: %w", ErrRailDown, name, why)
	h.losePaths(func(c *Conn, r *RailPair) bool {
		is := r.Own.Name == name
		if is {
			c.sayDown(r) // nothing of that goes out on the rail itself
		}
		return is
	}, why)
}

// losePair ends all paths with a host on a pair of rails, on both sides, as long as the
// connections have others, or has the side end them that decides: what that keeps as its last
// path must not be ended by the other one, which may not have noticed yet that others have ended.
func (h *Host) losePair(host string, pair *RailPair, why error) {
	h.cfg.Log.Warn("a path is dead", slog.String("peer", host), slog.String("rail", pair.Own.Name), slog.String("to", pair.Theirs.Name), slog.Any("error", why))
	h.losePaths(func(c *Conn, r *RailPair) bool {
		is := c.peer.Name == host && r.is(pair)
		if is {
			c.sayDown(r)
		}
		return is && c.decides()
	}, why)
}

// losePaths ends paths of all connections, but the last of each.
func (h *Host) losePaths(isLost func(*Conn, *RailPair) bool, why error) {
	h.rails.losing.Lock()
	defer h.rails.losing.Unlock()
	for _, c := range h.shared() {
		c.losePaths(isLost, why)
	}
}

// losePaths ends paths of one connection, but the last. The caller holds the lock losing.
func (c *Conn) losePaths(isLost func(*Conn, *RailPair) bool, why error) {
	all := c.living()
	left := len(all)
	for _, p := range all {
		if r := p.Rails(); r != nil && left > 1 && isLost(c, r) {
			p.close(why)
			left--
		}
	}
}

// decides reports whether this side says which of the connection's paths end: it has called,
// and adds paths. The other side asks for that. If both did, each might end other paths: after
// all rails were silent for a moment, say, or when each removes a rail.
func (c *Conn) decides() bool { return c.id&peering.Dialled != 0 }

// sayDown has the other side end its paths on a pair of rails, which may look well there.
func (c *Conn) sayDown(pair *RailPair) {
	what := downOf(pair.Own.Name, pair.Theirs.Name)
	for _, p := range c.all() {
		if r := p.Rails(); r == nil || !r.is(pair) {
			p.say(what...)
		}
	}
}

// downOf returns what says so of two rails.
func downOf(own, theirs string) []byte {
	what := append([]byte{railDown, byte(len(theirs))}, theirs...)
	return append(what, own...)
}

// hearDown takes that the other side has found a pair of rails dead. The side that decides ends
// all paths on it; the other one that of the connection on which it was said.
func (c *Conn) hearDown(b []byte) error {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return ErrFrame
	}
	own, theirs := string(b[1:1+b[0]]), string(b[1+b[0]:])
	isIt := func(_ *Conn, r *RailPair) bool { return r.Own.Name == own && r.Theirs.Name == theirs }
	why := fmt.Errorf("%w: %s has found it dead", ErrRailDown, cmp.Or(c.peer.Name, "the other side"))
	if !c.decides() {
		c.host.rails.losing.Lock()
		defer c.host.rails.losing.Unlock()
		c.losePaths(isIt, why)
		return nil
	}
	all := c.living()
	for _, p := range all {
		if r := p.Rails(); r != nil && isIt(c, r) {
			if len(all) > 1 {
				c.host.losePair(c.peer.Name, r, why)
			}
			return nil
		}
	}
	what := downOf(own, theirs)
	for _, p := range all { // it has ended here
		p.reply(what...)
	}
	return nil
}
