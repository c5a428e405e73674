// Package agentd assembles a switch agent from its core, data plane, interfaces and
// gRPC server. The core of package agent has a loop of its own; the data plane reduces
// in software or by a P4 target.
//
//	manager --gRPC--> calls --> agent core's loop --Open, Install--> data plane <--UDP--> hosts, switches
//	                    ^------- replies ------'    '<--- events ---'
//
// Calls and the data plane run in parallel; the agent core is sequential. A
// Commit is answered when the data plane has the epoch.
package agentd
