// Package scoll provides server collectives: broadcast RPC with aggregated replies. A
// server runs a function on any set of servers and completes with a result from all of
// them. The request goes down a spanning tree of the members; every member runs it,
// aggregates the replies of its children with its own, and sends one up. A collective
// fails, or is delivered to all; two collectives have no order; the root learns which
// members were not reached, and why.
//
// [On] makes a [Node] on the process's host (package hostlib), with the host's name,
// certificate, addresses and connections. Services register at it, with [Callbacks],
// under numbers that all nodes agree upon. A service makes groups, of targets with
// entities on them; any member may broadcast over a group, and is then the root. A
// request calls on every node, including the root:
//
//	PreRequest        checks it, posts a reply buffer for each child, may set the timeout, prepares for bulk data
//	IncomingRequest   runs it, while it is forwarded to the children, deepest first
//	IncomingReply     for each child: its reply, or why there is none
//	PostReply         after all of them: aggregates, and replies; completes the request at the root
//	ReplyOut          the reply is sent: completes the request elsewhere
//
// Package aggregate has ready-made aggregations of replies, which [Aggregation]
// turns into callbacks; package fabrictree has trees along the fabric's; package offload
// runs collectives in its switches. Data that is too large for a message is pulled along
// the tree, by the host's node of package hostlib/rail.
//
// A group is created by a broadcast of its own, or by its first one (Delayed), or is
// known out of band, by an [Index] that a service maps to members; Alive makes the
// subset of its living members. A [Liveness], such as membership's, says which nodes
// live.
//
// Where hosts have certificates, a request runs only if it is proven that its root has
// sent it, as it is, whoever has passed it on; bulk data is given to the children that a
// request went to, and to nobody else. Which roots may call a service, and make its
// groups, is for its [Access] to say: all with a certificate of the same authority, or
// those of a [Rule]. docs/server-collectives.md has what that holds against, and what it
// does not: a reply is what the nodes beneath have made of it.
//
// The host connects to each neighbour in the node's trees on demand, with separate
// connections for large replies and for bulk data, which delay no message. A node whose
// loop falls behind stops reading, so senders wait; no message is dropped for lack of a
// buffer. Callbacks of a service run on at most Config.Workers goroutines; a callback
// that waits for another callback of the service, for example by a broadcast, blocks
// one of them. Reply later instead, from where the answer is known.
//
// # Names of the DAOS design
//
// The design is that of "DAOS Server Collectives Design" (Intel, 2014), whose
// interface is in C. Its names, and those of this package:
//
//	scoll_service_register()            (*Node).Register
//	scoll_service_unregister()          (*Service).Close
//	scoll_service_id_t                  ServiceID
//	scoll_target_t, entity tag          Target, Tag
//	scoll_tree_type_t                   Tree: Binomial, KNomial, KAry, Flat, and those of Config.Trees
//	scoll_group_t                       Group
//	scoll_group_create()                (*Service).CreateGroup
//	  svid                                the Service
//	  name, targets and cnt, tree         GroupSpec.Name, .Targets, .Tree
//	  populate_now                        not GroupSpec.Delayed
//	  cb, private                         created, GroupSpec.Private
//	scoll_create_group_cb_t             created func(*Group, error)
//	group handle: name, private         (*Group).Name, (*Group).Private
//	scoll_oob_group_create()            (*Service).OutOfBand
//	  name, oobid, tree, private          OutOfBandSpec.Name, .Index, .Tree, .Private
//	scoll_oobgrp_id_t                   the Service and an Index
//	scoll_oobgrp_cb_t                   Callbacks.MapGroup
//	subset of a group                   (*Group).Alive
//	last-broadcast flag                 Broadcast.Last
//	notification to destroy a group     (*Group).Destroy
//	scoll_request_t                     Request
//	scoll_bcast_new()                   (*Group).NewRequest
//	  buf and len                         Broadcast.Payload
//	  bulk_iovs and niov                  Broadcast.Bulk
//	  flags                               Broadcast.Last
//	  service_timeout, private            Broadcast.Timeout, .Private
//	scoll_get_nchildren()               len of (*Group).Children, (*Request).NumChildren
//	scoll_get_childtree_nodes()         Child.Nodes
//	scoll_get_childtree_entities()      Child.Entities
//	scoll_reply_buffer_post()           (*Request).PostReplyBuffer; PostReplySize for a buffer of the library
//	  child, buf and len, private         child, buf, private
//	scoll_bcast_send()                  (*Request).Send
//	scoll_reply()                       (*Request).Reply; ReplyMore for a reply in pieces
//	scoll_bcast_abort()                 (*Request).Abort
//	scoll_pre_request_cb_t              Callbacks.PreRequest
//	scoll_incoming_request_cb_t         Callbacks.IncomingRequest; its target is (*Request).Target
//	scoll_incoming_reply_cb_t           Callbacks.IncomingReply, may be nil
//	scoll_post_reply_cb_t               Callbacks.PostReply
//	scoll_reply_out_cb_t                Callbacks.ReplyOut, may be nil
//	srq_bulk_len                        (*Request).BulkLen
//	srq_bulk_iovs, srq_bulk_niov        (*Request).SetBulk, (*Request).Bulk
//	srq_bulk_status                     (*Request).BulkErr
//	srq_service_timeout                 (*Request).Timeout, (*Request).SetTimeout
//	scoll_reply_t                       Reply
//	srp_status, srp_error_type          Reply.Status, (*Reply).Type
//	srp_src                             Reply.Source
//	server discovery module             Liveness
//	ETIMEDOUT                           StatusExpired
//	LNET_MAX_PAYLOAD                    Config.PartBytes
//
// Where the design leaves a choice, docs/server-collectives.md has this package's rules,
// and the wire format.
package scoll
