package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/driver/attach"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/membership"
)

// Members returns this host as a node of its zone; nil without Config.Membership. The host
// closes it: Host.Close leaves the zone.
func (h *Host) Members() *membership.Node { return h.members }

// enter makes the host reachable as a node of its zone.
func (h *Host) enter(ctx context.Context) error {
	node, err := attach.Membership(ctx, h.cfg.zone(), func(ctx context.Context, p attach.Place) (*peer.Host, error) {
		if h.cfg.TLS == nil && !h.cfg.AllowPlaintext { // keys alone tie nobody to a name
			if at, err := netip.ParseAddrPort(p.Listener.Addr().String()); err != nil || !at.Addr().IsLoopback() {
				return nil, fmt.Errorf("%w: at %v: without certificates only loopback addresses are served, unless AllowPlaintext", ErrConfig, p.Listener.Addr())
			}
		}
		return h.listen(ctx, p)
	})
	if err == nil {
		h.members = node.(*membership.Node)
	}
	return err
}

// leave has the host leave its zone.
func (h *Host) leave(ctx context.Context) error {
	if h.members == nil {
		return nil
	}
	if err := h.members.Leave(ctx, 0); !errors.Is(err, membership.ErrClosed) {
		return err
	}
	return nil
}

// expelled returns why the host's node in its zone has ended by itself.
func (h *Host) expelled() error {
	if h.members == nil {
		return nil
	}
	select {
	case <-h.members.Done():
		return h.members.Err()
	default:
		return nil
	}
}

// watchZone ends communicators whose members have died, until the host is
// closed.
func (h *Host) watchZone() {
	known := lives{}
	for x := range h.members.Notices(h.ctx) {
		if known.end(x) && x.Cause != membership.Departed {
			h.died(x)
		}
	}
	if h.ctx.Err() == nil {
		h.cfg.Log.Warn("the zone does not report any more who dies", slog.Any("error", h.expelled()))
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
	for _, l := range h.links.toHost(x.Member.Name) {
		h.cfg.Log.Info("a member has died, says the zone", slog.String("communicator", l.c.name), slog.Int("rank", l.peer), slog.String("notice", x.String()))
		l.dead("the zone of hosts says: " + x.String())
	}
}
