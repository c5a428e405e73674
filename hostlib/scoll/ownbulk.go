package scoll

import (
	"context"
	"net"

	"github.com/tributary-fabric/tributary/hostlib/scoll/bulk"
	"github.com/tributary-fabric/tributary/internal/mesh"
)

// ownBulk moves bulk data over connections of the node's own, on their own lane.
func (n *Node) ownBulk(c *mesh.Config) Bulk {
	b := bulk.New(bulk.Config{Dial: func(ctx context.Context, node string) (net.Conn, error) {
		_, conn, err := n.mesh.Dial(ctx, node, bulkLane)
		return conn, err
	}})
	c.Lanes[bulkLane] = func(ctx context.Context, _ mesh.Peer, conn net.Conn) { b.Serve(ctx, conn) }
	return b
}
