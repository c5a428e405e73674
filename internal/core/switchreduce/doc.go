// Package switchreduce is the switch side of a reduction. The core takes the
// contributions of a switch's children chunk by chunk, reduces them, passes the partial
// to the parent, and sends the result down. A tree of hosts uses it, too, over host
// connections.
//
// One Core serves one tree of one group, in all of its epochs. It knows its
// neighbours' addresses and one rank for each child, and never the group: what
// it holds is bounded by (children + 1) x 2W x chunk bytes, taken as chunks come.
//
// # Slots
//
// Number n of an epoch with window W is served by slot n mod 2W.
//
//	state     holds                          leaves by
//	vacant    nothing                        a contribution or an error -> open, failed
//	open      some children's contributions  the last one  -> complete, at the root finished
//	                                         two signatures or sources -> failed
//	complete  the partial                    the parent's result -> finished
//	finished  the result                     nothing
//	failed    the error                      nothing
//
// From every state, a contribution to a newer number, or of a later epoch,
// takes the slot over, and so does an error; whatever is older than the slot is
// dropped and counted. That is safe because a member sends number n + 2W only
// when all members have the result of n and of all before it, and the first
// packet of an epoch only when all members have left the one before. Probes
// and results never take a slot over. An error replaces contributions and
// partials of its number, and not a result, which proves that all agreed.
//
// Contributions are kept apart until the last one has come and are then reduced
// in the order of the children, so that the bits of the result do not depend on
// the order of arrival. So are the exponents of chunks in block floating point,
// whose partial has the greatest of them; a result keeps its own.
//
// # Memory
//
// A slot holds what it sends as the packet that it is, header before payload, and
// the packets of slots that follow each other lie side by side. So a batch of
// partials or results is one piece of memory, a Batch, and the same one for all
// children, in which only the child index is written anew for each. Contributions
// are reduced where they arrived; those that wait for others at the end of a Step
// are copied first, into memory that is used last in, first out. A packet that is
// like the one before but for its number is not looked at again; packets that came
// as one are one Input.
//
// An idle probe may say that all members have every result before a number
// (wire.Header.Settled): the slots of earlier numbers are given back with the next
// Step, with their memory, and the idle probes to the parent say the same.
//
// # Repair
//
// The core has no timer of its own but for leases: members probe, and it
// answers. Result (or Error) where it has one, Want where the child's
// contribution is missing, Heard otherwise. A probe by the lowest child for a
// complete slot is sent on to the parent; once Config.Probes of them in a row
// had no answer, or the parent has answered Lost to its lowest child, the children
// are answered Lost until the parent answers something else. That is a hint: the
// member that is the lowest rank beneath judges, by time. Duplicates are dropped and
// answered by nothing.
//
// # Epochs
//
// Install lets an epoch begin; its first packet ends all epochs before it. An
// epoch is never installed again, nor is one below. A lease is renewed by every
// admitted packet; to the parent, the lowest child's idle probes are passed on,
// and one is sent when a child has spoken and nothing has gone up for a third
// of the lease.
//
// # Admission
//
// A packet counts for nothing unless it is valid, of the group, the tree, an
// epoch that is installed and not over, with the epoch's cookie, from the
// address that the configuration gives for the child index that it carries (or
// for the parent). Each check has its own Drop.
package switchreduce
