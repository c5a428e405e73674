package bulk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const testKey = 0x8f3a_77c1_0be2_9d45

// node is a Bulk that others reach by TCP.
type node struct {
	*Bulk
	listener net.Listener
	conns    chan net.Conn // that were accepted
}

// listening returns a node under the name of its address.
func listening(t testing.TB, c Config) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{New(c), l, make(chan net.Conn, 100)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n.conns <- conn
			serving.Go(func() { n.Serve(context.Background(), conn) })
		}
	})
	t.Cleanup(func() {
		n.Close()
		l.Close()
		serving.Wait()
	})
	return n
}

func (n *node) name() string { return n.listener.Addr().String() }

func byTCP(ctx context.Context, node string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", node)
}

// caller returns a Bulk that pulls by TCP.
func caller(t testing.TB) *Bulk {
	b := New(Config{Dial: byTCP})
	t.Cleanup(func() { b.Close() })
	return b
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

// cut cuts b into vectors, some of them empty.
func cut(t *rapid.T, b []byte, label string) [][]byte {
	var all [][]byte
	for len(b) > 0 {
		n := rapid.IntRange(0, len(b)).Draw(t, label)
		all, b = append(all, b[:n:n]), b[n:]
	}
	return all
}

// TestPoint36Pull: what is pulled is what was exposed, however both are cut, and
// over however many connections.
func TestPoint36Pull(t *testing.T) {
	server, client := listening(t, Config{}), caller(t)
	key := uint64(testKey)
	rapid.Check(t, func(t *rapid.T) {
		key++
		want := random(rapid.SampledFrom([]int{1, 17, 4096, chunk - 1, chunk, chunk + 1, 3*chunk + 5}).Draw(t, "bytes"))
		if err := server.Expose(key, cut(t, want, "exposed")); err != nil {
			t.Fatal(err)
		}
		defer server.Revoke(key)
		got := make([]byte, len(want)+rapid.IntRange(0, 9).Draw(t, "spare"))
		into := cut(t, got, "into")
		if err := client.Pull(context.Background(), server.name(), key, uint64(len(want)), into); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got[:len(want)], want) || slices.ContainsFunc(got[len(want):], func(b byte) bool { return b != 0 }) {
			t.Error("other bytes arrived")
		}
	})
	if n := len(server.conns); n != 1 {
		t.Errorf("%d connections for pulls one after another, want 1", n)
	}
}

// TestIdleConnections: connections that wait for a pull do not pile up as nodes
// come and go; the one that has waited longest ends.
func TestIdleConnections(t *testing.T) {
	client := New(Config{Dial: byTCP, IdleAll: 2})
	t.Cleanup(func() { client.Close() })
	var first, last net.Conn // at the nodes
	for i := range 4 {
		server := listening(t, Config{})
		if err := server.Expose(testKey, [][]byte{{1}}); err != nil {
			t.Fatal(err)
		}
		if err := client.Pull(context.Background(), server.name(), testKey, 1, [][]byte{make([]byte, 1)}); err != nil {
			t.Fatal(err)
		}
		if last = <-server.conns; i == 0 {
			first = last
		}
	}
	client.mu.Lock()
	defer client.mu.Unlock()
	if n := len(client.idle); n != 2 || client.idle[1].conn.LocalAddr().String() != last.RemoteAddr().String() {
		t.Errorf("%d connections are kept, want 2, the last one among them", n)
	}
	for _, i := range client.idle {
		if i.conn.LocalAddr().String() == first.RemoteAddr().String() {
			t.Error("the first one is kept")
		}
	}
}

// TestManyAtOnce: pulls of one memory by many, more than are served at once.
func TestManyAtOnce(t *testing.T) {
	server := listening(t, Config{Readers: 3})
	want := random(2 * chunk)
	if err := server.Expose(testKey, [][]byte{want}); err != nil {
		t.Fatal(err)
	}
	var pulls sync.WaitGroup
	for range 20 {
		pulls.Go(func() {
			got := make([]byte, len(want))
			if err := caller(t).Pull(context.Background(), server.name(), testKey, uint64(len(want)), [][]byte{got}); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%v, or other bytes", err)
			}
		})
	}
	pulls.Wait()
	server.Revoke(testKey)
	if n := server.Counters(); n.Served != 20 || n.Bytes != 20*2*chunk {
		t.Errorf("%+v", n)
	}
}

