// Package manager is the core of the offload manager: groups and their collection
// trees.
//
// # The life of a tree
//
// A group that was created waits until every member watches it. Then, for its
// first tree and for each that replaces a lost one:
//
//	         Planned           all Prepared          all Committed
//	planning -------> planned -------------> prepared ------------> active
//	                     |                      |                     | a later tree is active,
//	                     | refusal, death,      |                     | a switch or link died,
//	                     | no answer in time    |                     | a member lost it, release
//	                     +----------------------+---------------------+
//	                     v         all Removed
//	                  draining ----------------> gone
//
// The stages:
//
//   - planned: the tree has an epoch. Its record is Stored before the first
//     Prepare leaves, so that no epoch is ever given twice.
//   - prepared: every switch on it has reserved and reported its data address.
//     Commit goes to all of them.
//   - active: every switch has committed, and this is Stored; only then are
//     the members reported (Offer). When they enter it, and whether, is theirs.
//   - draining: its switches are asked to remove it, again and again until they
//     have answered or are gone; of a tree that was active, once it is Stored
//     that it is no more, lest a later manager goes on with it. A tree that a
//     later one replaced drains without Remove until every member has reported
//     a later epoch.
//
// A refusal or a death in the middle removes what was prepared, everywhere,
// and plans again without that switch, a bounded number of times; then the
// group is refused, with the reason, until the topology or a reservation
// changes. A slot is a resource that can shrink: where no tree has room for
// the window of a round, half of it is tried, down to Config.MinWindow. No
// tree has a window above what a switch on its packets' way bears
// (topology.Capability.Window): more at once than its queues hold is lost.
//
// Between plan and commit are the trees of Config.MaxBuilding groups at a time, as
// many as switches can answer for in time, and Config.MaxPlanning plans are out; the others
// wait for their turns, which hosts have fairly (package fairqueue), as do drafts (Turn).
// Who is not to be planned any more leaves the queue, and a plan that is out is cancelled.
//
// # What hosts may have
//
// A group is its owner's, the host that created it. Groups, slots and plans are within the
// quotas of the owner, of its label, and of all (Config.Quotas, package quota):
//
//	what            beyond the quota
//	Create          ErrTooManyGroups or, of plans a second, quota.ErrQuota
//	Turn            quota.ErrQuota
//	another plan    waits until the rate allows it
//	a tree          half the window, and so on; then a *Refusal whose cause is a *quota.Refusal
//	a larger window stays as it is
//
// The switch that a member's silence points at is avoided for Config.Suspicion, as long
// as there is another way. Where there is none it is used again, at first at once, and
// then after waits that grow: behind a switch that is up and forwards nothing, every
// tree costs its members the time until they notice.
//
// A group ends when the lowest rank releases it, and its trees go after Config.ReleaseGrace, for
// members that are still leaving. Where its communicator was revoked, it ends when the first member
// reports so (Unwatch.Over), and its trees go at once: nobody works in it, and the lowest rank may be dead.
//
// Epochs are even, rise strictly within a group, and are above each that a
// member has reported: the odd ones are the lowest rank's own, for host trees.
//
// A tree that replaces one is asked for with that one, so that what still holds of
// it can be kept, and only what must change does.
//
// # What moves a tree, and what does not
//
// What goes down moves the trees on it, which an index finds, at once. What comes
// up, or can do more, moves none by itself: refused groups try again, and trees
// that were planned while something was missing (makeshift) are compared with new
// ones, one after the other, once the fabric has been as it is for Config.Settle.
// Where what came up is a link of a host, the trees of its groups are compared after
// Config.RailSettle already, and the later the more often that comes.
// Such a review replaces a tree where the planner finds another that is better by
// more than it keeps an old one for (pathsel.Config.Keep); the old one runs until
// all members have left it. So a fabric in which something flaps gives no tree
// more than one reason to move, and a tree that stands never moves for less than
// that share. How busy links and CPUs are moves none: it counts in plans to come.
// A group that runs over switches does not leave them because hosts would be
// faster by a forecast.
//
// # When the fabric is another one
//
// Redrawn brings another graph, whose numbers mean other nodes and links. What has the
// same name is the same: nodes by their names, links by those of both ends and their
// ports. All that the Core knows is renumbered, and the planner begins anew with it
// (Output.Anew): what it was asked for before is void, and asked for again. The lowest ranks of
// groups whose hosts have faster or slower links now hear of them (Links), as they do when they
// begin to watch.
//
//	what                                        becomes of it
//	a tree that the new graph has               runs on; its edges are where they were
//	a tree over a node or link that is gone,    is lost, as if that had gone down: what is
//	or over a link with other addresses         left of it is repaired where that is as good
//	a tree that is planned or prepared          goes on, or is given up likewise
//	a tree that is being removed                its switches that are gone hold nothing
//	a switch that is gone                       is forgotten, but for being drained; what its
//	                                            agent holds is removed when it is back
//	a group with members that are not hosts     is refused with ErrAbsent, which names them,
//	of the fabric                               until the fabric has them
//	trees, where the graph has links more       are reviewed once it is quiet
//
// So a manager may begin with a graph of nothing and have it grow: a group can be
// created before its members are known to the manager. Records have names, too
// (Tree.Links), and are for any graph: Restore drops the trees that the graph does not
// have, strikes them from the record, and has them removed after that.
//
// # Several groups of one communicator
//
// A communicator may have several groups, which name the same Bundle: stripes, which
// have the same members, or parts, which share them out. Each is a group like any
// other. Their plans are made one after the other, and each is to be apart from the
// trees of its sisters (pathsel.Request.Avoid), in a repair, too. Where it cannot
// be, it shares links, and is reviewed like a makeshift tree. With the first stripe
// all stripes are released. Draft answers how many stripes or which parts there could
// be, and changes nothing.
//
// # When the store fails
//
// The driver retries what it could not store, except the specs of new groups: those
// groups are forgotten, and who asked for them gets ErrNotStored at once (Unstored).
// Until the next Stored no group is created, and no tree enters a stage that needs a
// record. What runs is not disturbed; a release or drain is in effect, and its answer
// is the error until it is stored.
//
// # Who plans
//
// Choosing a tree takes long in a large fabric and is done outside, by
// PlanRequest.Choose: PlanRequest goes out, Planned comes back, late ones are
// ignored. The planner owns the pathsel.Load. It adds the tree that it has chosen at once, so that plans
// made one after another see each other; from then on this core accounts for
// it and says exactly once, in Output.Unloads, when it counts no longer, be it
// because the plan came too late. Trees that a restarted manager found in its
// records come in Output.Loads. The planner handles, of one Output, Loads and
// Unloads before Plans, and calls Load.Add and Load.Remove with no slots: those
// are accounted here, and reported in Output.Slots for Load.SetSlots. What the group
// itself has does not count in its own plan (PlanRequest.Own), since the new tree
// takes its place; a switch that is full is among the excluded. Switches without
// an agent, and those that can reduce nothing, are not: they may forward.
//
// Where hosts are faster the answer is that, and the group stays on hosts
// (OnHosts) until what exists, or what it can do, changes.
//
// # What it knows of switches
//
// A switch is used only while its agent is connected (SwitchUp). Each meeting
// brings the agent's incarnation and what it holds. An epoch that ought to be
// there and is not is lost; one that is there and ought not is removed. That
// is all that a manager needs after its own restart: trees that were active
// stay so and are offered again to members that come back, the others are
// removed, and what a switch forgot while nobody looked is noticed.
//
// # How slots are shared
//
// A group's first tree has a small window (Config.StartWindow). Which one its
// operations can use its lowest rank says (Report.Demand). To change a window is to
// offer the same tree once more, in a new epoch: the same switches, edges and
// addresses, with another window. The members go over to it as to any other tree,
// and what was in flight goes on there. Since the largest of a group's epochs counts
// on a switch, growing needs the difference, and shrinking frees it once all members
// have left the old epoch.
//
// Some time after a change (Config.Share) slots are shared out, in a round:
//
//	who                                       gets
//	groups without a tree, that lack slots    the smallest window, before others grow
//	groups that can use more                  twice what they have, again and again, the
//	                                          smallest windows first, while there is room on
//	                                          all their switches but for a sixteenth
//	of these, those that found no room        twice what they have, once others have given it
//	                                          back: who cannot use what it has, and then who
//	                                          has the largest window, which stays no smaller
//	                                          than the one that it makes room for
//	groups that have not used what they have  the window that they began with
//	for Config.Idle
//
// So in the end no window can be doubled at the cost of larger ones only: the shares
// are fair as by max-min (Bertsekas and Gallager, Data Networks, 6.5.2), in powers of
// two. A window that was changed stays so for Config.Hold, and one that was made
// smaller for twice that before it grows; so many as Config.MaxResizes are being
// changed at once. Config.GroupSlots and Config.SwitchSlots are quotas, within which
// all of this happens. Only a group is resized that is steady: all its members watch,
// are in its newest epoch, and no older one drains.
//
// Slots are accounted as the agents do it: of a group's epochs on a switch the
// largest counts, not the sum.
//
// # Where packets go
//
// Each edge of a tree is given by the two addresses at which its ends reach each
// other; where switches forward an edge, those on its first and on its last link.
// A switch or member with a data address of its own is reached there. One
// whose data address is unspecified listens on all it has, and is reached at the
// address that the topology gives its end of the very link that was chosen; if
// there is none, the tree is given up, and the link named. A member's own address has to be
// known to be its host's, or its group has no tree: see foreign.
//
// Like all cores (see package core) it is a deterministic state machine
// without goroutine, socket or clock; its randomness is Create.Secret.
package manager
