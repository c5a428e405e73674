// Package nic reports the network interfaces of a machine: addresses, state, speed
// and counters. [System] asks the kernel by netlink, in the network namespace of the
// calling process; on other systems than Linux it can report nothing, and says so.
// [Fake] is for tests.
package nic