// TestForgedKeys: without the key and the length there is no memory.
func TestForgedKeys(t *testing.T) {
	server, client := listening(t, Config{}), caller(t)
	if err := server.Expose(testKey, [][]byte{random(100)}); err != nil {
		t.Fatal(err)
	}
	forged := []struct{ key, length uint64 }{{testKey + 1, 100}, {testKey, 99}, {testKey, 101}, {0, 100}, {testKey, 0}}
	for _, f := range forged {
		if err := client.Pull(context.Background(), server.name(), f.key, f.length, [][]byte{make([]byte, 200)}); !errors.Is(err, ErrRefused) {
			t.Errorf("key %#x, %d bytes: %v, want ErrRefused", f.key, f.length, err)
		}
	}
	if n := server.Counters(); n.Refused != uint64(len(forged)) || n.Bytes != 0 {
		t.Errorf("%+v", n)
	}
	if got := len(server.conns); got != len(forged) {
		t.Errorf("%d forgeries on %d connections, want each on its own", len(forged), got)
	}
	server.Revoke(testKey)
	if err := client.Pull(context.Background(), server.name(), testKey, 100, [][]byte{make([]byte, 100)}); !errors.Is(err, ErrRefused) {
		t.Errorf("revoked memory: %v, want ErrRefused", err)
	}
}

