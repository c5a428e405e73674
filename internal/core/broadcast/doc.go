// Package broadcast is the core of server collectives. It is what one node does for
// broadcasts with aggregated replies over groups of servers. It is pure. What a service
// calls answers at once, with a handle or an error, and is therefore a method;
// everything else comes by Step: messages, the returns of callbacks, the results of
// pulls and sends, news of who lives, and time. Both add to an Output. Callbacks run
// elsewhere, beside each other, and may call the methods again; the driver answers each
// Call with one Returned, a panic being an error.
//
// # The way of a request
//
// Root and members take one way (request.go, progress.go):
//
//	idle, queued     root only: made; behind the first broadcast of a delayed group
//	mapping          Map: an out-of-band group's members
//	fetching         Pull: the parameters of a large group's creation
//	preparing        PreRequest
//	pulling          Pull: bulk data
//	running          Sends to the children, IncomingRequest, IncomingReply
//	posting          PostReply
//	replying         the service's Reply, and its Sends
//	leaving          ReplyOut
//
// What happens in each phase to each input is testdata/transitions.txt; the
// flows of the document are the other transcripts there.
//
// # What holds
//
//   - A request has one End, after its last callback; the root's reports who is
//     known to have run it.
//   - IncomingReply comes once for each child; PostReply after IncomingRequest
//     and all of them have returned.
//   - A broadcast runs once on a node, however often its request comes.
//   - What is lent comes back: message buffers when their last send is answered,
//     reply buffers when the child's incoming-reply has returned, exposed memory
//     when post-reply begins. Counters reports what is out.
//   - What a node keeps of an out-of-band group is its children (route), not the
//     members.
//
// # Time
//
// Only replies and repeated sends have deadlines. A child is waited for
// (reach + 1) R + P; see docs/server-collectives.md, which has the rules, every
// byte, and the table of the public API that hostlib/scoll builds on this core.
package broadcast
