package transport_test

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
)

// TestNoChecksum: a datagram without a UDP checksum, as whoever writes packets by hand may
// send, does not reach the reader; one whose checksum the device has yet to compute does.
func TestNoChecksum(t *testing.T) {
	to := open(t, udp, loopback4)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	at := &unix.SockaddrInet4{Port: int(to.LocalAddr().Port()), Addr: to.LocalAddr().Addr().As4()}
	for sent, without := range []int{1, 0} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, without); err != nil {
			t.Fatal(err)
		}
		if err := unix.Sendto(fd, []byte{byte(sent)}, 0, at); err != nil {
			t.Fatal(err)
		}
	}
	packets := make([]transport.Packet, 1)
	if _, err := to.ReadBatch(packets, time.Now().Add(patience)); err != nil || !bytes.Equal(packets[0].Data, []byte{1}) {
		t.Errorf("the first to arrive is %x (%v), want the one with a checksum", packets[0].Data, err)
	}
}
