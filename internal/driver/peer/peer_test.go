package peer

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/loopback"
)

// TestBothKnowEachOther: frames arrive in order, of whom they are, in every class, and
// are reported; the other side answers on the same connection.
func TestBothKnowEachOther(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, seenA := w.settle(t, "a", 7, trust("a"))
		b, seenB := w.settle(t, "b", 9, trust("b"))
		var want []string
		for i := range 100 {
			for class := range Message {
				send(t, a, "b", class, uint32(i), "how do you do", uint64(1+3*i)+uint64(class))
			}
			want = append(want, fmt.Sprintf("a 0/%d how do you do", i))
		}
		await(t, "all frames", func() bool { return len(seenB.frames()) == 300 })
		got := slices.DeleteFunc(seenB.frames(), func(s string) bool { return !strings.HasPrefix(s, "a 0/") })
		if !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		await(t, "word of all", func() bool {
			seenA.mu.Lock()
			defer seenA.mu.Unlock()
			return seenA.reported == 300
		})
		for n, err := range seenA.sent {
			if err != nil {
				t.Errorf("frame %d: %v", n, err)
			}
		}
		send(t, b, "a", Control, 1, "fine", 1)
		await(t, "the answer", func() bool { return slices.Equal(seenA.frames(), []string{"b 0/1 fine"}) })
		for _, p := range seenA.ups() {
			if p != (Peer{"b", 9}) {
				t.Errorf("a met %+v", p)
			}
		}
		for _, p := range seenB.ups() {
			if p != (Peer{"a", 7}) {
				t.Errorf("b met %+v", p)
			}
		}
		if k := b.Counters(); k.Accepted != 3 || k.Dialled != 0 || k.Open != 3 || k.Pending != 0 {
			t.Errorf("%+v", k)
		}
	})
}

// TestFramesOfAllSizes: what is sent arrives as it was, copied or lent, also where
// several services and streams are mixed.
func TestFramesOfAllSizes(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, _ := w.settle(t, "a", 1, trust("a"))
		_, seen := w.settle(t, "b", 1, trust("b"))
		var mu sync.Mutex
		sums := map[string]int{}
		seen.onFrames = func(c *Conn, frames []Frame) {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range frames {
				for i, x := range f.Bytes {
					if x != byte(i*7+int(f.Stream)) {
						t.Errorf("byte %d of %d in class %d is %d", i, len(f.Bytes), c.Class(), x)
						break
					}
				}
				sums[fmt.Sprintf("%d/%d", c.Class(), len(f.Bytes))]++
			}
		}
		want := map[string]int{}
		stream := uint32(0)
		for class := range Message {
			sizes := []int{1, 7, 8, 9, 1431, 1432, 16383, 16384, 16385, 65535, 65536}
			if class == Large {
				sizes = append(sizes, 262144, 300001, 1<<20, 3<<20+5)
			}
			for _, n := range sizes {
				stream++
				body := make([]byte, n)
				for i := range body {
					body[i] = byte(i*7 + int(stream))
				}
				s := Send{Service: testService, Stream: stream, Body: body}
				if class != Large {
					s.Head, s.Body = body[:n/2], body[n/2:]
				}
				l := a.Channel("b", class)
				if err := l.Send(&s); err != nil {
					t.Fatal(err)
				}
				l.Flush(testService, nil)
				want[fmt.Sprintf("%d/%d", class, n)]++
			}
		}
		await(t, "all frames", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sums) == len(want)
		})
		await(t, "memory to be given back", func() bool { return a.Counters().Bursts == 0 })
	})
}

