package peer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// former is a connection as hostlib/link.go has it, for comparison: it waits without
// memory, reads bursts through a bufio.Reader, copies each frame to memory of a pool, and
// tries to write what is queued. It goes when hostlib runs on this package.
type former struct {
	conn  net.Conn
	try   *TryWriter
	queue []byte
	take  func(frames []*[]byte)

	mu sync.Mutex
}

var formerQueues = sync.Pool{New: func() any { return new(make([]byte, 0, 4<<10)) }}

var formerBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, 64<<10)) }}

func (l *former) send(head, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = *formerQueues.Get().(*[]byte)
	}
	l.queue = binary.BigEndian.AppendUint32(l.queue, uint32(len(head)+len(body)))
	l.queue = append(append(l.queue, head...), body...)
}

// flush writes what is queued; what the kernel does not take at once is waited for, as
// the goroutine that writes does.
func (l *former) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.try.Write(l.queue)
	if err == nil && n < len(l.queue) {
		_, _ = l.conn.Write(l.queue[n:])
	}
	empty := l.queue[:0]
	formerQueues.Put(&empty)
	l.queue = nil
}

func (l *former) read() {
	idle, r := NewWaiter(l.conn), bufio.NewReaderSize(nil, 256<<10)
	var frames []*[]byte
	for idle.Wait() == nil {
		r.Reset(l.conn)
		for {
			head, err := r.Peek(4)
			if err != nil {
				return
			}
			n := int(binary.BigEndian.Uint32(head))
			_, _ = r.Discard(4)
			b := formerBuffers.Get().(*[]byte)
			*b = (*b)[:n]
			if _, err := io.ReadFull(r, *b); err != nil {
				return
			}
			frames = append(frames, b)
			if head, err := r.Peek(min(4, r.Buffered())); err == nil && len(head) == 4 && len(frames) < 64 && r.Buffered() >= 4+int(binary.BigEndian.Uint32(head)) {
				continue
			}
			l.take(frames)
			for _, b := range frames {
				formerBuffers.Put(b)
			}
			frames = frames[:0]
			if r.Buffered() == 0 {
				break
			}
		}
	}
}

// formerPair returns both ends of a connection that is read from at both.
func formerPair(b *testing.B, take, takeOther func(l *former, frames []*[]byte)) (a *former) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		b.Fatal(err)
	}
	ends := [2]*former{}
	var readers sync.WaitGroup
	for i, conn := range []net.Conn{dialled, accepted} {
		l := &former{conn: conn, try: NewTryWriter(conn)}
		on := []func(*former, []*[]byte){take, takeOther}[i]
		l.take = func(frames []*[]byte) { on(l, frames) }
		ends[i] = l
	}
	for _, l := range ends {
		readers.Go(l.read)
	}
	b.Cleanup(func() {
		dialled.Close()
		accepted.Close()
		readers.Wait()
	})
	return ends[0]
}

// BenchmarkFormerPingPong is BenchmarkPingPong with nothing beside.
func BenchmarkFormerPingPong(b *testing.B) {
	arrived := make(chan int, 16)
	a := formerPair(b, func(_ *former, f []*[]byte) { arrived <- len(f) }, func(l *former, frames []*[]byte) {
		for _, f := range frames {
			l.send(*f, nil)
		}
		l.flush()
	})
	b.ReportAllocs()
	eight := []byte("12345678")
	for b.Loop() {
		a.send(eight, nil)
		a.flush()
		<-arrived
	}
}

// BenchmarkFormerGoodput is BenchmarkGoodput for frames that are copied.
func BenchmarkFormerGoodput(b *testing.B) {
	for _, size := range []int{1472, 64 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			a := formerPair(b, func(*former, []*[]byte) {}, func(*former, []*[]byte) {})
			body := make([]byte, size)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				a.send(nil, body)
				if i%16 == 15 {
					a.flush()
				}
			}
		})
	}
}
