// Package perf profiles processes by Linux's perf, which sees what the kernel
// does for them as well: where a system call spends its time. What it has seen
// becomes a profile of pprof's format.
//
// A program's own profile, as Go writes it, ends at the system call. Functions of
// the kernel are marked by [KernelMark].
package perf
