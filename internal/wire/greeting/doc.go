// Package greeting lays out the greeting of a connection between two hosts. It comes
// before frames and says who calls whom, in which incarnations, and what the connection
// is for. All numbers are big-endian.
// docs/connections.md has the bytes. The first five of a greeting, and a refusal
// (code 1), are the same in all versions, so that hosts of different versions can
// say so to each other.
package greeting
