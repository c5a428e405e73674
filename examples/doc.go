// Package examples holds six small programs on the public packages. Each has a folder
// and is a single file that says how to run it. Its test runs them.
//
//	allreduce  sums a vector over several hosts
//	broadcast  runs a function on several servers, with one answer from all
//	elastic    fits a small model by processes that die, and goes on with spares
//	members    prints who joins and leaves a zone
//	planner    prints the tree of a group on a fabric, and its repair
//	service    uses membership, a server collective and an allreduce together
package examples
