// Package scoll provides server collectives: broadcast RPC with aggregated replies. A
// server runs a function on any set of servers and completes with a result from all of
// them. The request goes down a spanning tree of the members; every member runs it,
// aggregates the replies of those beneath it with its own, and sends one up. A
// collective fails, or is delivered to all; two collectives have no order; the root learns
// which members were not reached, and why.
//
// A [Node] is a process's part in it: [On] makes it on the process's host (package
// hostlib), whose name, certificate, addresses and connections it uses. Services register at it by numbers that
// all nodes agree upon, with [Callbacks]; a service makes groups, of targets with
// entities on them, and broadcasts over a group from any member, which is the
// root then. On every node, the root included, a request takes one way:
//
//	PreRequest        checks it, posts a reply buffer for each child, may set the timeout, prepares for bulk data
//	IncomingRequest   runs it, while it is forwarded to the children, deepest first
//	IncomingReply     for each child: its reply, or why there is none
//	PostReply         all of them have returned: aggregate, and Reply; on the root this completes it
//	ReplyOut          the reply is out: this completes it elsewhere
//
// Package aggregate has ready-made aggregations of replies, which [Aggregation]
// makes callbacks of; package bulk moves data that is too large for a message,
// which members pull along the tree; package fabrictree has trees along the
// fabric's; package offload runs collectives in its switches.
//
// A group is made by a broadcast of its own, or by its first one (Delayed), or is
// known out of band, by an [Index] that a service maps to members; Alive makes
// the subset of its living members. Which nodes live is the word of a [Liveness],
// such as membership's.
//
// The host makes a TCP connection to each neighbour in the node's trees when there is
// something to send, and others for large replies and for bulk data, behind which
// no message waits. A node whose loop falls behind reads no more, so that what is
// sent to it waits at its senders; nothing is dropped for want of a buffer.
// Callbacks of a service run on at most Config.Workers goroutines: those that wait
// for other callbacks of it, by a broadcast of their own, say, hold one as long.
// Better reply later, from where the answer is known.
//
// # The document's names
//
// The design is that of "DAOS Server Collectives Design" (Intel, 2014), whose
// interface is in C. Its names, and what they are here:
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
//	scoll_reply_buffer_post()           (*Request).PostReplyBuffer; PostReplySize for one of the library's
//	  child, buf and len, private         child, buf, private
//	scoll_bcast_send()                  (*Request).Send
//	scoll_reply()                       (*Request).Reply; ReplyMore for one that comes in pieces
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
// docs/server-collectives.md has the rules, every byte, and what was chosen where
// the document leaves things open.
package scoll
