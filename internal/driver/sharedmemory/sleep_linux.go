package sharedmemory

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	look     = 20 * time.Microsecond // for which who sleeps polls before
	sleepFor = 20 * time.Millisecond // a sleep at most
)

// Operations of futex(2), on memory that processes share.
const (
	futexWait = 0
	futexWake = 1
)

func (b *eventBells) sleep(word *uint32, value uint32) (isWoken bool) {
	most := unix.NsecToTimespec(sleepFor.Nanoseconds())
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), uintptr(unsafe.Pointer(&most)), 0, 0)
	return err != unix.ETIMEDOUT
}

func (b *eventBells) wake(word *uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// yield lets other threads have the processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
