package udp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

var errBroken = errors.New("the socket is broken")

// brokenConn is a socket that cannot be read.
type brokenConn struct {
	transport.Conn
	isRead chan struct{}
}

func (b brokenConn) ReadBatch([]transport.Packet, time.Time) (int, error) {
	close(b.isRead)
	return 0, errBroken
}

// lateContext is looked at when the socket has been found broken.
type lateContext struct {
	context.Context
	isRead chan struct{}
}

func (c lateContext) Err() error {
	<-c.isRead
	return c.Context.Err()
}

// TestDialOnABrokenSocket: a call from a socket that is broken fails, whenever that is noticed.
func TestDialOnABrokenSocket(t *testing.T) {
	for range 100 {
		isRead := make(chan struct{})
		cfg := Config{Wrap: func(c transport.Conn) transport.Conn { return brokenConn{c, isRead} }}
		_, err := Dial(lateContext{t.Context(), isRead}, netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.1:9"), cfg)
		if !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
	}
}

// TestWritesAreNotMixed: of two Writes at once, one comes behind the other.
func TestWritesAreNotMixed(t *testing.T) {
	a, b := pair(t, Config{})
	const n = 4 << 20
	var writes sync.WaitGroup
	for _, x := range "xy" {
		writes.Go(func() { _, _ = a.Write(bytes.Repeat([]byte{byte(x)}, n)) })
	}
	got := make([]byte, 2*n)
	if _, err := io.ReadFull(b, got); err != nil {
		t.Fatal(err)
	}
	writes.Wait()
	changes := 0
	for i := 1; i < len(got); i++ {
		if got[i] != got[i-1] {
			changes++
		}
	}
	if changes != 1 {
		t.Errorf("two Writes are in %d pieces", changes+1)
	}
}

// TestForeignSource: a datagram for a connection that comes from another address than the peer's
// is not the connection's.
func TestForeignSource(t *testing.T) {
	a, _ := pair(t, Config{})
	s := a.socket
	if s.find(rudp.Data, a.id, a.remote) != a {
		t.Error("a datagram of the peer's finds no connection")
	}
	for _, from := range []string{"127.0.0.1:1", "127.0.0.9:7", "[::1]:7"} {
		if s.find(rudp.Data, a.id, netip.MustParseAddrPort(from)) != nil {
			t.Errorf("a datagram from %s is taken for the peer's", from)
		}
	}
}
