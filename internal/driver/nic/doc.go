// Package nic reports the network interfaces of a machine: their addresses,
// whether they can carry packets, and what the system has counted on them.
// [System] asks the kernel by netlink, in the network namespace of the calling
// process; on other systems than Linux it can report nothing, and says so.
// [Fake] is for tests.
package nic
