package peer

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// poller reads the connections of the classes Message and Fragment, all of a host. Who waits for something that
// comes on one of them does it (Host.Drive), and nobody has to wake it; otherwise a goroutine
// of the poller's does.
//
//	own goroutine   waits for outer, which is ready when own is, but only while nobody drives
//	who drives      looks at own: it polls, then sleeps in the kernel, then leaves it to the other
type poller struct {
	own   int    // of epoll: the sockets, and event
	event int    // an eventfd: ends a sleep of who drives
	outer *watch // of own

	reading sync.Mutex // held by who reads: one at a time
	events  [64]unix.EpollEvent
	look    time.Duration // for how long the next who drives polls
	stalled int           // so many who drive next sleep at once: others keep the processors

	awaited  atomic.Pointer[runner.Event] // by who drives
	isAsleep atomic.Bool                  // who drives sleeps in the kernel
	isOver   atomic.Bool
	starts   atomic.Bool   // a goroutine was started that is to write
	ended    chan struct{} // closed when the own goroutine has ended

	waking  sync.RWMutex // held, for reading, by who writes to event
	isFreed bool

	mu      sync.Mutex
	readers map[int32]*reader // by descriptor
}

// pollers is a host's poller, once it has one.
type pollers struct {
	mu  sync.Mutex
	has atomic.Pointer[poller]
}

const (
	mostLook  = 300 * time.Microsecond // for which who drives polls: as transport.DefaultPoll
	leastLook = mostLook / 16
	sleepFor  = 20 * time.Millisecond // for which it then sleeps in the kernel
	sleepOnce = 5 * time.Millisecond  // of that, where it may be notified to end by a channel
	stall     = time.Millisecond      // as long as it gets the processor back later than that, it does not poll,
	stalls    = 64                    // but sleeps: so many times
	timeSlice = 8 * time.Millisecond  // after which it lets other goroutines run
)

// driving is how many goroutines of this process drive, and drivingMost how many may: each
// keeps a processor from the others. The rest is served by their pollers' goroutines.
var driving atomic.Int64

func drivingMost() int64 { return int64(runtime.GOMAXPROCS(0) / 2) }

// poller returns the host's poller, which the first call makes.
func (h *Host) poller() (*poller, error) {
	h.pollers.mu.Lock()
	defer h.pollers.mu.Unlock()
	if l := h.pollers.has.Load(); l != nil {
		return l, nil
	}
	l, err := newPoller()
	if err == nil {
		h.pollers.has.Store(l)
	}
	return l, err
}

// starts notes that a goroutine was started that is to write.
func (l *pollers) starts() {
	if of := l.has.Load(); of != nil {
		of.starts.Store(true)
	}
}

// close ends the poller, after its last reader.
func (l *pollers) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.has.Load(); of != nil {
		of.close()
	}
}

func newPoller() (l *poller, err error) {
	l = &poller{own: -1, event: -1, look: mostLook, ended: make(chan struct{}), readers: map[int32]*reader{}}
	if l.own, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if l.event, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
		err = unix.EpollCtl(l.own, unix.EPOLL_CTL_ADD, l.event, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l.event)})
	}
	if err == nil {
		l.outer, err = newWatch()
	}
	if err == nil {
		err = l.outer.control(unix.EPOLL_CTL_ADD, l.own, unix.EPOLLIN)
	}
	if err != nil {
		return nil, errors.Join(err, l.free())
	}
	go l.run()
	return l, nil
}

func (l *poller) close() {
	l.isOver.Store(true)
	l.wake()
	<-l.ended
	l.reading.Lock()
	defer l.reading.Unlock()
	_ = l.free() // nobody uses it any more
}

func (l *poller) free() (err error) {
	l.waking.Lock()
	defer l.waking.Unlock()
	l.isFreed = true
	for _, fd := range []int{l.own, l.event} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	if l.outer != nil {
		err = errors.Join(err, l.outer.Close())
	}
	return err
}

// run reads while nobody drives.
func (l *poller) run() {
	defer close(l.ended)
	// The event by which close wakes may have been read below.
	for !l.isOver.Load() && l.outer.wait(time.Time{}) == nil && !l.isOver.Load() {
		l.reading.Lock()
		l.read(0)
		l.reading.Unlock()
	}
}

// detach has the host's poller read a path, if it can, and returns what is to be done when the
// path has ended.
func (p *Path) detach() (release func()) {
	s := newSocket(p.raw)
	if s == nil {
		return func() {}
	}
	if _, err := p.host.poller(); err != nil {
		s.release()
		return func() {}
	}
	before := p.raw
	hangUp := func() { _ = s.Close() }
	p.hangUp.Store(&hangUp)
	if p.reason.Load() != nil {
		_ = s.Close() // it was broken before
	}
	p.raw, p.socket = s, s
	if p.seal != nil {
		p.seal.Conn = s
	}
	_ = before.Close() // the socket has a descriptor of its own
	return s.release
}

