// Package rail sends messages with tags between two hosts, over all rails that join them:
// a message survives the loss of any rail, and of the last if one is back in time.
//
// [On] makes a [Node] on the process's host (package hostlib), with the host's name,
// certificate, addresses and connections. [Node.Peer] returns the other side of an exchange:
//
//	node, err := rail.On(host, rail.Config{})
//	peer, err := node.Peer("oss1")
//	err = peer.Send(ctx, tag, data)
//	status, err := peer.Recv(ctx, tag, buffer)
//
// # Messages
//
// A message has a tag and any size. A receive takes the earliest message of its tag, or of
// any ([AnyTag]); two messages of one peer and one tag are received in the order in which
// they were sent. Send and Recv wait; StartSend and StartRecv return a [Request], for Wait
// and Test. Up to Config.Eager bytes travel at once, into memory of the receiving node's if
// no receive awaits them; a larger message stays with the sender until a receive awaits it,
// and its data then go right into the receiver's buffer, over all rails at once.
//
// A send is complete when the driver of the other host has acknowledged it: it has arrived,
// though no receive may have taken it yet.
//
// # Memory
//
// [Node.Register] makes memory accessible to other hosts under a [Key]. Whoever has got the
// key, in a message say, reads it by [Peer.Get] and writes it by [Peer.Put], without
// anything to be called at its host.
//
// # Rails
//
// A rail is a network interface of a host; messages go over pairs of them, one of each host.
// Both hosts need a node, and the one that sends first has to know the other's address
// (hostlib.Config.Resolve, or membership); no connection is made for a receive. What was on a
// rail that fails is sent again on another; each message still arrives once, and in order. When the
// last rail to a peer fails, the peer is called again, and the next connection goes on. When there
// is none for hostlib.Config.DeadAfter, all requests with that peer fail with a [PeerError], which
// names its rails and what happened to each; requests that begin later call it again. A
// peer that has started again fails the requests with its earlier life, too, and those that
// began before this host knew.
//
// # What a node takes
//
// A peer's messages that no receive awaits take at most Config.Unexpected bytes and
// Config.Announced places; further ones stay with the peer. A peer that sends more than that,
// or anything malformed, loses its connection; others are not affected. Requests of one's own
// are not limited. In the steady state neither a message nor a fragment allocates memory, but
// the [Request] of StartSend and its like.
//
// [Node.Counters] and [Peer.Counters] report what went which way, and what failed;
// [Node.Collector] has that as metrics (docs/metrics.md).
package rail