// TestBothCallAtOnce: hosts that all have something for each other at once end with one
// connection between two, and no frame is lost.
func TestBothCallAtOnce(t *testing.T) {
	const n, each = 5, 20
	w := newTown()
	hosts, seen := make([]*Host, n), make([]*witness, n)
	for i := range hosts {
		hosts[i], seen[i] = w.settle(t, fmt.Sprintf("h%d", i), 1, nil)
	}
	var group sync.WaitGroup
	for i := range hosts {
		for j := range hosts {
			if i != j {
				group.Go(func() {
					for k := range each {
						send(t, hosts[i], fmt.Sprintf("h%d", j), Control, 0, fmt.Sprint(k), uint64(1000*j+k+1))
					}
				})
			}
		}
	}
	group.Wait()
	for i := range hosts {
		await(t, "all frames", func() bool { return len(seen[i].frames()) == each*(n-1) })
		await(t, "one connection to each", func() bool { return hosts[i].Counters().Open == n-1 })
	}
}

// TestCallsThatAreNotTaken: what waits for them fails, with a reason.
func TestCallsThatAreNotTaken(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	b, _ := w.settle(t, "b", 1, nil)
	w.set("c", b.Addr()) // where b is now
	w.set("nobody", loopback.Address(t))
	number := uint64(0)
	for name, c := range map[string]struct {
		host string
		is   error
		says string
	}{
		"another there": {"c", peering.ErrRefused, `this is "b", not "c"`},
		"no address":    {"d", errNowhere, "d"},
		"nobody there":  {"nobody", nil, "nobody"},
		"itself":        {"a", peering.ErrElsewhere, "this host"},
	} {
		number++
		send(t, a, c.host, Control, 0, "x", number)
		await(t, name, func() bool { _, ok := seen.outcome(number); return ok })
		if err, _ := seen.outcome(number); err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	await(t, "the refusal to be counted", func() bool { return b.Counters().Refused == 1 })
	await(t, "no channel to be kept", func() bool { return a.Counters().Channels == 0 }) // what waited hears before
}

// TestTwoProcessesOfOneName: the second learns who has the name.
func TestTwoProcessesOfOneName(t *testing.T) {
	w := newTown()
	first, _ := w.settle(t, "a", 1, nil)
	elsewhere := newTown()
	second, seen := elsewhere.settle(t, "a", 2, nil)
	elsewhere.set("b", first.Addr())
	send(t, second, "b", Control, 0, "x", 1)
	await(t, "the refusal", func() bool { _, ok := seen.outcome(1); return ok })
	if err, _ := seen.outcome(1); !errors.Is(err, peering.ErrRefused) || !strings.Contains(err.Error(), `this is "a"`) {
		t.Error(err)
	}
}

// TestRestart: a host that has started again is met anew; its earlier life is over.
func TestRestart(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	b, _ := w.settle(t, "b", 1, nil)
	send(t, b, "a", Control, 0, "one", 0)
	await(t, "the first life", func() bool { return len(seen.frames()) == 1 })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	later, _ := w.settle(t, "b", 2, nil)
	send(t, later, "a", Large, 0, "two", 0)
	await(t, "the second life", func() bool { return len(seen.frames()) == 2 && len(seen.downs()) == 1 })
	seen.mu.Lock()
	if !slices.Equal(seen.restarted, []string{"b 2 after 1"}) {
		t.Errorf("%q, %v", seen.restarted, seen.down)
	}
	seen.mu.Unlock()
	w.settle(t, "b", 1, nil) // as another process would
	send(t, a, "b", Control, 0, "to the first life", 1)
	await(t, "the earlier life to be found out", func() bool { _, ok := seen.outcome(1); return ok })
	if err, _ := seen.outcome(1); !errors.Is(err, peering.ErrOutdated) {
		t.Error(err)
	}
}

// TestNameIsTaken: while a process lives, another one that says that it is the same host
// is refused, whichever side calls, and the first one's connection stands.
func TestNameIsTaken(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, seen := w.settle(t, "a", 1, trust("a"))
		b, _ := w.settle(t, "b", 5, trust("b"))
		send(t, b, "a", Control, 0, "one", 0)
		await(t, "the first process", func() bool { return len(seen.frames()) == 1 })
		second, saw := w.settle(t, "b", 6, trust("b"))
		send(t, second, "a", Control, 0, "two", 1)
		await(t, "the second one to be refused", func() bool { _, ok := saw.outcome(1); return ok })
		if err, _ := saw.outcome(1); !errors.Is(err, peering.ErrName) || !strings.Contains(err.Error(), `"b" is the process at 127.0.0.1:`) {
			t.Error(err)
		}
		send(t, a, "b", Large, 0, "three", 2) // to the second one's address
		await(t, "its answer", func() bool { _, ok := seen.outcome(2); return ok })
		if err, _ := seen.outcome(2); !errors.Is(err, peering.ErrName) {
			t.Error(err)
		}
		send(t, b, "a", Control, 0, "four", 0)
		await(t, "the first process again", func() bool { return len(seen.frames()) == 2 })
		if k := a.Counters(); k.Contested != 2 || k.Restarts != 0 || len(seen.downs()) != 0 {
			t.Errorf("%+v, %v", k, seen.downs())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		await(t, "its end", func() bool { return len(seen.downs()) == 1 })
		send(t, second, "a", Control, 0, "five", 0)
		await(t, "the second process", func() bool { return len(seen.frames()) == 3 })
	})
}

