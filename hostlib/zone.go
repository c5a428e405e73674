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
	for x := range h.members.Notices(h.ctx) {
		if x.Kind == membership.Left && x.Cause != membership.Departed {
			h.died(x)
		}
	}
	if h.ctx.Err() != nil {
		return
	}
	err := h.members.Err()
	if err != nil {
		h.end()
	}
	h.cfg.Log.Warn("the zone does not report any more who dies", slog.Any("error", err))
}

// died reports the end of a life of a host to all communicators that have met it in that
// life. Whoever has says so to all members.
func (h *Host) died(x membership.Notice) {
	for _, l := range h.links.toHost(x.Member.Name) {
		l.died(x.Member.Version.Incarnation, "membership reports: "+x.String())
	}
	h.diedInRecoveries(x)
}
