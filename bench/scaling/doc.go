// Package scaling simulates allreduces packet by packet, on package sim and with the cores that ship
// (switchreduce, session, schedule), in networks that this machine does not have. What a packet costs
// a processor is measured here; what hardware does is stated. docs/scaling.md explains the figures.
//
// # What is simulated
//
//	part        rule
//	processors  Processors.Shared for all programs, or one for each. A program that has work keeps its
//	            processor until it has none, or for a Slice where others wait. One that has none
//	            yields, looks for packets when its turn has come (Costs.Look), and sleeps after Poll,
//	            as package transport does. Who works where another has worked before
//	            has cold caches (Costs.Cold); who slept takes a wake-up (Costs.Wake).
//	turn        begins with the look that was under way; half of one if nobody else looks (Costs.Alone).
//	            All batches that are there, up to 32, are received, the core steps once, and what it sends
//	            leaves batch by batch, each when its system call ends.
//	link        a port sends in order: at a rate (a wire; packets travel one by one), by a token bucket
//	            (batches travel whole), or at once (a veth pair without a bucket).
//	switch      a program, or a pipeline that has a latency and steps its core for each packet.
//	            Cut-through: a packet is there when its first bytes are; store-and-forward: when
//	            its last are.
//	host        calls a barrier and a sum in turns. A sum's time is that of its slowest member.
//
// # Fold
//
// With Run.Fold only one child of each switch is simulated. All hosts begin at once, all switches of a level
// have as many children, and all links are alike, so that the children of a switch do
// the same at the same moments. Where switches are pipelines, each of whose ports is a link of its own, a
// folded run takes exactly the time of a full one; a test holds one against the other to 1,024 hosts.
// Programs serve one child after the other, and are not folded.
//
// # Algorithms of hosts
//
// Model.By plays schedules of package schedule among all members, message by message in batches, over the
// links of hosts; links between switches are never shared. Model.Best gives the least time in closed
// form, for numbers of hosts that are too large to simulate.
package scaling
