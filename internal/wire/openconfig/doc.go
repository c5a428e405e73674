// Package openconfig translates between what a gNMI target reports of itself, a
// [Device], and leaves: paths with values. Paths are those of the OpenConfig models
// for interfaces, LLDP and systems, and those of Tributary's own module,
// api/yang/tributary.yang. One table has them all ([Schema]); docs/telemetry.md
// lists it.
//
// [Device.Leaves] lists what a device has reported, [Device.Set] and [Device.Delete]
// apply what a target sends. A leaf that is zero was not reported.
package openconfig
