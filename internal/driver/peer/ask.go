package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// errNamed is the end of a call that has only asked for this host's name.
var errNamed = errors.New("peer: it has asked for the name")

// Ask returns the name of the host at an address: with certificates the one that its
// certificate names.
func (h *Host) Ask(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.GreetWithin)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	p := h.newPath(0)
	defer p.close(errNamed)
	a, err := p.call(ctx, h.cfg.Dial, address, &peering.Action{Greeting: greeting.Greeting{
		Class: uint8(Control), From: h.cfg.Name, Incarnation: h.Incarnation(), Call: 1,
	}})
	if err == nil {
		if a.Code != greeting.Named {
			err = fmt.Errorf("%w: %s", peering.ErrRefused, a.Reason)
		} else if p.tls != nil {
			var host string
			if host, err = p.certified(); err == nil && host != peering.HostOf(a.Reason) {
				err = fmt.Errorf("%w: it is %s, and says that it is %q", pki.ErrWrongRole, host, a.Reason)
			}
		}
	}
	if err != nil {
		return "", fmt.Errorf("peer: asking who is at %s: %w", address, err)
	}
	return a.Reason, nil
}
