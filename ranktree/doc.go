// Package ranktree computes spanning trees over the ranks of a group: k-nomial, k-ary
// and flat. They are rooted at rank 0 or, by Rotate, at any other.
//
// A tree is a value of a few words. Nothing is stored for a rank, so that a
// host asks for its own parent and children in a group of a million at no
// cost; every question is answered by arithmetic, in the order of the tree's
// height.
//
// All of type Tree are numbered in preorder: the ranks beneath a rank, itself
// included, are one interval that starts with it, and children are in
// ascending order of their intervals. A reduction that takes a rank's own
// vector first and then its children in order therefore combines the vectors
// of all ranks in the order of ranks, on every shape; and who forwards
// addressed pieces needs one interval for each child.
//
// In a k-nomial tree of radix k (binomial where k is 2), a rank written with
// base k has for parent the rank with the lowest digit that is not zero
// cleared. A root with ever smaller subtrees keeps everybody sending in every
// step, which suits short vectors (R. Thakur, R. Rabenseifner, W. Gropp,
// "Optimization of Collective Communication Operations in MPICH", 2005). In a
// k-ary tree no rank has more than k children, which bounds what a rank sends
// and receives and so suits long, pipelined ones.
//
// Spanning is what broadcasts with aggregated replies (server collectives) ask
// of a tree. They need no preorder, so that Complete, which fills a k-ary tree
// level by level, serves them too, and so does any tree that is given rank by
// rank: List. AlongSwitches makes one that follows a tree of switches, so that a
// message crosses no link between them twice the same way.
package ranktree
