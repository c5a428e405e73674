// Package broadcastmsg lays out the messages of server collectives. Requests go down a
// tree of servers and have at most 4 KiB; replies come up.
//
// Messages are big-endian. Every bit is defined, so that a valid message has
// exactly one form: Decode refuses what Append would not write. What a message
// means, and whether its sender may say it, is for internal/core/broadcast to
// judge. docs/server-collectives.md lists every byte; testdata/golden has messages
// that it and this package agree on.
package broadcastmsg
