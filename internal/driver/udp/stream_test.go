package udp

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// TestTLS moves bytes both ways under TLS 1.3, over a network that loses, doubles and
// reorders.
func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a, b := pair(t, faulty(transport.Faults{Loss: 0.01, Duplicate: 0.01, Reorder: 0.01}))
	client := tls.Client(a, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS13})
	var wait sync.WaitGroup
	send := make([]byte, 3<<20)
	_, _ = rand.Read(send)
	for _, c := range []*tls.Conn{client, server} {
		wait.Go(func() {
			if _, err := c.Write(send); err != nil {
				t.Error(err)
			}
			if err := c.CloseWrite(); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() {
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, send) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	wait.Wait()
}

// TestOneSocket: listeners that call each other have all connections on their sockets.
func TestOneSocket(t *testing.T) {
	l, m := listen(t, Config{}), listen(t, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const many = 20
	var wait sync.WaitGroup
	echo := func(l *Listener) {
		for range many {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			wait.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			})
		}
	}
	wait.Go(func() { echo(l) })
	wait.Go(func() { echo(m) })
	for i := range 2 * many {
		from, to := l, m
		if i%2 == 0 {
			from, to = m, l
		}
		wait.Go(func() {
			c, err := from.Dial(ctx, to.addrPort())
			if err != nil {
				t.Error(err)
				return
			}
			if c.LocalAddr().String() != from.Addr().String() {
				t.Errorf("from %v, want %v", c.LocalAddr(), from.Addr())
			}
			text := bytes.Repeat([]byte{byte(i)}, 10_000+i)
			wait.Go(func() {
				if _, err := c.Write(text); err != nil {
					t.Error(err)
				}
				_ = c.CloseWrite()
			})
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
			}
			_ = c.Close()
		})
	}
	wait.Wait()
	_ = l.Close()
	_ = m.Close()
	<-l.Done()
	<-m.Done()
}

// TestTryWrite: it takes what there is room for, without waiting, and more when the peer
// has read.
func TestTryWrite(t *testing.T) {
	cfg := Config{Connection: rudp.Config{SendBuffer: 10_000, ReceiveBuffer: 10_000}}
	a, b := pair(t, cfg)
	sent := 0
	for {
		n, err := a.TryWrite(make([]byte, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if sent += n; n == 0 && a.Stats().InFlight == 0 && sent >= 20_000 {
			break // both buffers are full
		}
	}
	if sent > 20_000 {
		t.Errorf("%d bytes in two buffers of 10,000", sent)
	}
	if _, err := io.ReadFull(b, make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
}

// TestNobodyThere: a call to where nobody listens ends with its context.
func TestNobodyThere(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	time.AfterFunc(time.Millisecond, func() { cancel(why) })
	if _, err := Dial(ctx, loopback4, netip.MustParseAddrPort("127.0.0.1:9"), Config{}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	l := listen(t, Config{})
	if _, err := l.Dial(ctx, l.addrPort()); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// TestAbort: the peer learns of it, after what had come.
func TestAbort(t *testing.T) {
	a, b := pair(t, Config{})
	if _, err := a.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	room := make([]byte, 5)
	if _, err := io.ReadFull(b, room); err != nil || string(room) != "hello" {
		t.Fatal(string(room), err)
	}
	_ = a.Abort()
	if _, err := b.Read(room); !errors.Is(err, rudp.ErrReset) {
		t.Errorf("%v", err)
	}
	if _, err := a.Read(room); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestBacklog: calls that nobody accepts are not answered beyond a number, and those that
// wait are reset when the listener is closed.
func TestBacklog(t *testing.T) {
	l := listen(t, Config{Backlog: 1})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := Dial(ctx, loopback4, l.addrPort(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	short := Config{Connection: rudp.Config{ConnectWithin: 200 * time.Millisecond}}
	if _, err := Dial(ctx, loopback4, l.addrPort(), short); !errors.Is(err, rudp.ErrTimeout) {
		t.Errorf("%v", err)
	}
	_ = l.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, rudp.ErrReset) {
		t.Errorf("%v", err)
	}
	_ = c.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestStrangers: what is not the protocol's, or for no connection, changes nothing, and
// a Connect without a cookie leaves nothing behind.
func TestStrangers(t *testing.T) {
	l := listen(t, Config{})
	s, err := net.Dial("udp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_ = s.SetDeadline(time.Now().Add(patience))
	room := make([]byte, 2000)
	for _, b := range [][]byte{{}, {1}, make([]byte, 1000), append([]byte{0x15}, make([]byte, 15)...)} {
		_, _ = s.Write(b)
	}
	var out rudp.Output
	rudp.Call(rudp.Config{}, 0, 7).Step(0, nil, &out)
	_, _ = s.Write(out.Batches[0].Head)
	n, err := s.Read(room)
	if k, id, _ := rudp.KindOf(room[:n]); err != nil || k != rudp.Retry || id != 7 || n > len(out.Batches[0].Head) {
		t.Fatalf("%v for %d, %d bytes, %v", k, id, n, err)
	}
	_, _ = s.Write(append([]byte{0x14}, make([]byte, 40)...)) // a Data
	n, err = s.Read(room)
	if k, _, _ := rudp.KindOf(room[:n]); err != nil || k != rudp.Unknown {
		t.Fatalf("%v, %v", k, err)
	}
	l.socket.mu.Lock()
	defer l.socket.mu.Unlock()
	if len(l.socket.byID)+len(l.socket.byFar)+l.socket.live != 0 {
		t.Errorf("%d connections", len(l.socket.byID))
	}
}

// TestStats: what is sent and acknowledged shows.
func TestStats(t *testing.T) {
	a, b := pair(t, Config{})
	for range 3 {
		if _, err := a.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		room := make([]byte, 4)
		if _, err := io.ReadFull(b, room); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Write(room); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(a, room); err != nil {
			t.Fatal(err)
		}
	}
	if s := a.Stats(); s.RTT == 0 || s.InFlight != 0 || !s.UnacknowledgedSince.IsZero() || s.Lost != 0 || s.Malformed != 0 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkRoundTrip sends 8 bytes and waits for their echo.
func BenchmarkRoundTrip(b *testing.B) {
	a, c := pair(b, Config{})
	go func() { _, _ = io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c}) }()
	room := make([]byte, 8)
	b.ReportAllocs()
	for b.Loop() {
		_, _ = a.Write(room)
		_, _ = io.ReadFull(a, room)
	}
}

// BenchmarkThroughput writes to a reader that drops all.
func BenchmarkThroughput(b *testing.B) {
	a, c := pair(b, Config{})
	go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{c}) }()
	room := make([]byte, 256<<10)
	b.SetBytes(int64(len(room)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = a.Write(room)
	}
}
