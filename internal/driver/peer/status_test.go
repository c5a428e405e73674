package peer

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// states returns the states of all paths of a host in a class, as "rail0 rail1 up".
func states(h *Host, class Class) (all []string) {
	_, paths := h.Status()
	for i := range paths {
		if s := &paths[i]; s.Class == class {
			all = append(all, s.Own.Name+" "+s.Theirs.Name+" "+[...]string{"up", "connecting", "down"}[s.State])
		}
	}
	return all
}

// TestStatus counts what goes over each rail, also by paths that have ended.
func TestStatus(t *testing.T) {
	w := newTown()
	out, in := newLedger(), newLedger()
	settle := func(name string, at byte, l *ledger) *Host {
		h, _ := w.settle(t, name, 1, func(c *Config) {
			withRails(at, 2)(c) // of kind TCP: the kernel acknowledges, however slow this process is
			c.Handlers = map[Service]Handler{testService: l}
		})
		return h
	}
	a, b := settle("a", 1, out), settle("b", 2, in)
	n := uint64(0)
	say := func(times int) {
		t.Helper()
		l := a.Channel("b", Data)
		for range times {
			if err := l.Send(&Send{Service: testService, Body: numbered(n, 30_000)}); err != nil {
				t.Fatal(err)
			}
			n++
			l.Flush(testService, nil)
		}
		await(t, "all frames", func() bool {
			in.mu.Lock()
			defer in.mu.Unlock()
			return in.next["a 1"] == n
		})
	}
	say(1)
	for _, h := range []*Host{a, b} {
		await(t, "all paths", func() bool {
			return slices.Equal(states(h, Data), []string{"rail0 rail0 up", "rail1 rail1 up"})
		})
	}
	await(t, "all of the other side", func() bool { return isWhole(a, "b", Data, 2) && isWhole(b, "a", Data, 2) })
	say(300)
	rails, paths := a.Status()
	sum, rate := uint64(0), uint64(0)
	for i := range rails {
		r, p := &rails[i], &paths[i]
		if r.Peers != 1 || r.Paths != 1 || r.Missing != 0 || r.Lost != 0 || r.Fault != nil {
			t.Errorf("%+v", r)
		}
		if p.Peer != "b" || p.Since.IsZero() || p.Sent != r.Sent || p.Theirs.Address.Addr() != netip.AddrFrom4([4]byte{127, byte(i + 1), 0, 2}) {
			t.Errorf("%+v of %+v", p, r)
		}
		if r.Sent == 0 || r.Received == 0 || runtime.GOOS == "linux" && r.Delay == 0 {
			t.Errorf("nothing is measured on %+v", r)
		}
		sum += r.Sent
		rate += r.Rate
	}
	if least := uint64(301 * 30_000); sum < least || sum > least+least/10 || rate == 0 {
		t.Errorf("%d bytes sent, want %d and some; %d bit/s", sum, least, rate)
	}

	cut := errors.New("cut by the test")
	for _, p := range pathsOf(a, "b", Data) {
		if p.Rails().Own.Name == "rail1" {
			p.Break(cut)
		}
	}
	await(t, "the path is back", func() bool {
		rails, _ := a.Status()
		return rails[1].Recovered == 1 && isWhole(a, "b", Data, 2)
	})
	say(10)
	after, paths := a.Status()
	if r := after[1]; r.Lost != 1 || !errors.Is(r.Fault, cut) || !strings.HasPrefix(r.Fault.Error(), "b: ") || r.FaultAt.IsZero() || r.Sent < rails[1].Sent {
		t.Errorf("%+v after %+v", r, rails[1])
	}
	if p := paths[1]; p.Lost != 1 || p.Recovered != 1 || p.Fault != cut || p.Sent != after[1].Sent {
		t.Errorf("%+v", p)
	}
	if r := after[0]; r.Lost != 0 || r.Fault != nil {
		t.Errorf("%+v", r)
	}
}

