// Package ports reports the interfaces of another machine, as package nic does those of
// this one, from its gNMI server: those of a P4 target that is a switch of its own, such
// as Stratum. Their state is reported, and not what they have carried.
package ports
