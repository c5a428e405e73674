package scoll

import (
	"context"
	"net"

	"github.com/tributary-fabric/tributary/hostlib/scoll/bulk"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// ownBulk moves bulk data over connections of the host's own class.
func (n *Node) ownBulk(c *peer.Config) Bulk {
	b := bulk.New(bulk.Config{Dial: func(ctx context.Context, node string) (net.Conn, error) {
		_, conn, err := n.host.Dial(ctx, node, peer.Bulk, "")
		return conn, err
	}})
	c.Servers = map[peer.Class]peer.Server{peer.Bulk: func(_ peer.Peer, conn net.Conn) bool {
		b.Serve(n.ctx, conn)
		return false
	}}
	return b
}
