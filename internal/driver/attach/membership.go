package attach

import (
	"context"
	"net"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// Place is what a node of a zone brings to the host that it is on: the number of the
// listener is that of its socket for datagrams, too.
type Place struct {
	Listener    net.Listener
	Incarnation uint64
	TLS         *pki.Source // nil: there are neither certificates nor keys
	// Resolve returns where a node of the zone is.
	Resolve func(ctx context.Context, host string) (string, error)
	Dial    func(ctx context.Context, address string) (net.Conn, error)
}

// Listen makes the host of a process at a place.
type Listen func(ctx context.Context, p Place) (*peer.Host, error)

// Membership starts a node by a *membership.Config on the host that listen makes, and
// returns it, a *membership.Node. Whoever calls closes the node, and then the host.
// Package membership sets it.
var Membership func(ctx context.Context, config any, listen Listen) (node any, err error)
