package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// halting is a service whose calls wait.
type halting struct {
	witness
	there, leave chan struct{}
	hasLeft      atomic.Bool
}

func (s *halting) Received(_ *Conn, _ []Frame, b *Burst) {
	b.Release()
	s.there <- struct{}{}
	<-s.leave
	s.hasLeft.Store(true)
}

// TestUnregisterWaits: no call of a handler runs when Unregister has returned, and none
// comes.
func TestUnregisterWaits(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, nil)
	s := &halting{there: make(chan struct{}), leave: make(chan struct{})}
	b, _ := w.settle(t, "b", 1, func(c *Config) { c.Handlers = map[Service]Handler{testService: s} })
	send(t, a, "b", Control, 0, "first", 0)
	<-s.there
	r := b.services[testService].Load()
	if err := b.Register(testService, s); !errors.Is(err, ErrConfig) {
		t.Errorf("twice: %v", err)
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			b.Unregister(testService)
			if !s.hasLeft.Load() {
				t.Error("a call runs when Unregister has returned")
			}
		})
	}
	await(t, "Unregister to wait", func() bool { return r.isClosing.Load() })
	close(s.leave)
	both.Wait()
	send(t, a, "b", Control, 0, "second", 0) // the handler would wait for ever
	await(t, "a frame for nobody", func() bool { return b.Counters().Nobodys == 1 })
	again := &witness{sent: map[uint64]error{}}
	if err := b.Register(testService, again); err != nil {
		t.Fatal(err)
	}
	send(t, a, "b", Control, 0, "third", 0)
	await(t, "the third", func() bool { return len(again.frames()) == 1 })
}

// TestUnregisterGivesBack: what a service has lent is its own again, wherever it waits:
// for a connection, behind a frame that is being written, and half written. What other
// services have lent stays.
func TestUnregisterGivesBack(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, seen := w.settle(t, "a", 1, func(c *Config) {
			trust("a")(c)
			resolve := c.Resolve
			c.Resolve = func(ctx context.Context, host string) (string, error) {
				if host == "c" {
					<-ctx.Done() // it has no address while the test runs
				}
				return resolve(ctx, host)
			}
		})
		s := &halting{there: make(chan struct{}, 1000), leave: make(chan struct{})}
		_, _ = w.settle(t, "b", 1, func(c *Config) {
			trust("b")(c)
			c.Handlers = map[Service]Handler{testService: s}
		})
		defer close(s.leave)
		other := &witness{sent: map[uint64]error{}}
		if err := a.Register(Membership, other); err != nil {
			t.Fatal(err)
		}
		memory := make([]byte, 16<<20)
		number := uint64(0)
		put := func(service Service, to string, class Class, size int) {
			t.Helper()
			number++
			l := a.Channel(to, class)
			if err := l.Send(&Send{Service: service, Body: memory[:size], Number: number}); err != nil {
				t.Fatal(err)
			}
			if done := l.Flush(service, nil); len(done) > 0 {
				a.services[service].Load().handler.Sent(done, nil)
			}
		}
		put(testService, "b", Control, 8)
		put(testService, "b", Large, 8)
		<-s.there // b reads neither of both connections from now on
		<-s.there
		stay := map[uint64]bool{} // another service's
		for range 4 {
			put(testService, "b", Large, len(memory))
			put(Membership, "b", Large, len(memory))
			for _, class := range []Class{Large, Control} {
				put(testService, "c", class, 8)
				put(Membership, "c", class, 8)
				stay[number] = true
			}
		}
		for range 200 { // 12.5 MiB
			put(testService, "b", Control, 64<<10)
			put(Membership, "b", Control, 64<<10>>3)
		}
		a.Unregister(testService)
		clear(memory) // it is for the race detector: nobody reads it for this service
		seen.mu.Lock()
		if n := len(seen.sent); n != 2+4*3+200 {
			t.Errorf("%d frames were reported", n)
		}
		for number, err := range seen.sent {
			if err != nil && !errors.Is(err, ErrUnregistered) {
				t.Errorf("frame %d: %v", number, err)
			}
		}
		seen.mu.Unlock()
		if err := a.Channel("b", Control).Send(&Send{Service: testService, Number: 1}); !errors.Is(err, ErrClosed) {
			t.Errorf("a frame is lent to nobody: %v", err)
		}
		for number := range stay {
			if err, isOut := other.outcome(number); isOut {
				t.Errorf("another service's frame %d came back, too: %v", number, err)
			}
		}
	})
}