// TestProcessesOfOneHost: each is met by its own name, with the host's certificate.
func TestProcessesOfOneHost(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		_, seen := w.settle(t, "a", 1, trust("a"))
		var want []string
		for i, name := range []string{"b", "b#1", "b#2"} {
			h, _ := w.settle(t, name, uint64(9-i), trust("b"))
			send(t, h, "a", Control, 0, "x", 0)
			want = append(want, name+" 0/0 x")
			await(t, name, func() bool { return slices.Equal(seen.frames(), want) })
		}
	})
	all := sources(t, "a", "b")
	w := newTown()
	a, _ := w.settle(t, "a", 1, func(c *Config) { c.TLS = all["a"] })
	if _, err := Listen(t.Context(), Config{Name: "a#1", Incarnation: 1, Resolve: w.resolve, TLS: all["b"], Log: discard}); !errors.Is(err, ErrConfig) {
		t.Errorf("a process of a with b's certificate: %v", err)
	}
	if k := a.Counters(); k.Arrived != 0 {
		t.Errorf("%+v", k)
	}
}

// TestLaterIncarnationIsTaken: a host of which others know a later incarnation begins the
// next one.
func TestLaterIncarnationIsTaken(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	a.Learn("b", 100)
	b, _ := w.settle(t, "b", 5, func(c *Config) { c.Handlers = nil })
	_, other := w.settle(t, "c", 1, nil)
	hello := func(text string) {
		l := b.Channel("c", Control)
		if err := l.Send(&Send{Service: testService, Body: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		l.Flush(testService, nil)
	}
	hello("early")
	await(t, "c to know it", func() bool { return len(other.frames()) == 1 })
	b.Hold("a", Control, a.Addr())
	await(t, "the connection", func() bool { return slices.Equal(seen.ups(), []Peer{{"b", 101}}) })
	if b.Incarnation() != 101 {
		t.Errorf("it is in %d", b.Incarnation())
	}
	hello("late")
	await(t, "c to know that, too", func() bool {
		all := other.ups()
		return len(other.frames()) == 2 && all[len(all)-1] == Peer{"b", 101}
	})
	b.Release("a", Control, a.Addr())
}

// TestShutdown: what was sent before arrives, also where the other side has sent much that
// was not read yet; nothing is sent or taken afterwards.
func TestShutdown(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		a, seenA := w.settle(t, "a", 1, trust("a"))
		b, seenB := w.settle(t, "b", 1, trust("b"))
		send(t, a, "b", Control, 0, "first", 0)
		await(t, "the connection", func() bool { return len(seenB.frames()) == 1 && len(seenA.ups()) == 1 })
		for range 200 {
			send(t, b, "a", Control, 0, "much", 0)
		}
		send(t, a, "b", Control, 0, "last", 0)
		a.Shutdown(t.Context())
		if n := a.Counters().Open; n != 0 {
			t.Errorf("%d connections are open", n)
		}
		await(t, "the last word", func() bool { all := seenB.frames(); return all[len(all)-1] == "a 0/0 last" })
		send(t, b, "a", Control, 0, "late", 7)
		await(t, "its failure", func() bool { err, ok := seenB.outcome(7); return ok && err != nil })
	})
}

