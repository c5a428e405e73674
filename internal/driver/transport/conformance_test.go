package transport_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

// pair opens two Conns that reach each other and lose nothing while a few
// hundred datagrams wait. The test that it gets closes them by Cleanup.
type pair func(t *testing.T) (a, b transport.Conn)

// conform checks what every Conn must do.
func conform(t *testing.T, pair pair) {
	for _, tt := range []struct {
		name string
		test func(*testing.T, transport.Conn, transport.Conn)
	}{
		{"a batch arrives whole and in order", testBatch},
		{"head and body are gathered", testGather},
		{"the buffers are the sender's again", testReuse},
		{"a small batch leaves the rest", testSmallBatch},
		{"a run is as many datagrams", testRun},
		{"what was read stays until the next read", testLent},
		{"an empty datagram", testEmpty},
		{"deadline", testDeadline},
		{"a past deadline returns what is there", testPastDeadline},
		{"wake before a read", testWakeBefore},
		{"wake during a read", testWakeDuring},
		{"wake does not hide what is there", testWakeWithData},
		{"counters", testCounters},
		{"close ends a read", testClose},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := pair(t)
			tt.test(t, a, b)
		})
	}
}

func testBatch(t *testing.T, a, b transport.Conn) {
	const count = 200 // several system calls
	var messages []transport.Message
	for i := range count {
		messages = append(messages, transport.Message{To: b.LocalAddr(), Body: fmt.Append(nil, "datagram ", i)})
	}
	write(t, a, messages...)
	got := read(t, b, count)
	for i := range got {
		if want := fmt.Sprint("datagram ", i); string(got[i].Data) != want || got[i].From != a.LocalAddr() {
			t.Fatalf("datagram %d is %q from %v; want %q from %v", i, got[i].Data, got[i].From, want, a.LocalAddr())
		}
	}
}

func testGather(t *testing.T, a, b transport.Conn) {
	shared := []byte("body")
	write(t, a,
		transport.Message{To: b.LocalAddr(), Head: []byte("one "), Body: shared},
		transport.Message{To: b.LocalAddr(), Head: []byte("two "), Body: shared},
		transport.Message{To: b.LocalAddr(), Head: []byte("three")},
	)
	for i, p := range read(t, b, 3) {
		if want := []string{"one body", "two body", "three"}[i]; string(p.Data) != want {
			t.Errorf("datagram %d is %q, want %q", i, p.Data, want)
		}
	}
}

func testReuse(t *testing.T, a, b transport.Conn) {
	body := []byte("first")
	write(t, a, transport.Message{To: b.LocalAddr(), Body: body})
	copy(body, "other")
	if got := read(t, b, 1); string(got[0].Data) != "first" {
		t.Errorf("got %q", got[0].Data)
	}
}

func testSmallBatch(t *testing.T, a, b transport.Conn) {
	for i := range 5 {
		write(t, a, transport.Message{To: b.LocalAddr(), Body: []byte{byte(i)}})
	}
	packets := make([]transport.Packet, 2)
	for seen := 0; seen < 5; {
		n, err := b.ReadBatch(packets, limit())
		if err != nil || n < 1 || n > 2 {
			t.Fatalf("got %d packets, %v", n, err)
		}
		for _, p := range packets[:n] {
			if !bytes.Equal(p.Data, []byte{byte(seen)}) {
				t.Fatalf("got %v, want %d", p.Data, seen)
			}
			seen++
		}
	}
}

func testRun(t *testing.T, a, b transport.Conn) {
	run := []byte("aaaabbbbccccd")
	write(t, a,
		transport.Message{To: b.LocalAddr(), Head: []byte("x"), Body: []byte("yz_")},
		transport.Message{To: b.LocalAddr(), Body: run, Size: 4},
		transport.Message{To: b.LocalAddr(), Body: run[:8], Size: 4},
		transport.Message{To: b.LocalAddr(), Body: []byte("last"), Size: 100},
	)
	for i, p := range read(t, b, 8) {
		if want := []string{"xyz_", "aaaa", "bbbb", "cccc", "d", "aaaa", "bbbb", "last"}[i]; string(p.Data) != want {
			t.Errorf("datagram %d is %q, want %q", i, p.Data, want)
		}
	}
}

func testLent(t *testing.T, a, b transport.Conn) {
	const count = 20
	for i := range count {
		write(t, a, transport.Message{To: b.LocalAddr(), Body: []byte{byte(i)}})
	}
	packets := make([]transport.Packet, 3)
	for seen := 0; seen < count; {
		n, err := b.ReadBatch(packets, limit())
		if err != nil {
			t.Fatal(err)
		}
		write(t, a, transport.Message{To: b.LocalAddr(), Body: []byte("more, while the first are lent")})
		for _, p := range packets[:n] {
			if seen < count && !bytes.Equal(p.Data, []byte{byte(seen)}) {
				t.Fatalf("datagram %d is %q", seen, p.Data)
			}
			seen++
		}
	}
}

func testEmpty(t *testing.T, a, b transport.Conn) {
	write(t, a, transport.Message{To: b.LocalAddr()})
	if got := read(t, b, 1); len(got[0].Data) != 0 || got[0].From != a.LocalAddr() {
		t.Errorf("got %d bytes from %v", len(got[0].Data), got[0].From)
	}
}