// TestUnregisterUnderTraffic: while frames go both ways, and hosts are in the middle of
// everything, each frame that was taken is reported once.
func TestUnregisterUnderTraffic(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, _ := w.settle(t, "a", 1, trust("a"))
		b, _ := w.settle(t, "b", 1, trust("b"))
		a.Unregister(testService)
		b.Unregister(testService)
		var number atomic.Uint64
		var group sync.WaitGroup
		for _, sides := range [][2]*Host{{a, b}, {b, a}} {
			h, to := sides[0], sides[1].Name()
			group.Go(func() { // the service comes and goes
				for range 30 {
					life := &witness{sent: map[uint64]error{}}
					if err := h.Register(testService, life); err != nil {
						t.Error(err)
					}
					var taken, out atomic.Int64
					var senders sync.WaitGroup
					for i := range 3 {
						senders.Go(func() {
							for range 100 {
								class, size := Class(i), []int{8, 1000, 100_000}[i]
								l := h.Channel(to, class)
								if l.Send(&Send{Service: testService, Body: make([]byte, size), Number: number.Add(1)}) == nil {
									taken.Add(1)
								}
								out.Add(int64(len(l.Flush(testService, nil))))
							}
						})
					}
					h.Unregister(testService)
					senders.Wait()
					life.mu.Lock()
					if got := out.Load() + int64(life.reported); got != taken.Load() {
						t.Errorf("%d frames were taken, and %d reported", taken.Load(), got)
					}
					life.mu.Unlock()
				}
			})
		}
		group.Wait()
	})
}

// busy is a service that calls its host from every call of its own, more often than the
// host's loop has room for inputs.
type busy struct {
	witness
	host *Host
	did  atomic.Int32
}

func (s *busy) work(why string) {
	for i := range 3000 {
		name := fmt.Sprintf("%s %d", why, i)
		s.host.Learn(name, 1)
		s.host.Hold(name, Control, "127.0.0.1:1")
		s.host.Release(name, Control, "127.0.0.1:1")
		l := s.host.Channel(name, Control)
		_ = l.Send(&Send{Service: testService, Body: []byte("hello")})
		l.Flush(testService, nil)
	}
	s.did.Add(1)
}

func (s *busy) Up(*Conn)                         { s.work("up") }
func (s *busy) Down(*Conn, error)                { s.work("down") }
func (s *busy) Sent([]uint64, error)             { s.work("sent") }
func (s *busy) Restarted(string, uint64, uint64) { s.work("restarted") }

// TestHandlersNeverWaitForTheLoop: what the loop itself calls may call the host however
// often.
func TestHandlersNeverWaitForTheLoop(t *testing.T) {
	w := newTown()
	s := &busy{}
	a, _ := w.settle(t, "a", 1, func(c *Config) { c.Handlers = nil })
	s.host = a
	if err := a.Register(testService, s); err != nil {
		t.Fatal(err)
	}
	if err := a.Channel("nowhere", Control).Send(&Send{Service: testService, Number: 1}); err != nil {
		t.Fatal(err)
	}
	a.Channel("nowhere", Control).Flush(testService, nil)
	await(t, "Sent", func() bool { return s.did.Load() == 1 })
	a.Learn("b", 5)
	a.Learn("b", 6)
	await(t, "Restarted", func() bool { return s.did.Load() == 2 })
}

// TestGoroutinesBeginUnderAChannel: who writes on a channel may need a goroutine while somebody
// else is about to forget that channel.
func TestGoroutinesBeginUnderAChannel(t *testing.T) {
	a, _ := newTown().settle(t, "a", 1, nil)
	l := a.Channel("b", Control)
	l.mu.Lock()
	var forgetting sync.WaitGroup
	forgetting.Go(func() { a.forget(l) })
	await(t, "the host's lock to be held", func() bool {
		isFree := a.mu.TryLock()
		if isFree {
			a.mu.Unlock()
		}
		return !isFree
	})
	begun := make(chan struct{})
	go func() {
		a.tasks.Go(func() {})
		close(begun)
	}()
	await(t, "the goroutine to begin", func() bool {
		select {
		case <-begun:
			return true
		default:
			return false
		}
	})
	l.mu.Unlock()
	forgetting.Wait()
}
