// Package discoverer keeps the map of a fabric: it connects to gNMI targets, and gives
// what they report to the core of package discovery, which says whom to connect to.
//
//	targets --gNMI--> collectors, one goroutine pair each --> core's loop --> Config.Apply
//	   ^------------- addresses to dial and to drop ------------'
//
// Apply gets the latest map, from a goroutine of its own: while it works, changes gather.
package discoverer
