package admission_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/admission"
)

// street is a listener to which connections come from any address.
type street struct{ come chan net.Conn }

func (s street) Accept() (net.Conn, error) {
	c, ok := <-s.come
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (s street) Close() error   { close(s.come); return nil }
func (s street) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7400} }

// from is a connection from an address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// knock connects from an address, and reports whether the connection was taken.
func knock(t *testing.T, s street, taken <-chan net.Conn, address string) (net.Conn, bool) {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	s.come <- from{far, addr}
	closed := make(chan error, 1)
	go func() {
		_, err := near.Read(make([]byte, 1))
		closed <- err
	}()
	select {
	case c := <-taken:
		near.Close()
		<-closed
		return c, true
	case err := <-closed:
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
		return nil, false
	}
}

// listen returns a listener, what it takes, and what ends it.
func listen(t *testing.T, limits admission.Limits, log io.Writer) (street, *admission.Listener, <-chan net.Conn) {
	s := street{make(chan net.Conn)}
	l := admission.New(s, limits, slog.New(slog.NewTextHandler(log, nil)))
	taken := make(chan net.Conn)
	go func() {
		defer close(taken)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken <- c
		}
	}()
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-taken
	})
	return s, l, taken
}

// TestStrangers: one of those that have not shown who they are gives way to a newcomer; others stay.
func TestStrangers(t *testing.T) {
	var log bytes.Buffer
	s, l, taken := listen(t, admission.Limits{All: 6, OfSource: 2, Strangers: 3}, &log)
	l.PickOldest()
	all := map[string]net.Conn{}
	closed := uint64(0)
	for i, c := range []struct {
		comes, from, closes string // closes: an earlier one, or itself
		admits              []string
	}{
		{"a1", "192.0.2.1:1", "", nil},
		{"b1", "192.0.2.2:1", "", nil},
		{"b2", "192.0.2.2:2", "", nil},
		{"c1", "192.0.2.3:1", "a1", []string{"b2"}},
		{"d1", "192.0.2.4:1", "", nil},
		{"e1", "192.0.2.5:1", "b1", []string{"c1", "d1"}},
		{"b3", "192.0.2.2:3", "", nil},
		{"b4", "192.0.2.2:4", "b3", []string{"b4"}}, // of its own source, which has its share
		{"b5", "192.0.2.2:5", "b5", nil},            // all of its source are known
		{"f1", "192.0.2.6:1", "", nil},
		{"g1", "192.0.2.7:1", "e1", []string{"f1", "g1"}}, // six
		{"h1", "192.0.2.8:1", "h1", nil},                  // all are known
	} {
		conn, ok := knock(t, s, taken, c.from)
		if ok != (c.closes != c.comes) {
			t.Errorf("%d: %s: taken %v", i, c.comes, ok)
		}
		if ok {
			all[c.comes] = conn
		}
		if c.closes != "" {
			closed++
		}
		for name, conn := range all {
			// What knock has closed at the other side reads as ended.
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.ErrClosedPipe) != (name == c.closes) {
				t.Errorf("%d: %s comes: %s: %v", i, c.comes, name, err)
			}
		}
		if gone := all[c.closes]; gone != nil {
			admission.Admit(gone) // too late
			_ = gone.Close()
			delete(all, c.closes)
		}
		for _, name := range c.admits {
			admission.Admit(all[name])
		}
		if n := l.Refused(); n != closed {
			t.Errorf("%d: %d were closed, want %d", i, n, closed)
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "from=192.0.2.1/32") {
		t.Errorf("the log says %q", text)
	}
}

// TestLimits: newcomers beyond a limit are closed, others are taken, and what has ended makes
// room.
func TestLimits(t *testing.T) {
	var log bytes.Buffer
	s, l, taken := listen(t, admission.Limits{All: 6, OfSource: 2}, &log)
	var all []net.Conn
	for _, c := range []struct {
		from string
		ok   bool
	}{
		{"192.0.2.7:1", true}, {"192.0.2.7:2", true}, {"192.0.2.7:3", false}, {"[::ffff:192.0.2.7]:4", false},
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:2", true}, {"[2001:db8::3]:3", false}, // one network
		{"[2001:db8:0:1::3]:3", true}, {"192.0.2.8:1", true}, {"192.0.2.9:1", false}, // six
	} {
		got, ok := knock(t, s, taken, c.from)
		if ok != c.ok {
			t.Errorf("%s: taken %v", c.from, ok)
		}
		if ok {
			all = append(all, got)
		}
	}
	if n := l.Refused(); n != 4 {
		t.Errorf("%d were closed", n)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "from=192.0.2.7/32") {
		t.Errorf("the log says %q", text)
	}
	for range 2 {
		_ = all[0].Close() // the second time it makes no more room
	}
	for i, ok := range []bool{true, false} {
		if _, got := knock(t, s, taken, "192.0.2.9:2"); got != ok {
			t.Errorf("%d after one has ended: taken %v", i, got)
		}
	}
	for _, c := range all[1:] {
		_ = c.Close()
	}
	for i := range 3 { // of this machine
		if _, ok := knock(t, s, taken, "127.0.0.1:1"); !ok {
			t.Errorf("%d of this machine: closed", i)
		}
		if _, ok := knock(t, s, taken, "[::1]:1"); ok != (i < 2) {
			t.Errorf("%d of this machine: taken %v", i, ok)
		}
	}
}
