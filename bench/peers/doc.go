// Package peers compares Tributary with Open MPI, MPICH and Gloo on the same fabric.
// All are present at once and take turns, round after round, so that other load on the
// machine affects them all alike.
//
// A peer's programs are compiled when it is needed. One that is missing, fails
// or takes too long is left out, and that is reported.
package peers
