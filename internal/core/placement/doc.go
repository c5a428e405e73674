// Package placement judges whether trees are where they were planned: whether
// what a switch says that its trees have exchanged over a link was carried by
// the interface at the link's end.
//
// A switch reads both of its own counts, the trees' and the interfaces', at
// one moment, so that switches need no common clock, and each end of a link is
// judged by itself. Of every link and direction the counts since the last
// judgement are held against each other:
//
//		trees' bytes  >  interface's bytes + on their way + allowance   misplaced
//		otherwise, trees' bytes >= 16 x on their way                    in place
//		otherwise                                                       not judged yet
//
//	  - The trees' bytes are those of their UDP payloads. An interface counts the
//	    headers, too, some once for several packets, so that what it has carried
//	    is never less.
//	  - On their way are the packets that one of the two has counted and the other
//	    not yet: those in a socket's buffer or in an interface's queue, at most two
//	    windows of each tree.
//	  - The allowance is a quarter of what was sent, because the queue of an
//	    interface may drop packets before it counts them, and a sixteenth of what
//	    was received, which nobody can lose after it was counted.
//
// Other traffic only adds to what an interface carried, and so never makes an
// alarm; much of it can hide one. A count that falls, and an interface that is
// another one than before, begin the comparison anew; a tree takes part in it
// from the second moment on that it is there.
//
// Like all cores (see package core) it has neither clock nor socket.
package placement
