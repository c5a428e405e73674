// Package peers runs what users have today, Open MPI, MPICH and Gloo, and
// Tributary side by side: all of them are there at once on the same fabric of
// namespaces, and take turns, round after round, so that what else the machine
// does hits them all.
//
// A peer's programs are compiled when it is needed. One that is missing, fails
// or takes too long is left out, and that is reported.
package peers
