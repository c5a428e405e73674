package scoll

import (
	"context"
	"net"

	"github.com/tributary-fabric/tributary/hostlib/scoll/bulk"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// dialBulk calls a node for bulk data.
func (n *Node) dialBulk(ctx context.Context, node string) (net.Conn, error) {
	_, conn, err := n.host.Dial(ctx, node, peer.Bulk)
	return conn, err
}

// serveBulk serves a node that has called for bulk data.
func (n *Node) serveBulk(_ peer.Peer, conn net.Conn) (kept bool) {
	n.bulk.(*bulk.Bulk).Serve(n.ctx, conn)
	return false
}
