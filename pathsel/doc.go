// Package pathsel chooses the collection tree of a group: its root switch, the
// switches between, and the links.
//
// A tree spans the group's hosts over switches that can all reduce what the
// group asks: up, not excluded, with the functions and types, enough free
// slots, room for the children and for the chunk. A switch that cannot is not
// on a tree. Select takes the tree with the fewest hops (links used, each
// counted once), then the least depth, then the one that adds the least to what
// other groups use already (Load), then by a hash of the group, so that equal
// choices spread and the same request has always the same answer.
//
// # Method
//
// For a candidate root the tree is a shortest-path tree: every member reaches
// the root over as few links as the usable switches allow. Among the
// shortest-path trees of one root, the fewest links are found level by level
// from the hosts inwards, each level covered by as few parents as possible, by
// branch and bound with a budget. In fat-trees and leaf-spine fabrics the first
// descent meets the lower bound and the search ends there; elsewhere small
// fabrics are searched out and large ones may end on the budget.
//
// Small fabrics have every usable switch tried as the root. In larger ones the
// candidates are ordered by a lower bound that a bit-parallel breadth-first
// search from (up to 64 of) the group's leaf switches gives for all of them at
// once, and tried in that order within a budget. Choice.Examined says how many.
//
// A shortest-path tree need not be the smallest tree of all (the Steiner tree):
// where links are down, a detour for one member may save links for the others.
// The tests hold the difference on small damaged fabrics against an exhaustive
// search and bound it. Nothing here depends on map order, time or chance.
package pathsel
