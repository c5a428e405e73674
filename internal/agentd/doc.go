// Package agentd assembles a switch agent: the core of package agent in a loop
// of its own; for every tree on the switch a goroutine that owns a socket and
// the aggregate core behind it; and the gRPC server by which managers reach
// them.
//
//	manager --gRPC--> calls --> agent core's loop --Open, Install--> tree loops <--UDP--> hosts, switches
//	                    ^------- replies ------'    '<-- Expired ---'
//
// Calls and tree loops run in parallel; the agent core, and each tree, is
// sequential.
package agentd
