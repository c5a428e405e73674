package udp

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// patience ends a test that would wait for ever; no test waits for it to pass.
const patience = 30 * time.Second

var loopback4 = netip.MustParseAddrPort("127.0.0.1:0")

func listen(t testing.TB, cfg Config) *Listener {
	t.Helper()
	l, err := Listen(loopback4, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (l *Listener) addrPort() netip.AddrPort { return l.socket.conn.LocalAddr() }

// pair returns both ends of a connection.
func pair(t testing.TB, cfg Config) (a, b *Conn) {
	t.Helper()
	l := listen(t, cfg)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a, err := Dial(ctx, loopback4, l.addrPort(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Abort(); _ = c.(*Conn).Abort() })
	return a, c.(*Conn)
}

// faulty has datagrams lost, doubled and reordered.
func faulty(f transport.Faults) Config {
	return Config{Wrap: func(c transport.Conn) transport.Conn {
		f.Seed++
		w, err := transport.WithFaults(c, f)
		if err != nil {
			panic(err)
		}
		return w
	}}
}

// TestConformance runs the suite of golang.org/x/net on connections.
func TestConformance(t *testing.T) {
	for name, cfg := range map[string]Config{
		"clean": {}, "without batches": {Without: transport.AllFeatures},
		"faulty": faulty(transport.Faults{Loss: 0.01, Duplicate: 0.01, Reorder: 0.01}),
	} {
		t.Run(name, func(t *testing.T) {
			nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
				a, b := pair(t, cfg)
				return a, b, func() { _ = a.Close(); _ = b.Close() }, nil
			})
		})
	}
}

// TestHalfClose: the peer reads the end, and may still answer.
func TestHalfClose(t *testing.T) {
	a, b := pair(t, Config{})
	question, answer := bytes.Repeat([]byte("question"), 1<<17), bytes.Repeat([]byte("answer"), 1<<16)
	go func() {
		if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, question) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		_, _ = b.Write(answer)
		_ = b.Close()
	}()
	if _, err := a.Write(question); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a); err != nil || !bytes.Equal(got, answer) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}
