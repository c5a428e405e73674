// Package bulk moves bulk data between the nodes of server collectives. A node exposes
// memory under a key, and a node with the key pulls it over a connection. It is what
// hostlib/scoll does unless it is given another Bulk.
//
// A connection carries one pull after another. Big-endian, a pull is
//
//	puller   key (8), length (8)
//	server   0, and the memory: length bytes; or 1: there is no such memory, and the end of the connection
//
// A key is the only title to memory: it has to be random, and to travel on
// connections that nobody else reads. A pull whose key or length is not that of
// exposed memory is refused, counted, and costs its sender the connection.
//
// A pull ends with its context, or when nothing has come for Config.Stall. The
// serving side lets a bounded number of pulls run at once, so that one large
// broadcast does not take all of a node's memory bandwidth, and gives a reader up
// that has taken nothing for as long. Revoke cuts those that still read; when it
// has returned, nobody does.
package bulk