func TestExpose(t *testing.T) {
	b := New(Config{Dial: byTCP})
	if err := b.Expose(1, [][]byte{{1}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Expose(1, [][]byte{{2}}); !errors.Is(err, ErrKey) {
		t.Errorf("a key twice: %v", err)
	}
	if err := b.Expose(2, [][]byte{{}, nil}); !errors.Is(err, ErrKey) {
		t.Errorf("nothing: %v", err)
	}
	b.Revoke(1)
	b.Revoke(1)
	if err := b.Expose(1, [][]byte{{1}}); err != nil {
		t.Errorf("a key again after it was revoked: %v", err)
	}
	if err := b.Pull(context.Background(), "", 1, 2, [][]byte{{1}}); !errors.Is(err, ErrRoom) {
		t.Errorf("2 bytes into 1: %v", err)
	}
	b.Close()
	if err := b.Expose(3, [][]byte{{1}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := b.Pull(context.Background(), "", 1, 1, [][]byte{{1}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// reader pulls by hand, so that it can stop in the middle.
func reader(t *testing.T, b *Bulk, key, length uint64) (conn net.Conn, served chan struct{}) {
	t.Helper()
	conn, far := net.Pipe()
	served = make(chan struct{})
	go func() {
		defer close(served)
		b.Serve(context.Background(), far)
	}()
	pull := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, key), length)
	if _, err := conn.Write(pull); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil { // the answer, and a byte of memory
		t.Fatal(err)
	}
	return conn, served
}

// TestPoint36RevokedWhileRead: once Revoke has returned the memory is its
// owner's again, although a reader had not come to its end. That the writes to it
// race with nothing is for the race detector to say.
func TestPoint36RevokedWhileRead(t *testing.T) {
	b := New(Config{Stall: time.Hour})
	defer b.Close()
	memory := random(chunk * 2)
	if err := b.Expose(testKey, [][]byte{memory}); err != nil {
		t.Fatal(err)
	}
	conn, served := reader(t, b, testKey, uint64(len(memory)))
	b.Revoke(testKey)
	clear(memory)
	<-served
	rest, err := io.ReadAll(conn)
	if err != nil || len(rest) > 0 {
		t.Errorf("%d bytes after the memory was revoked, %v", len(rest), err)
	}
	if n := b.Counters(); n.Cut != 1 || n.Served != 0 {
		t.Errorf("%+v", n)
	}
}

// TestStalledReader: who takes nothing is given up, and the next one served.
func TestStalledReader(t *testing.T) {
	b := New(Config{Stall: 500 * time.Millisecond, Readers: 1})
	defer b.Close()
	if err := b.Expose(testKey, [][]byte{random(chunk)}); err != nil {
		t.Fatal(err)
	}
	_, first := reader(t, b, testKey, chunk)
	_, second := reader(t, b, testKey, chunk) // waits for its turn
	<-first
	b.Revoke(testKey)
	<-second
}

// stub is a node that does something else than to serve.
func stub(t *testing.T, do func(conn net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() {
				do(conn)
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		done.Wait()
	})
	return l.Addr().String()
}

// TestPullsEnd: by their context, by a node that stalls or goes, and by Close.
func TestPullsEnd(t *testing.T) {
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	half := func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, pullSize))
		_, _ = conn.Write([]byte{granted, 1, 2, 3})
	}
	stalls := func(conn net.Conn) { half(conn); silent(conn) }
	into := [][]byte{make([]byte, 10)}
	t.Run("the context's deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := caller(t).Pull(ctx, stub(t, silent), 1, 10, into); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		node := stub(t, func(conn net.Conn) { half(conn); cancel(); silent(conn) })
		if err := caller(t).Pull(ctx, node, 1, 10, into); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("the node stalls", func(t *testing.T) {
		b := New(Config{Dial: byTCP, Stall: 10 * time.Millisecond})
		defer b.Close()
		var timeout net.Error
		if err := b.Pull(context.Background(), stub(t, stalls), 1, 10, into); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v", err)
		}
	})
	t.Run("the node goes", func(t *testing.T) {
		err := caller(t).Pull(context.Background(), stub(t, half), 1, 10, into)
		if !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "7 bytes to come") {
			t.Errorf("%v", err)
		}
	})
	t.Run("Close", func(t *testing.T) {
		b := New(Config{Dial: byTCP})
		node := stub(t, func(conn net.Conn) { half(conn); b.Close(); silent(conn) })
		if err := b.Pull(context.Background(), node, 1, 10, into); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
	t.Run("waiting for a turn", func(t *testing.T) {
		b := New(Config{Dial: byTCP, Pulls: 1})
		defer b.Close()
		ctx, cancel := context.WithCancel(context.Background())
		node := stub(t, func(conn net.Conn) { cancel(); silent(conn) })
		var first sync.WaitGroup
		held, release := context.WithCancel(context.Background())
		first.Go(func() { _ = b.Pull(held, node, 1, 10, [][]byte{make([]byte, 10)}) })
		if err := b.Pull(ctx, node, 1, 10, into); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		release()
		first.Wait()
	})
}

// TestLostConnection: a connection that ended while nobody used it costs the
// next pull nothing but another one.
func TestLostConnection(t *testing.T) {
	server, client := listening(t, Config{}), caller(t)
	if err := server.Expose(testKey, [][]byte{{1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	into := [][]byte{make([]byte, 3)}
	for range 3 {
		if err := client.Pull(context.Background(), server.name(), testKey, 3, into); err != nil {
			t.Fatal(err)
		}
		(<-server.conns).Close()
	}
}

// FuzzServe: whatever comes on a connection, memory goes only to who names key
// and length.
func FuzzServe(f *testing.F) {
	memory := []byte("secret memory")
	valid := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, testKey), uint64(len(memory)))
	f.Add(valid)
	f.Add(append(slices.Clone(valid), valid...))
	f.Add(valid[:9])
	f.Fuzz(func(t *testing.T, in []byte) {
		b := New(Config{})
		if err := b.Expose(testKey, [][]byte{memory}); err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		var serving sync.WaitGroup
		serving.Go(func() { b.Serve(context.Background(), far) })
		serving.Go(func() { _, _ = near.Write(in) })
		var want []byte
		pulls := 0
		for rest := in; len(rest) >= pullSize; rest = rest[pullSize:] {
			if !bytes.Equal(rest[:pullSize], valid) {
				want = append(want, refused)
				break
			}
			want = append(append(want, granted), memory...)
			pulls++
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(near, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%x is answered %x, %v, want %x", in, got, err, want)
		}
		near.Close()
		serving.Wait()
		if n := b.Counters(); n.Bytes != uint64(pulls*len(memory)) {
			t.Errorf("%d bytes were sent for %d pulls", n.Bytes, pulls)
		}
		b.Close()
	})
}
