package peer

import (
	"errors"
	"net"
	"reflect"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// TestAsk: a host is asked for its name where its address alone is known.
func TestAsk(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, _ := w.settle(t, "a", 1, trust("a"))
		b, _ := w.settle(t, "b", 1, trust("b"))
		if name, err := a.Ask(t.Context(), b.Addr()); err != nil || name != "b" {
			t.Errorf("%q, %v", name, err)
		}
		if name, err := a.Ask(t.Context(), a.Addr()); err != nil || name != "a" {
			t.Errorf("itself: %q, %v", name, err)
		}
		await(t, "the calls to end", func() bool { return b.Counters().Pending == 0 })
		if k := b.Counters(); k.Rejected() != 0 || k.Connections != 0 {
			t.Errorf("%+v", k)
		}
		send(t, a, "b", Control, 0, "after that", 0)
	})
}

// followed returns how many connections a Source watches over.
func followed(s *pki.Source) int {
	f := reflect.ValueOf(s).Elem().FieldByName("followers")
	mu := (*sync.Mutex)(f.FieldByName("mu").Addr().UnsafePointer())
	mu.Lock()
	defer mu.Unlock()
	return f.FieldByName("all").Len()
}

// TestAskLeavesNothing: the certificate of who was asked is watched no longer, nor that of who has asked.
func TestAskLeavesNothing(t *testing.T) {
	w := newTown()
	all := sources(t, "a", "b")
	a, _ := w.settle(t, "a", 1, func(c *Config) { c.TLS = all["a"] })
	b, _ := w.settle(t, "b", 1, func(c *Config) { c.TLS = all["b"] })
	for range 3 {
		if _, err := a.Ask(t.Context(), b.Addr()); err != nil {
			t.Fatal(err)
		}
		if n := followed(all["a"]); n != 0 {
			t.Errorf("%d connections are watched by who has asked", n)
		}
	}
	await(t, "the calls to end", func() bool { return b.Counters().Pending == 0 && followed(all["b"]) == 0 })
	send(t, a, "b", Control, 0, "after that", 0)
	await(t, "one connection to be watched", func() bool { return followed(all["a"]) == 1 && followed(all["b"]) == 1 })
}

// TestAskRefuses: whose certificate is not a host's is none, and so is who closes at once.
func TestAskRefuses(t *testing.T) {
	w := newTown()
	all := sources(t, "a", "b")
	a, _ := w.settle(t, "a", 1, func(c *Config) { c.TLS = all["a"] })
	other, err := pki.Shared(pki.Identity{Role: pki.Host, Name: "b"}, [32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := w.settle(t, "b", 1, func(c *Config) { c.TLS = other })
	if name, err := a.Ask(t.Context(), b.Addr()); !errors.Is(err, pki.ErrAuthority) {
		t.Errorf("of another authority: %q, %v", name, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
		}
	}()
	if name, err := a.Ask(t.Context(), listener.Addr().String()); err == nil || errors.Is(err, peering.ErrRefused) {
		t.Errorf("nobody: %q, %v", name, err)
	}
	<-closed
}
