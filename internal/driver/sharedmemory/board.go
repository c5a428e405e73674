package sharedmemory

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tributary-fabric/tributary/internal/core/node"
)

// ErrUnsupported: this system has no such memory.
var ErrUnsupported = errors.New("sharedmemory: not supported on this system")

// MaxProcesses are the processes of a host, at most.
const MaxProcesses = 64

// Shape is how the memory is divided.
type Shape struct {
	Processes int
	Slots     int // segments under way
	Area      int // bytes of a process in a slot, a multiple of 64
}

// Places in the memory: of the group, of each process, and of each slot; then come the areas.
const (
	finishedAt = 0
	deadAt     = 8  // the process that has died, plus 1
	wayAt      = 12 // of operations between hosts
	processAt  = 128
	perProcess = 128
	waitsAt    = 24 // after three counters: whether it waits, and how
	slotAt     = processAt + MaxProcesses*perProcess
	perSlot    = 1024
	noteAt     = 8 * MaxProcesses // after a tag for each process
)

// NoteSize is the bytes that the first process can note for a segment.
const NoteSize = perSlot - noteAt

func (s Shape) areasAt() int { return (slotAt + s.Slots*perSlot + 4095) &^ 4095 }

// size returns the bytes of the memory.
func (s Shape) size() int { return s.areasAt() + s.Slots*s.Processes*s.Area }

// How a process waits: by its bell, in the Go runtime's poller, or in the kernel.
const (
	awake uint32 = iota
	waiting
	sleeping
)

// Board is the memory as one process sees it. It implements node.Counters.
type Board struct {
	Shape
	own    int
	memory []byte
	bells  bells

	using   sync.RWMutex // held, for reading, by what may be called after Group.Close
	isFreed bool
}

// bells wake processes. One that is rung before it waits does not wait. A process sleeps while its
// word has a value, until it is woken or a moment has passed.
type bells interface {
	ring(process int)
	wait()
	sleep(word *uint32, value uint32) (isWoken bool)
	wake(word *uint32)
}

// alone is the bell of a process that shares with nobody.
type alone chan struct{}

func (a alone) ring(int) {
	select {
	case a <- struct{}{}:
	default:
	}
}

func (a alone) wait() { <-a }

func (a alone) sleep(*uint32, uint32) bool {
	<-a
	return true
}

func (a alone) wake(*uint32) { a.ring(0) }

// Alone returns the board of a process that shares it with nobody, and has no areas.
func Alone(slots int) *Board {
	s := Shape{Processes: 1, Slots: slots}
	words := make([]uint64, s.size()/8)
	return &Board{Shape: s, memory: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), s.size()), bells: make(alone, 1)}
}

func (b *Board) word64(at int) *uint64 { return (*uint64)(unsafe.Pointer(&b.memory[at])) }
func (b *Board) word32(at int) *uint32 { return (*uint32)(unsafe.Pointer(&b.memory[at])) }

func (b *Board) counter(s node.Stage, process int) *uint64 {
	if s == node.Finished {
		return b.word64(finishedAt)
	}
	return b.word64(processAt + process*perProcess + 8*int(s))
}

// Count implements node.Counters.
func (b *Board) Count(s node.Stage, process int) uint64 {
	return atomic.LoadUint64(b.counter(s, process))
}

// Publish sets a counter of this process.
func (b *Board) Publish(s node.Stage, count uint64) { atomic.StoreUint64(b.counter(s, b.own), count) }

// Tag is what a process says of its call of a segment.
func (b *Board) Tag(segment uint64, process int) *uint64 {
	return b.word64(slotAt + b.slot(segment)*perSlot + 8*process)
}

// Note is what the first process notes about a segment that it has finished: NoteSize bytes.
func (b *Board) Note(segment uint64) []byte {
	at := slotAt + b.slot(segment)*perSlot
	return b.memory[at+noteAt : at+perSlot]
}

func (b *Board) slot(segment uint64) int { return int(segment % uint64(b.Slots)) }

// Memory returns the first bytes of a process's area for a segment.
func (b *Board) Memory(segment uint64, process, bytes int) []byte {
	at := b.areasAt() + (b.slot(segment)*b.Processes+process)*b.Area
	return b.memory[at : at+bytes : at+bytes]
}

// Way is a number for all processes to see: the first one sets it.
func (b *Board) Way() *uint32 { return b.word32(wayAt) }

// Wake wakes a process, or all but this one, of those that wait.
func (b *Board) Wake(who int) {
	for p := range b.Processes {
		if p != b.own && (who == node.All || who == p) {
			b.Ring(p)
		}
	}
}

// LastWay returns what the first process has set; 0 after Group.Close.
func (b *Board) LastWay() uint32 {
	b.using.RLock()
	defer b.using.RUnlock()
	if b.isFreed {
		return 0
	}
	return atomic.LoadUint32(b.Way())
}

// Ring wakes a process, which may be this one, if it waits. After Group.Close it does nothing.
func (b *Board) Ring(process int) {
	b.using.RLock()
	defer b.using.RUnlock()
	if b.isFreed {
		return
	}
	word := b.waits(process)
	switch atomic.LoadUint32(word) {
	case waiting:
		b.bells.ring(process)
	case sleeping:
		if atomic.CompareAndSwapUint32(word, sleeping, awake) {
			b.bells.wake(word)
		}
	}
}

// waits is how a process waits.
func (b *Board) waits(process int) *uint32 {
	return b.word32(processAt + process*perProcess + waitsAt)
}

// Wait returns when may reports true, or the process was woken: whoever makes it true rings
// after that. One goroutine waits at a time.
func (b *Board) Wait(may func() bool) {
	waits := b.waits(b.own)
	atomic.StoreUint32(waits, waiting)
	if !may() {
		b.bells.wait()
	}
	atomic.StoreUint32(waits, awake)
}

// Sleep is Wait for who expects to go on soon: it polls, then sleeps in the kernel, so that no other
// thread has to be woken for it. It reports false where that has brought nothing for long: then Wait
// is better.
func (b *Board) Sleep(may func() bool) (isWoken bool) {
	for begun := time.Now(); time.Since(begun) < look; yield() {
		if may() {
			return true
		}
	}
	waits := b.waits(b.own)
	atomic.StoreUint32(waits, sleeping)
	isWoken = may() || b.bells.sleep(waits, sleeping)
	atomic.StoreUint32(waits, awake)
	return isWoken
}

// Mourn has all processes know that one has died, and wakes them.
func (b *Board) Mourn(process int) {
	atomic.CompareAndSwapUint32(b.word32(deadAt), 0, uint32(process)+1)
	for p := range b.Processes {
		b.Ring(p)
	}
}

// Dead returns the process that has died first, if one has.
func (b *Board) Dead() (process int, is bool) {
	n := atomic.LoadUint32(b.word32(deadAt))
	return int(n) - 1, n != 0
}
