// Package bulk moves bulk data between the nodes of server collectives. A node exposes
// memory under a key, and a node with the key pulls it over a connection. hostlib/scoll
// uses it unless it is given another Bulk.
//
// A connection carries one pull after another. Big-endian, a pull is
//
//	puller   key (8), length (8)
//	server   0, and the memory: length bytes; or 1: there is no such memory, and the end of the connection
//
// The key alone gives access to the memory: it must be random, and travel on private
// connections. A pull with an unknown key or another length is refused and counted, and
// its connection closed.
//
// A pull ends with its context, or after Config.Stall without data. The serving side
// limits concurrent pulls, so that one large broadcast does not take all of a node's
// memory bandwidth, and closes a reader that has taken nothing for Config.Stall. Revoke
// cuts remaining readers, and returns when there are none.
package bulk
