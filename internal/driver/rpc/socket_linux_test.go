package rpc

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// spied is a listener whose connections the test sees, too.
type spied struct {
	net.Listener
	came chan net.Conn
}

func (s spied) Accept() (net.Conn, error) {
	c, err := s.Listener.Accept()
	if err == nil {
		s.came <- c
	}
	return c, err
}

// TestConnectionsHaveAUserTimeout: who acknowledges nothing is found to be gone as soon as by
// gRPC's own option, which it sets on a bare *net.TCPConn alone.
func TestConnectionsHaveAUserTimeout(t *testing.T) {
	listener, err := Listen("127.0.0.1:0", ServerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	l := spied{listener, make(chan net.Conn, 1)}
	s := Serve(l, Services{Manager: &fakeManager{}}, ServerConfig{})
	t.Cleanup(s.Kill)
	if err := dialManager(t, s).ReleaseGroup(testContext(t), 7); err != nil {
		t.Fatal(err)
	}
	raw, err := (<-l.came).(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var ms int
	if ctl := raw.Control(func(fd uintptr) { ms, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); ctl != nil || err != nil {
		t.Fatal(ctl, err)
	}
	if ms != int(keepaliveTimeout.Milliseconds()) {
		t.Errorf("%d ms, want %v", ms, keepaliveTimeout)
	}
}
