package hostlib

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/reduce"
)

// parkedCallers waits until so many callers wait for a communicator of h.
func parkedCallers(t *testing.T, h *Host, n int) {
	t.Helper()
	until(within(t), t, "callers are parked", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.parked.all) == n
	})
}

// A member that gave up, however often, forms the group with one that comes
// later.
func TestFormingAgainAfterGivingUp(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := hosts[1].Communicator(ctx, "test", members)
			if !errors.Is(err, ErrFormation) || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want that it gave up", err)
			}
		})
		parkedCallers(t, hosts[0], 1)
		cancel()
		wg.Wait()
	}
	comms := form(t, "test", hosts, members)
	sum(t, comms, 10)
	leave(t, comms)
}

// waitsFor waits until the communicator that a host forms says what of who is
// missing.
func waitsFor(t *testing.T, h *Host, name, says string) {
	t.Helper()
	until(within(t), t, h.name+" says "+says, func() bool {
		h.mu.Lock()
		c := h.names[name]
		h.mu.Unlock()
		return c != nil && strings.Contains(c.missing(), says)
	})
}

// A communicator is there when the last member has come: rank 3 is no neighbour
// of rank 0 or 1. Who waits can say for whom, and when one gives up, the error of
// each names the missing.
func TestFormingWaitsForAll(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"})
	for _, quits := range []int{0, 1, 2} {
		ctx, cancel := context.WithCancel(within(t))
		var wg sync.WaitGroup
		for i := range 3 {
			use := within(t)
			if i == quits {
				use = ctx
			}
			wg.Go(func() {
				_, err := hosts[i].Communicator(use, "test", members)
				if !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "rank 3 (h3) at "+members[3].Addr+" has not c") {
					t.Errorf("rank %d, rank %d gives up: got %v, want that rank 3 is missing", i, quits, err)
				}
				if i != quits {
					wantMember(t, err, quits, "gave up")
				}
			})
		}
		for _, h := range hosts[:3] { // which have met each other, then
			waitsFor(t, h, "test", "rank 3 (h3)")
		}
		cancel()
		wg.Wait()
	}
	comms := form(t, "test", hosts, members)
	sum(t, comms, 10)
	leave(t, comms)
}

// One that has met its parent before it gave up ends the group for all, who can
// form it again.
func TestGivingUpHalfFormed(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for _, h := range hosts[:3] { // which have met each other, then
			waitsFor(t, h, "test", "rank 3 (h3)")
		}
		cancel()
	}()
	each(3, func(i int) { // rank 2 misses its child, rank 3
		use := within(t)
		if i == 2 {
			use = ctx
		}
		_, err := hosts[i].Communicator(use, "test", members)
		if i != 2 {
			wantMember(t, err, 2, "gave up")
		} else if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rank 3 (h3) at "+members[3].Addr+" has not called Communicator") {
			t.Errorf("rank 2: got %v, want that rank 3 is missing", err)
		}
	})
	comms := form(t, "test", hosts, members)
	sum(t, comms, 10)
	leave(t, comms)
}

func TestMemberRestarts(t *testing.T) {
	for rank, name := range []string{"h0", "h1", "h2"} {
		t.Run(name, func(t *testing.T) {
			hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
			front := newFront(t)
			front.lead(members[rank].Addr)
			members[rank].Addr = front.addr()
			comms := form(t, "test", hosts, members)
			sum(t, comms, 10)
			if err := hosts[rank].Close(context.Background()); err != nil {
				t.Error(err)
			}
			for i, c := range comms {
				<-c.Done()
				if i == rank {
					if err := c.Err(); !errors.Is(err, ErrClosed) || !errors.Is(err, ErrEnded) {
						t.Errorf("rank %d: got %v, want that its host was closed", i, err)
					}
				} else {
					wantMember(t, c.Err(), rank, "it closed its host")
				}
			}
			hosts[rank] = joinOne(t, name)
			front.lead(hosts[rank].Addr())
			comms = form(t, "test", hosts, members)
			sum(t, comms, 10)
			leave(t, comms)
		})
	}
}

// The settings of one that called first are found out, too.
func TestOtherSettingsOfAnEarlyCaller(t *testing.T) {
	h0 := joinOne(t, "h0")
	h1 := joinOne(t, "h1", func(c *Config) { c.Window = 32 })
	members := []Member{h0.Member(), h1.Member()}
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := h1.Communicator(ctx, "test", members)
		if !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "other members or settings") {
			t.Errorf("got %v, want a refusal", err)
		}
		cancel()
	})
	parkedCallers(t, h0, 1)
	if _, err := h0.Communicator(ctx, "test", members); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "(h1) at "+h1.Addr()+" has called it with other") {
		t.Errorf("got %v, want that rank 0 gives up, and why", err)
	}
	wg.Wait()
}

func TestOneNameStandsOnce(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	comms := form(t, "test", hosts, members)
	if _, err := hosts[0].Communicator(t.Context(), "test", members); !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "h0 has a communicator") {
		t.Errorf("got %v, want that the name is in use", err)
	}
	leave(t, comms)
	if err := hosts[0].Close(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := hosts[0].Communicator(t.Context(), "test", members); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want that the host is closed", err)
	}
}

