// Package attach gives services above hostlib what a host shares with them. Services
// such as server collectives reach the host's connections, liveness and log by it.
// hostlib's public API has none of these types; it sets [To] instead.
package attach

import (
	"context"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// Host is what a host shares with a service.
type Host struct {
	Peers    *peer.Host // the host's name and incarnation, and all its connections
	Liveness Liveness   // nil: connections alone report who lives
	Log      *slog.Logger

	// Detach notes that the service is closed.
	Detach func()
}

// Liveness reports who lives: see scoll.Liveness, which is the same.
type Liveness interface {
	Watch(up, down func(host string, incarnation uint64)) (cancel func())
}

// To attaches a service to a host, a *hostlib.Host, which closes it before itself: with
// the context of its own Close. A service is attached once in a host's life. The errors
// wrap hostlib.ErrClosed, hostlib.ErrService and hostlib.ErrArgument.
var To func(host any, service peer.Service, close func(context.Context) error) (*Host, error)
