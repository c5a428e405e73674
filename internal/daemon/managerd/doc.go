// Package managerd assembles an offload manager. The core of package manager has a loop
// of its own; around it is what takes time or can fail.
//
//	members, operators --gRPC--> calls --> manager core's loop --+--> planner: pathsel over the topology
//	                     ^------ replies, offers ------'         +--> writer: the Store
//	                                                             +--> links: one for each switch's agent
//
// The core's loop waits for none of them: what it wants done goes through
// mailboxes, what comes of it comes back as inputs. The planner and the writer
// are one goroutine each; a link is one that watches its agent, one that makes
// calls, one after the other, so that answers come in the order of the agent's
// own decisions, and one that holds the switch's trees against what its
// interfaces carried, and measures how busy its CPU is and how much of its links
// is taken by what is not of trees. Links run in parallel.
//
// The fabric may become another one at any time (SetFabric): an operator changes their
// part of it (Operator), or what merges that with what was found (Config.Merge) has news.
// The core goes over to it by an input, the planner by the core's output; links, what is
// down and by whose word, and the shares of traffic are kept by name. The last changes
// are remembered (TopologyHistory).
package managerd