func TestCloseWhileForming(t *testing.T) {
	for range 20 {
		hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
		each(6, func(i int) {
			if i < 3 {
				if c, err := hosts[i].Communicator(within(t), "test", members); err == nil {
					<-c.Done()
				}
			} else if err := hosts[i-3].Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 3 {
		hosts, members := joinAs(t, []string{"h0", "h1", "h2"}, func(c *Config) { c.Manager = "127.0.0.1:1" })
		comms := form(t, "test", hosts, members)
		sum(t, comms, 1000)
		leave(t, comms)
		form(t, "other", hosts, members)
		for _, h := range hosts {
			if err := h.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
	until(within(t), t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

func TestParentOfAnotherKind(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			conn.Close()
		}
	})
	defer wg.Wait()
	defer listener.Close()
	h := joinOne(t, "h1")
	members := []Member{{Host: "h0", Addr: listener.Addr().String()}, h.Member()}
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	go func() {
		until(ctx, t, "the answer was heard", func() bool {
			h.mu.Lock()
			c := h.names["test"]
			h.mu.Unlock()
			return c != nil && strings.Contains(c.missing(), "not of the protocol between hosts")
		})
		cancel()
	}()
	_, err = h.Communicator(ctx, "test", members)
	if !errors.Is(err, ErrFormation) || !strings.Contains(err.Error(), "rank 0 (h0) at "+members[0].Addr+" cannot be reached") {
		t.Errorf("got %v, want that rank 0 is missing", err)
	}
}

func TestDataAddressFollowsTheListener(t *testing.T) {
	for _, c := range []struct{ listen, data, want string }{
		{"127.0.0.1:0", "", "127.0.0.1"},
		{"0.0.0.0:0", "", "0.0.0.0"},
		{"[::]:0", "", "::"},
		{":0", "", "0.0.0.0"},
		{":0", "127.0.0.7", "127.0.0.7"},
	} {
		config := Config{Name: "h0", Listen: c.listen, AllowPlaintext: true}
		if c.data != "" {
			config.Data = netip.MustParseAddr(c.data)
		}
		h, err := Join(t.Context(), config)
		if err != nil {
			t.Logf("%s: %v", c.listen, err) // a machine without IPv6
			continue
		}
		if h.data.bind.String() != c.want {
			t.Errorf("%s, %q: %v, want %s", c.listen, c.data, h.data.bind, c.want)
		}
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestCloseInMidOperation(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2", "h3", "h4"})
	comms := form(t, "test", hosts, members, OnTree())
	const dead = 2
	requests := make([]*Request, len(comms))
	for i, c := range comms[:4] { // rank 4 does not come
		v := make([]int64, 100_000)
		requests[i] = StartAllreduce(c, reduce.Sum, v, v)
	}
	until(within(t), t, "the operation has begun", func() bool { return comms[dead].Stats().Session.Sent > 0 })
	if err := hosts[dead].Close(context.Background()); err != nil {
		t.Error(err)
	}
	for i, r := range requests[:4] {
		_, err := r.Wait(within(t))
		if i == dead {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrEnded) {
				t.Errorf("rank %d: got %v, want that its host was closed", i, err)
			}
		} else {
			wantMember(t, err, dead, "it closed its host")
		}
	}
	<-comms[4].Done()
	wantMember(t, comms[4].Err(), dead, "it closed its host")
}

// Who leaves waits for the others, with all results of theirs.
func TestLeaveWhileAnotherWorks(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1", "h2"})
	comms := form(t, "test", hosts, members)
	left := make(chan int, 2)
	all := vectors(3, 50_000)
	requests := make([]*Request, 3)
	for i, c := range comms {
		requests[i] = StartAllreduce(c, reduce.Sum, all[i], all[i])
	}
	for i := 1; i < 3; i++ {
		go func() {
			if err := comms[i].Leave(within(t)); err != nil {
				t.Error(err)
			}
			left <- i
		}()
	}
	if _, err := requests[0].Wait(within(t)); err != nil {
		t.Error(err)
	}
	checkSum(t, 3, 0, all[0])
	select {
	case i := <-left:
		t.Errorf("rank %d did not wait for rank 0", i)
	default:
	}
	if err := comms[0].Leave(within(t)); err != nil {
		t.Error(err)
	}
	<-left
	<-left
	for i, c := range comms {
		if _, err := requests[i].Wait(within(t)); err != nil {
			t.Error(err)
		}
		checkSum(t, 3, i, all[i])
		if _, err := Barrier(within(t), c); !errors.Is(err, ErrEnded) {
			t.Errorf("rank %d: a barrier after leaving: %v", i, err)
		}
		if err := c.Leave(within(t)); !errors.Is(err, ErrEnded) {
			t.Errorf("rank %d: leaving twice: %v", i, err)
		}
		<-c.Done()
		if s := c.Stats(); s.Session.Results == 0 || s.Hosts.FramesIn == 0 {
			t.Errorf("rank %d: stats after the end: %+v", i, s)
		}
	}
}

// What is refused, or done, is so also for an ended context, and then that
// does not end the communicator.
func TestEndedContextOfWhatIsDone(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	comms := form(t, "test", hosts, members)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if _, err := Allreduce(ended, comms[0], reduce.BAnd, []float32{1}, []float32{1, 2}); !errors.Is(err, ErrArgument) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want an argument error", err)
		}
	}
	v := make([]int64, 10)
	if _, err := Allreduce(t.Context(), comms[0], reduce.Sum, v[:6], v[2:8]); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "overlap") {
		t.Errorf("got %v, want that the vectors overlap", err)
	}
	sum(t, comms, 10)
	leave(t, comms)
}

// An operation after Leave was begun can never run.
func TestOperationWhileLeaving(t *testing.T) {
	hosts, members := joinAs(t, []string{"h0", "h1"})
	comms := form(t, "test", hosts, members)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := comms[0].Leave(within(t)); err != nil {
			t.Error(err)
		}
	})
	until(within(t), t, "rank 0 is leaving", comms[0].leaving)
	if _, err := Barrier(within(t), comms[0]); !errors.Is(err, ErrEnded) || errors.Is(err, ErrArgument) {
		t.Errorf("got %v, want that it has ended", err)
	}
	if err := comms[1].Leave(within(t)); err != nil {
		t.Error(err)
	}
	wg.Wait()
}
