package process_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
)

// A service manager that asks for it hears when a daemon serves, and when it ends.
func TestServiceManagerIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	hears := func(want string) {
		t.Helper()
		b := make([]byte, 100)
		if n, err := socket.Read(b); err != nil || string(b[:n]) != want {
			t.Errorf("it heard %q, %v, want %q", b[:n], err, want)
		}
	}
	d := newDaemon()
	ctx, cancel := context.WithCancel(t.Context())
	ended := run(ctx, d)
	hears("READY=1")
	cancel()
	hears("STOPPING=1")
	close(d.may)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// One that has gone keeps no daemon from running.
func TestServiceManagerThatIsGone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nowhere"))
	d := newDaemon()
	ctx, cancel := context.WithCancel(t.Context())
	ended := run(ctx, d)
	cancel()
	close(d.may)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
