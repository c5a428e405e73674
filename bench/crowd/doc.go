// Package crowd measures many groups of the same hosts at once. It reports how long
// they take to form, how many are offloaded, how long operations on all of them at once
// take, and their memory.
//
// The hosts, the switches' agents and the manager are three processes of this
// machine, new ones for each number of groups, so that the memory of each shows.
// They talk over the loopback interface. The process that measures orders the
// others by lines on their standard input: a word and its arguments, answered by a
// line of JSON. A process whose input ends ends itself.
package crowd
