// Package ranktree computes spanning trees over the ranks of a group: k-nomial, k-ary
// and flat. They are rooted at rank 0 or, by Rotate, at any other.
//
// A tree is a value of a few words. Nothing is stored for a rank: arithmetic answers
// every question, such as the parent and children of a rank in a group of a million, in
// time of the order of the tree's height.
//
// All trees of type Tree are numbered in preorder: the ranks beneath a rank, including
// itself, are one interval that starts with it, and children are in ascending order of
// their intervals. A reduction that takes a rank's own vector first and then its
// children in order therefore combines the vectors in the order of ranks, for every
// shape; and forwarding addressed pieces needs one interval for each child.
//
// In a k-nomial tree of radix k (binomial for k = 2), the parent of a rank is the rank
// with its lowest non-zero digit in base k cleared. All nodes send in every step, which
// suits short vectors (R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
// Communication Operations in MPICH", 2005). In a k-ary tree no rank has more than k
// children, which bounds what a rank sends and receives, and so suits long, pipelined
// vectors.
//
// Spanning is the interface of trees for broadcasts with aggregated replies (server
// collectives). They need no preorder, so they can also use Complete, which fills a
// k-ary tree level by level; List, any tree given rank by rank; and AlongSwitches, which
// follows a tree of switches, so that a message crosses no link between them twice in
// the same direction.
package ranktree
