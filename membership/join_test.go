package membership

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestNamesake: of two nodes of one name at different addresses the one that came
// later ends with an error that names both, and the first one stays. One that is
// there in the place of a dead one goes on.
func TestNamesake(t *testing.T) {
	nodes := zoneOf(t, 3, nil)
	agree(t, nodes...)
	later := join(t, Config{Name: "n1", Bootstrap: []string{nodes[0].Addr().String()}})
	select {
	case <-later.Done():
	case <-within(t).Done():
		t.Fatal("both go on")
	}
	err := later.Err()
	if !errors.Is(err, ErrName) || !strings.Contains(err.Error(), later.Addr().String()) || !strings.Contains(err.Error(), nodes[1].Addr().String()) {
		t.Errorf("it ended with %v", err)
	}
	alone := func() {
		t.Helper()
		await(t, func() bool {
			view, err := nodes[0].View(within(t))
			return err == nil && len(view) == 3 && view[1].Addr == nodes[1].Addr() && view[1].Version.Incarnation == nodes[1].Incarnation()
		})
	}
	alone()
	shut(t, nodes[1])
	nodes[1] = join(t, Config{Name: "n1", Bootstrap: []string{nodes[0].Addr().String()}})
	alone()
}

// TestListensTowardsTheOthers: a node that does not say where it listens, or says
// everywhere, is known by the address from which it reaches the others.
func TestListensTowardsTheOthers(t *testing.T) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own netip.Addr
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLoopback() && p.Addr().Is4() {
			own = p.Addr()
		}
	}
	if !own.IsValid() {
		t.Skip("the loopback interface alone has an address here")
	}
	other := net.JoinHostPort(own.String(), "7946")
	for _, c := range []struct {
		listen, advertise, bootstrap string
		want                         netip.Addr
	}{
		{"", "", other, own},
		{"0.0.0.0:0", "", other, own},
		{"", "", "127.0.0.1:7946", netip.MustParseAddr("127.0.0.1")},
		{"127.0.0.1:0", "10.9.8.7:7946", other, netip.MustParseAddr("10.9.8.7")},
	} {
		n := join(t, Config{Name: "a", Listen: c.listen, Advertise: c.advertise, AllowPlaintext: true, Bootstrap: []string{c.bootstrap}})
		if n.Addr().Addr() != c.want {
			t.Errorf("%+v: it is known by %v", c, n.Addr())
		}
		shut(t, n)
	}
}

// TestStealthOfARestart: a node that finds an earlier start in its state begins
// by listening, unless it is configured otherwise. One that has none does not.
func TestStealthOfARestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "incarnation")
	nodes := zoneOf(t, 3, nil)
	agree(t, nodes...)
	for i, c := range []struct {
		stealth int
		hides   bool
	}{{0, false}, {0, true}, {-1, false}} {
		n := join(t, Config{Name: "n3", State: state, Bootstrap: []string{nodes[0].Addr().String()}, Timing: Timing{Stealth: c.stealth}})
		if hides := n.cfg.Timing.Stealth > 0; hides != c.hides {
			t.Errorf("start %d: hides %v", i, hides)
		}
		agree(t, append([]*Node{n}, nodes...)...)
		if err := n.Leave(within(t), 0); err != nil {
			t.Fatal(err)
		}
		agree(t, nodes...)
	}
}

// TestLeaveAlone: who has no links has nobody to wait for.
func TestLeaveAlone(t *testing.T) {
	n := join(t, Config{Name: "a"})
	if err := n.Leave(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.drained:
	default:
		t.Error("it has waited for links that there are not")
	}
}

// TestLeaveInTime: Leave ends with its context also where the loop takes nothing.
func TestLeaveInTime(t *testing.T) {
	n := join(t, Config{Name: "a"})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	release, blocked := make(chan struct{}), make(chan struct{})
	var asks sync.WaitGroup
	defer asks.Wait()
	asks.Go(func() {
		_ = n.ask(t.Context(), func(*stepper) {
			close(blocked)
			<-release
		})
	})
	<-blocked
	for n.loop.Post(canceled, item{kind: unsent}) == nil {
	}
	left := make(chan error, 1)
	asks.Go(func() { left <- n.Leave(canceled, 0) })
	select {
	case <-n.over:
	case <-within(t).Done():
		t.Error("it waits for a loop that takes nothing")
	}
	close(release)
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
