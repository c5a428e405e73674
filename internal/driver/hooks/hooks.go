// Package hooks gives tests and measurements access to a host's sockets and interfaces. They put Hooks
// into the context of hostlib.Join, so that the public API needs no setting for it.
package hooks

import (
	"context"
	"net"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// Hooks change the sockets and interfaces of a host. The zero value changes nothing.
type Hooks struct {
	Without transport.Features                  // what data sockets do without, to find out what it brings or harms
	Data    func(transport.Conn) transport.Conn // wraps each data socket, to inject faults; nil: none
	Link    func(net.Conn) net.Conn             // wraps each connection of a host tree, likewise

	Interfaces nic.Source // of the host, for LLDP; nil: the system's
}

type key struct{}

// With returns a context that carries h.
func With(ctx context.Context, h Hooks) context.Context { return context.WithValue(ctx, key{}, h) }

// From returns the Hooks that ctx carries.
func From(ctx context.Context) Hooks {
	h, _ := ctx.Value(key{}).(Hooks)
	return h
}