func testDeadline(t *testing.T, _, b transport.Conn) {
	packets := make([]transport.Packet, 1)
	for _, d := range []time.Duration{-time.Hour, 0, time.Millisecond} {
		if n, err := b.ReadBatch(packets, time.Now().Add(d)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("deadline %v from now: got %d, %v", d, n, err)
		}
	}
}

func testPastDeadline(t *testing.T, a, b transport.Conn) {
	write(t, a, transport.Message{To: b.LocalAddr(), Body: []byte("first")})
	read(t, b, 1) // so that the way is known to work
	write(t, b, transport.Message{To: b.LocalAddr(), Body: []byte("to itself")})
	packets, end := make([]transport.Packet, 1), limit()
	for {
		n, err := b.ReadBatch(packets, time.Now().Add(-time.Hour))
		if n == 1 && err == nil {
			return
		}
		if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Now().After(end) { // a system may hand it over a moment later
			t.Fatalf("got %d, %v", n, err)
		}
	}
}

func testWakeBefore(t *testing.T, _, b transport.Conn) {
	b.Wake()
	b.Wake()
	packets := make([]transport.Packet, 1)
	if n, err := b.ReadBatch(packets, time.Time{}); n != 0 || !errors.Is(err, transport.ErrWoken) {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := b.ReadBatch(packets, time.Now()); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after it: got %d, %v", n, err)
	}
}

func testWakeDuring(t *testing.T, a, b transport.Conn) {
	const times = 100
	ended := make(chan error)
	go func() {
		packets := make([]transport.Packet, 1)
		for range times {
			_, err := b.ReadBatch(packets, time.Time{})
			ended <- err
		}
		_, err := b.ReadBatch(packets, time.Time{})
		ended <- err
	}()
	for range times {
		b.Wake()
		if err := wait(t, ended); !errors.Is(err, transport.ErrWoken) {
			t.Fatalf("got %v", err)
		}
	}
	write(t, a, transport.Message{To: b.LocalAddr(), Body: []byte("still reads")})
	if err := wait(t, ended); err != nil {
		t.Fatal(err)
	}
}

func testWakeWithData(t *testing.T, _, b transport.Conn) {
	write(t, b, transport.Message{To: b.LocalAddr(), Body: []byte("to itself")})
	b.Wake()
	packets := make([]transport.Packet, 1)
	if n, err := b.ReadBatch(packets, time.Time{}); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := b.ReadBatch(packets, time.Time{}); n != 0 || !errors.Is(err, transport.ErrWoken) {
		t.Errorf("after it: got %d, %v", n, err)
	}
}

func testCounters(t *testing.T, a, b transport.Conn) {
	headers := 28
	if a.LocalAddr().Addr().Is6() {
		headers = 48
	}
	write(t, a,
		transport.Message{To: b.LocalAddr(), Head: []byte("12345"), Body: []byte("678")},
		transport.Message{To: b.LocalAddr(), Head: []byte("9")},
	)
	read(t, b, 2)
	bytes := uint64(9 + 2*headers)
	if got, want := datagrams(a), (transport.Counters{PacketsOut: 2, BytesOut: bytes}); got != want {
		t.Errorf("sender: got %+v, want %+v", got, want)
	}
	if got, want := datagrams(b), (transport.Counters{PacketsIn: 2, BytesIn: bytes}); got != want {
		t.Errorf("receiver: got %+v, want %+v", got, want)
	}
}

// datagrams returns c's counters but for system calls, of which there are as
// many as it takes.
func datagrams(c transport.Conn) transport.Counters {
	counted := c.Counters()
	counted.ReadCalls, counted.WriteCalls, counted.WaitCalls = 0, 0, 0
	return counted
}

func testClose(t *testing.T, a, b transport.Conn) {
	ended := make(chan error)
	go func() {
		_, err := b.ReadBatch(make([]transport.Packet, 1), time.Time{})
		ended <- err
	}()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, ended); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read: got %v", err)
	}
	if err := b.WriteBatch([]transport.Message{{To: a.LocalAddr()}}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write: got %v", err)
	}
	if err := b.Close(); err == nil {
		t.Error("second close: no error")
	}
}

func limit() time.Time { return time.Now().Add(patience) }

func write(t *testing.T, c transport.Conn, messages ...transport.Message) {
	t.Helper()
	if err := c.WriteBatch(messages); err != nil {
		t.Fatal(err)
	}
}

// read reads count packets, and keeps copies of them.
func read(t *testing.T, c transport.Conn, count int) []transport.Packet {
	t.Helper()
	packets := make([]transport.Packet, count)
	for n := 0; n < count; {
		m, err := c.ReadBatch(packets[n:], limit())
		if err != nil {
			t.Fatalf("after %d of %d packets: %v", n, count, err)
		}
		for i := range packets[n : n+m] {
			packets[n+i].Data = bytes.Clone(packets[n+i].Data)
		}
		n += m
	}
	return packets
}

func wait(t *testing.T, c <-chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("nothing happened")
		return nil
	}
}