// TestHeld: a connection that is held is made, and made again when it ends.
func TestHeld(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	w.settle(t, "b", 1, nil)
	b := w.addresses["b"]
	a.Hold("b", Data, b)
	for i := range 3 {
		await(t, "a connection", func() bool { return len(seen.ups()) == i+1 })
		seen.mu.Lock()
		c := seen.conns[i].all()[0]
		seen.mu.Unlock()
		c.raw.Close()
		await(t, "its end", func() bool { return len(seen.downs()) == i+1 })
	}
	a.Release("b", Data, b)
}

// TestIdle: a connection that nobody uses is closed by both sides, without a frame lost,
// and made again for the next frame.
func TestIdle(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		soon := func(name string) func(*Config) {
			return func(c *Config) { trust(name)(c); c.IdleAfter, c.KeepAlive = 1, patience/3000 }
		}
		w := newTown()
		a, seenA := w.settle(t, "a", 1, soon("a"))
		b, seenB := w.settle(t, "b", 1, soon("b"))
		for i := range 3 {
			send(t, a, "b", Control, 0, "x", 0)
			send(t, b, "a", Control, 0, "y", 0)
			await(t, "the frames", func() bool { return len(seenA.frames()) == i+1 && len(seenB.frames()) == i+1 })
			await(t, "its end", func() bool { return a.Counters().Open+b.Counters().Open == 0 })
		}
		for _, err := range append(seenA.downs(), seenB.downs()...) {
			if !errors.Is(err, peering.ErrDone) && !errors.Is(err, io.EOF) {
				t.Errorf("it ended by %v", err)
			}
		}
	})
}

// TestClose: a closed host ends what there is, and takes nothing more.
func TestClose(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	b, _ := w.settle(t, "b", 1, nil)
	send(t, a, "b", Control, 0, "x", 0)
	await(t, "a connection", func() bool { return b.Counters().Open == 1 })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "its end", func() bool { return len(seen.downs()) == 1 })
	if err := b.Channel("a", Control).Send(&Send{Service: testService, Body: []byte("x")}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestConfig: what a host is given has to make sense.
func TestConfig(t *testing.T) {
	all := sources(t, "b")
	for name, spoil := range map[string]func(*Config){
		"no name":               func(c *Config) { c.Name = "" },
		"a long name":           func(c *Config) { c.Name = strings.Repeat("x", 256) },
		"no resolve":            func(c *Config) { c.Resolve = nil },
		"dead before now":       func(c *Config) { c.DeadAfter = -1 },
		"no log":                func(c *Config) { c.Log = nil },
		"service 0":             func(c *Config) { c.Handlers = map[Service]Handler{0: &witness{}} },
		"another's certificate": func(c *Config) { c.TLS = all["b"] },
	} {
		c := Config{Name: "a", Resolve: newTown().resolve, Listen: "127.0.0.1:0", Log: discard}
		spoil(&c)
		if _, err := Listen(t.Context(), c); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLearn: what is sent once it is known that a host has started again goes to its
// later life alone, also where the connection with the earlier one stands.
func TestLearn(t *testing.T) {
	w := newTown()
	a, _ := w.settle(t, "a", 1, nil)
	_, earlier := w.settle(t, "b", 1, nil)
	send(t, a, "b", Control, 0, "one", 0)
	await(t, "the first life", func() bool { return len(earlier.frames()) == 1 })
	_, later := w.settle(t, "b", 2, nil)
	a.Learn("b", 2)
	send(t, a, "b", Control, 0, "two", 1)
	await(t, "the second life", func() bool { return len(later.frames()) == 1 })
	if got := earlier.frames(); len(got) != 1 {
		t.Errorf("the first life got %q", got)
	}
}
