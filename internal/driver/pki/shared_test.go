package pki

import (
	"crypto/tls"
	"errors"
	"net"
	"testing"
)

// TestShared: who has the same secret, and one of several, knows the other by its name;
// who has another one, or another name than is wanted, is refused.
func TestShared(t *testing.T) {
	one, two := [32]byte{1}, [32]byte{2}
	for _, c := range []struct {
		name           string
		client, server [][32]byte
		wanted         string
		err            error
	}{
		{"the same", [][32]byte{one}, [][32]byte{one}, "b", nil},
		{"among others", [][32]byte{one, two}, [][32]byte{two, one}, "b", nil},
		{"another", [][32]byte{one}, [][32]byte{two}, "b", ErrAuthority},
		{"another name", [][32]byte{one}, [][32]byte{one}, "c", ErrWrongRole},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := Shared(Identity{Host, "a"}, c.client...)
			if err != nil {
				t.Fatal(err)
			}
			server, err := Shared(Identity{Host, "b"}, c.server...)
			if err != nil {
				t.Fatal(err)
			}
			near, far := net.Pipe()
			defer near.Close()
			defer far.Close()
			served := make(chan error, 1)
			go func() {
				err := tls.Server(far, server.Server()).Handshake()
				if err != nil {
					far.Close()
				}
				served <- err
			}()
			conn := tls.Client(near, client.Client(Want{Host, c.wanted}))
			err = conn.Handshake()
			if !errors.Is(err, c.err) {
				t.Errorf("%v, want %v", err, c.err)
			}
			if c.err != nil {
				near.Close()
			}
			if err := <-served; (err == nil) != (c.err == nil) {
				t.Errorf("the server: %v", err)
			}
			if c.err == nil && conn.ConnectionState().PeerCertificates[0].Subject.CommonName != "b" {
				t.Error("another name")
			}
		})
	}
}
