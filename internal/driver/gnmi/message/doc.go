// Package message translates between the messages of gNMI and what package openconfig has:
// paths, and the values of leaves, also where they are sent as JSON of a whole subtree. The
// target and the collector of internal/driver/gnmi share it.
package message
