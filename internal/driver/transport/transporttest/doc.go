// Package transporttest is the conformance kit of transport.Conn: what every
// implementation must do, reported once.
package transporttest
