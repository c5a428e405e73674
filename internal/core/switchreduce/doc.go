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
// From every state, a contribution or an error of a newer number, or of a later
// epoch, takes the slot over.
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
// # Fast path
//
// Beside the core a program may reduce packets before they come to it: FastPath. Each
// number of an epoch has one owner, the program or the core. The program owns a number
// whose slot it has taken over with a contribution, and lets pass what it does not take:
// probes, errors, other element types, parts of batches. An admitted packet about a number
// makes the core its owner for good: the core gets what the program holds of it as if it
// came now, and then follows the rules below. So a partial or result may be sent twice,
// which its receivers drop. An epoch's program begins with the first packet that the core
// has admitted, and ends with the epoch.
//
// # Rules
//
// docs/protocol.md has the rules that members see: who answers a probe with what
// ("Repair"), what takes a slot over ("Slot states"), how epochs begin and end, and
// which packets are admitted, each check with a Drop of its own. The core has no
// timer but for leases: members probe, and it answers.
package switchreduce