// readSocket has the host's poller read until the connection ends.
func (p *Path) readSocket(r *reader) error { return p.host.pollers.has.Load().serve(r, p.socket) }

// serve has a connection be read until it ends, or a handler finds it broken.
func (l *poller) serve(r *reader, s *socket) error {
	r.ended = make(chan error, 1)
	fd := int32(s.fd)
	l.mu.Lock()
	l.readers[fd] = r
	l.mu.Unlock()
	if err := unix.EpollCtl(l.own, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: fd}); err != nil {
		l.forget(fd)
		return err
	}
	return <-r.ended
}

func (l *poller) forget(fd int32) {
	l.mu.Lock()
	delete(l.readers, fd)
	l.mu.Unlock()
}

// read reads what is there, after a sleep of at most so long, and reports whether something was.
// The caller holds the lock reading.
func (l *poller) read(sleep time.Duration) (isSome bool) {
	for _, e := range l.events[:l.ready(sleep)] {
		isSome = true
		if e.Fd == int32(l.event) {
			var b [8]byte
			_, _ = unix.Read(l.event, b[:]) // else another one has
			continue
		}
		l.mu.Lock()
		r := l.readers[e.Fd]
		l.mu.Unlock()
		if err := r.next(); err != nil {
			_ = unix.EpollCtl(l.own, unix.EPOLL_CTL_DEL, int(e.Fd), nil) // it is there
			l.forget(e.Fd)
			r.ended <- err
		}
	}
	return isSome
}

// ready returns how many events there are.
func (l *poller) ready(sleep time.Duration) int {
	if sleep > 0 { // the runtime gives the processor to others
		n, _ := unix.EpollWait(l.own, l.events[:], int(sleep.Milliseconds()))
		return max(n, 0)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.own), uintptr(unsafe.Pointer(&l.events)), uintptr(len(l.events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// Drive has the calling goroutine read the connections of the classes Message and Fragment, until something has
// happened that comes on them, or quit is closed. It returns earlier where another one does
// that already, or too many of the process do, and when nothing has come for long: the caller
// then waits, and others read. It must not be called by a handler.
func (h *Host) Drive(it *runner.Event, quit <-chan struct{}) {
	l := h.pollers.has.Load()
	if l == nil || driving.Load() >= drivingMost() || !l.reading.TryLock() {
		return
	}
	defer l.reading.Unlock()
	defer driving.Add(-1)
	if driving.Add(1) > drivingMost() || l.isOver.Load() {
		return
	}
	l.awaited.Store(it)
	l.heed(0)
	l.drive(it, quit)
	l.awaited.Store(nil)
	l.heed(unix.EPOLLIN)
	if l.isOver.Load() { // and the event by which close wakes the own goroutine was read here
		l.wake()
	}
}

// heed has the own goroutine be woken by what comes, or not.
func (l *poller) heed(events uint32) {
	_ = l.outer.modify(l.own, events) // it is there
}

func (l *poller) drive(it *runner.Event, quit <-chan struct{}) {
	begun := time.Now()
	since, ran := begun, begun // when something has come last, and when others could run
	slice := sleepFor
	if quit != nil {
		slice = sleepOnce
	}
	for !it.Happened() && !l.isOver.Load() {
		select {
		case <-quit:
			return
		default:
		}
		if l.read(0) {
			since = time.Now()
			continue
		}
		now := time.Now()
		switch idle := now.Sub(since); {
		case now.Sub(ran) > timeSlice:
			runtime.Gosched()
			ran = time.Now()
		case idle < l.look && l.stalled == 0 && !l.starts.Load():
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			if time.Since(now) > stall {
				l.stalled = stalls
			}
		case idle < sleepFor:
			if l.starts.Swap(false) { // not to sleep with what it has started in this processor's queue
				runtime.Gosched()
				continue
			}
			l.isAsleep.Store(true)
			if !it.Happened() && l.read(min(slice, max(time.Millisecond, sleepFor-idle))) {
				since = time.Now()
			}
			l.isAsleep.Store(false)
		default:
			l.look = max(l.look/2, leastLook)
			return
		}
	}
	l.stalled = max(0, l.stalled-1)
	if time.Since(begun) < mostLook {
		l.look = mostLook
	} else {
		l.look = max(l.look/2, leastLook)
	}
}

// Wake ends a sleep of who drives until something has happened, after it has.
func (h *Host) Wake(it *runner.Event) {
	if l := h.pollers.has.Load(); l != nil && l.isAsleep.Load() && l.awaited.Load() == it {
		l.wake()
	}
}

func (l *poller) wake() {
	l.waking.RLock()
	defer l.waking.RUnlock()
	if l.isFreed {
		return
	}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(l.event, b[:]) // fails if it was done two billion times
}
