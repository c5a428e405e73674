// Package gnmi serves telemetry by gNMI (github.com/openconfig/gnmi, version 0.10).
//
// [Server] is a target: Capabilities, Get, Subscribe, and Set of what a switch agent
// lets operators decide. What subscribers are sent, internal/core/telemetry decides;
// paths and values are those of internal/wire/openconfig, which a [Source] reports as a
// Device. docs/telemetry.md describes it for users.
package gnmi
