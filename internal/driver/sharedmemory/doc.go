// Package sharedmemory gives the processes of a host memory that they share, for the state
// machine of internal/core/node.
//
// The first process makes the memory, of a size that is sealed, and passes it to the others
// over a Unix socket of the abstract namespace. The socket's name is random, and each end
// checks that the other one's process is of the same user. The connection stays open: when it
// ends, and the other process has not said before that it leaves, that process has died.
//
// A process waits on an eventfd of its own, which all have with the memory, so that a goroutine
// waits and no thread; or, where it goes on soon, on a futex in the memory, so that no other thread
// of its own has to be woken. Others wake it only where it says that it waits.
//
// The memory is freed when all processes have closed it or have died: it has no name that could
// stay.
package sharedmemory
