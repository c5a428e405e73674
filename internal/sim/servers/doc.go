// Package servers simulates server collectives. Servers drive the core as a driver does
// over sockets, with a service whose callbacks take time, fail, panic, forget their
// reply or give it twice.
//
// Messages are datagrams, so that they are lost, doubled and reordered; a
// transport that fails locally says so and may have sent all the same. Pulls
// take time, and fail where the memory has been revoked. A Crowd keeps the
// books: which server ran which broadcast, and how each ended. Only the tests of this
// package use it, so all of it is in test files.
package servers
