// Package collector reads what a gNMI target reports of its interfaces and neighbours. It
// keeps one subscription to it, and applies what it streams to a Device.
//
//	dial --> Capabilities --> Subscribe --> initial updates --> sync_response --> updates
//	 ^                                                          Config.Report, and after changes
//	 '-- a pause that grows, after any error --------------------'
//
// The target is not trusted: what it sends is bounded by message, leaf, rate and number of
// mistakes. A target that sends more than is read waits, by gRPC's flow control; nothing is
// left out, so that what it reported last is what Report gets last.
package collector
