// Package linkaudit checks that trees use the links that they were planned on. It
// compares what a switch says that its trees have exchanged over a link with what the
// interface at the link's end has carried.
//
// A switch reads both of its own counts, the trees' and the interfaces', at
// one moment, so that switches need no common clock, and each end of a link is
// judged by itself. Of every link and direction the counts are held against
// each other from the moment on since which the most is missing, which is a
// cumulative sum (Page, "Continuous Inspection Schemes", Biometrika, 1954):
//
//	missing  =  trees' bytes - allowance - interface's bytes
//	missing  >  on their way    misplaced
//	missing <=  0               in place; the sums begin anew
//
// So what was in place before, however much it was, does not hide what is not
// now: where packets go elsewhere the alarm comes as soon as they are more than
// what may be on its way and an allowance of their own.
//
//   - The trees' bytes are those of their UDP payloads. An interface counts the
//     headers, too, some once for several packets, so that what it has carried
//     is never less.
//   - On their way are the packets that one of the two has counted and the other
//     not yet: those in a socket's buffer or in an interface's queue, at most one
//     window of each tree; and one more, which a queue may have dropped at once.
//   - The allowance is a quarter of what was sent, because the queue of an
//     interface may drop packets before it counts them, and a sixteenth of what
//     was received, which nobody can lose after it was counted.
//
// Other traffic only adds to what an interface carried, and so never makes an
// alarm; much of it can hide one while it lasts. A mismatch stands until nothing
// is missing and sixteen times what may be on its way has passed since it was
// found, or until its trees are gone. A count that falls, and an interface that is
// another one than before, begin the comparison anew; a tree takes part in it
// from the second moment on that it is there.
//
// Like all cores (see package core) it has neither clock nor socket.
package linkaudit