// TestStatusOfOneRail: a host with one rail has its connections on that.
func TestStatusOfOneRail(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, withRails(1, 1))
	b, in := w.settle(t, "b", 1, withRails(2, 1))
	send(t, a, "b", Control, 0, "hello", 0)
	await(t, "the frame", func() bool { return len(in.frames()) == 1 })
	for h, dialled := range map[*Host]bool{a: true, b: false} {
		rails, paths := h.Status()
		if len(rails) != 1 || len(paths) != 1 || rails[0].Paths != 1 || paths[0].Theirs.Name != "" {
			t.Fatalf("%+v %+v", rails, paths)
		}
		if got := rails[0].Sent > 0; got != dialled {
			t.Errorf("%s has sent %d bytes", h.Name(), rails[0].Sent)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the end", func() bool { rails, _ := a.Status(); return rails[0].Paths == 0 && rails[0].Peers == 0 })
}

// TestStatusOfACall: a rail on which nobody answers is named, with the address and the reason.
func TestStatusOfACall(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, withRails(1, 2))
	b, in := w.settle(t, "b", 1, withRails(2, 2))
	nowhere := netip.MustParseAddrPort("127.2.0.2:1")
	b.rails.mu.Lock()
	b.rails.all[1].Address = nowhere // as others are given it
	b.rails.mu.Unlock()
	send(t, a, "b", Control, 0, "hello", 0)
	await(t, "the frame", func() bool { return len(in.frames()) == 1 })
	await(t, "calls fail", func() bool { rails, _ := a.Status(); return rails[1].Failed > 1 })
	rails, paths := a.Status()
	if r := rails[1]; r.Missing != 1 || r.Paths != 0 || !strings.Contains(r.Fault.Error(), "calling b at 127.2.0.2:1: ") {
		t.Errorf("%+v", r)
	}
	if p := paths[1]; p.State == PathUp || p.Theirs.Address != nowhere || p.Fault == nil || p.Since.IsZero() {
		t.Errorf("%+v", p)
	}
	if got := states(b, Control); !slices.Equal(got, []string{"rail0 rail0 up", "rail1 rail1 down"}) {
		t.Errorf("the other side has %v", got)
	}
}

// TestRailsCountUp: what rails have counted never falls, while their paths end and begin.
func TestRailsCountUp(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, withRails(1, 2))
	b, in := w.settle(t, "b", 1, withRails(2, 2))
	var last [2]PathCounters
	var stops atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stops.Load() {
			rails, _ := a.Status()
			for i, r := range rails {
				if n := r.PathCounters; n.Sent < last[i].Sent || n.Received < last[i].Received || n.Lost < last[i].Lost || n.Recovered > n.Lost {
					t.Errorf("%+v after %+v", n, last[i])
				}
				last[i] = r.PathCounters
			}
		}
	}()
	send(t, a, "b", Control, 0, "hello", 0)
	for i := range 20 {
		await(t, "both paths", func() bool { return isWhole(a, "b", Control, 2) && isWhole(b, "a", Control, 2) })
		send(t, a, "b", Control, 0, "hello", 0)
		pathsOf(a, "b", Control)[i%2].Break(errors.New("cut by the test"))
	}
	await(t, "all", func() bool { return len(in.frames()) == 21 })
	stops.Store(true)
	<-ended
	if n := last[0].Lost + last[1].Lost; n < 19 || n > 20 {
		t.Errorf("%d paths were lost, want 20", n)
	}
}

// TestRailsAreForgotten: a rail that is removed leaves nothing; one that is added is joined on
// both sides.
func TestRailsAreForgotten(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, withRails(1, 1))
	b, in := w.settle(t, "b", 1, withRails(2, 2))
	send(t, a, "b", Control, 0, "hello", 0)
	await(t, "the frame", func() bool { return len(in.frames()) == 1 })
	two := []string{"rail0 rail0 up", "rail1 rail1 up"}
	for range 20 {
		if err := a.SetRails(context.Background(), railsOf(1, 2)); err != nil {
			t.Fatal(err)
		}
		await(t, "two paths", func() bool { return slices.Equal(states(a, Control), two) && slices.Equal(states(b, Control), two) })
		if err := a.SetRails(context.Background(), railsOf(1, 1)); err != nil {
			t.Fatal(err)
		}
		await(t, "the end of the second", func() bool {
			rails, paths := a.Status()
			return len(rails) == 1 && len(a.rails.accounts) == 1 && !slices.ContainsFunc(paths, func(s PathStatus) bool { return s.Own.Name == "rail1" })
		})
	}
	if got := a.rails.at(netip.MustParseAddrPort("127.1.0.1:1"), rail.UDP); got.Name != "" {
		t.Error(got)
	}
}
