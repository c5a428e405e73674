// Package agentd assembles a switch agent: the core of package agent in a loop
// of its own; the data plane that reduces, in software or by a P4 target; who
// observes the switch's network interfaces; and the gRPC server by which
// managers reach them.
//
//	manager --gRPC--> calls --> agent core's loop --Open, Install--> data plane <--UDP--> hosts, switches
//	                    ^------- replies ------'    '<--- events ---'
//
// Calls and the data plane run in parallel; the agent core is sequential. A
// Commit is answered when the data plane has the epoch.
package agentd
