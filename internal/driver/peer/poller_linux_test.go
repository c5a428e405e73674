package peer

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// socketPair returns a socket, and the other end of its connection.
func socketPair(t *testing.T) (*socket, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	one, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := newSocket(one)
	one.Close() // the socket has a descriptor of its own
	t.Cleanup(func() { s.Close(); s.release(); other.Close() })
	return s, other
}

// TestSocketWrites: what the kernel has no room for waits for the other side, for a deadline, or
// for Close.
func TestSocketWrites(t *testing.T) {
	s, other := socketPair(t)
	const size = 32 << 20
	got := make(chan int64, 1)
	go func() {
		n, _ := io.CopyN(io.Discard, other, 2*size)
		got <- n
	}()
	if n, err := s.Write(make([]byte, size)); n != size || err != nil {
		t.Fatalf("%d bytes are written: %v", n, err)
	}
	vectors := [][]byte{make([]byte, size/2), make([]byte, size/2)}
	for n := 0; n < size; {
		k, err := s.writeVectors(vectors)
		if err != nil {
			t.Fatal(err)
		}
		n += k
		first := min(k, len(vectors[0]))
		vectors = [][]byte{vectors[0][first:], vectors[1][k-first:]}
		if len(vectors[0]) == 0 {
			vectors = [][]byte{vectors[1], nil}
		}
	}
	if n := <-got; n != 2*size {
		t.Fatalf("%d bytes have arrived, of %d", n, 2*size)
	}
	_ = s.SetWriteDeadline(time.Now().Add(time.Millisecond))
	if n, err := s.Write(make([]byte, size)); n == size || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("with nobody who reads, %d bytes are written: %v", n, err)
	}
	_ = s.SetWriteDeadline(time.Time{})
	ended := make(chan error, 1)
	go func() {
		_, err := s.Write(make([]byte, size))
		ended <- err
	}()
	s.Close()
	if err := <-ended; err == nil {
		t.Fatal("all is written after Close")
	}
	if _, err := s.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("after Close, a read returns %v", err)
	}
}

// TestDrive: who waits reads what comes, and is woken where something else ends the wait.
func TestDrive(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	w := newTown()
	var happened atomic.Pointer[runner.Event]
	back := &witness{}
	back.onFrames = func(_ *Conn, frames []Frame) {
		if frames[0].Stream != 0 {
			t.Errorf("a frame has stream %#x", frames[0].Stream)
		}
		happened.Load().Happen()
	}
	with := func(h Handler) func(*Config) {
		return func(c *Config) { c.Handlers = map[Service]Handler{testService: h} }
	}
	a, _ := w.settle(t, "a", 1, with(&witness{}))
	b, _ := w.settle(t, "b", 1, with(back))
	first := &runner.Event{}
	happened.Store(first)
	l := a.Channel("b", Message)
	l.Call()
	await(t, "a connection", func() bool {
		return l.Send(&Send{Service: testService, Body: []byte("12345678"), MayWait: true}) == nil
	})
	l.Flush(testService, nil)
	first.Await(nil, nil)
	for range 100 {
		it := &runner.Event{}
		happened.Store(it)
		go func() {
			_ = l.Send(&Send{Service: testService, Body: []byte("12345678"), MayWait: true})
			l.Flush(testService, nil)
		}()
		b.Drive(it, nil)
		it.Await(nil, nil)
	}
	for range 100 { // what no connection brings
		it := &runner.Event{}
		go func() {
			it.Happen()
			b.Wake(it)
		}()
		b.Drive(it, nil)
		it.Await(nil, nil)
	}
	quit := make(chan struct{})
	close(quit)
	b.Drive(&runner.Event{}, quit)
}

// TestLateAcknowledgement: a frame whose acknowledgement may wait is acknowledged by the next one
// the other way.
func TestLateAcknowledgement(t *testing.T) {
	p := &Path{host: &Host{}, class: Message}
	p.channel = &Channel{host: p.host}
	p.conn = &Conn{host: p.host, channel: p.channel, class: Message}
	p.host.late.paths = []*Path{{}} // its timer runs
	for n := range uint32(lateMost - 1) {
		p.taken.Store(n + 1)
		p.acknowledgeLater()
		if len(p.queue.out.b) > 0 {
			t.Fatalf("%d frames are acknowledged", n+1)
		}
	}
	if len(p.host.late.paths) != 2 {
		t.Fatalf("a timer acknowledges %d paths, want this one, once", len(p.host.late.paths)-1)
	}
	if err := p.conn.layOn(p, &Send{Service: testService, Body: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if s, f, _, ok, err := parse(p.queue.out.b, 1<<10); s != itself || !ok || err != nil || f.Bytes[0] != ack || f.Bytes[7] != lateMost-1 {
		t.Fatalf("in front of the next frame lies %v of service %d: %v", f, s, err)
	}
}
