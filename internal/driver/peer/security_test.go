package peer

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
)

// TestFinding1AnotherHostsName: whoever greets under another host's name is refused
// where there are certificates, also with a valid one of its own, and so is who has
// none.
func TestFinding1AnotherHostsName(t *testing.T) {
	all := sources(t, "a", "b", "c")
	stranger := sources(t, "b")
	w := newTown()
	a, seen := w.settle(t, "a", 1, func(c *Config) { c.TLS = all["a"] })
	hello := (&greeting.Greeting{From: "b", Incarnation: 1, To: "a", Call: 1}).Append(nil)
	greet := func(conn net.Conn) (greeting.Answer, error) {
		if _, err := conn.Write(hello); err != nil {
			return greeting.Answer{}, err
		}
		return greeting.ReadAnswer(conn)
	}
	for name, c := range map[string]struct {
		source *pki.Source
		takes  bool
		says   string
	}{
		"b's own certificate":            {all["b"], true, ""},
		"c's certificate":                {all["c"], false, `it is "c"'s, and the greeting says "b"`},
		"b's, of another authority":      {stranger["b"], false, ""},
		"none, and no TLS":               {nil, false, "speaks TLS alone"},
		"the host's own certificate (a)": {all["a"], false, `it is "a"'s`},
	} {
		conn := dialRaw(t, a.Addr())
		if c.source != nil {
			conn = tls.Client(conn, c.source.Client(pki.Want{}))
		}
		answer, err := greet(conn)
		if taken := err == nil && answer.Code == greeting.Accept; taken != c.takes || !taken && c.says != "" && !strings.Contains(answer.Reason, c.says) {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
	await(t, "b alone", func() bool { return len(seen.ups()) == 1 })
	await(t, "all others to be counted", func() bool { k := a.Counters(); return k.Refused == 2 && k.Malformed == 2 })
}

// TestFinding1OtherSide: a host that calls talks to whom it wanted, and to nobody else.
func TestFinding1OtherSide(t *testing.T) {
	all := sources(t, "a", "b", "c")
	w := newTown()
	a, seen := w.settle(t, "a", 1, func(c *Config) { c.TLS = all["a"] })
	w.settle(t, "c", 1, func(c *Config) { c.TLS = all["c"] })
	plain, _ := newTown().settle(t, "d", 1, nil)
	for i, at := range []string{w.addresses["c"], plain.Addr()} {
		w.set("b", at)
		number := uint64(i + 1)
		send(t, a, "b", Control, 0, "secret", number)
		await(t, "the call's end", func() bool { _, ok := seen.outcome(number); return ok })
		err, _ := seen.outcome(number)
		if i == 0 && !errors.Is(err, pki.ErrWrongRole) || err == nil {
			t.Errorf("c is taken for b: %v", err)
		}
	}
	_ = plain
}

var floodSize = flag.Int("strangers", 10_000, "connections of TestFinding5Flood")

// TestFinding5Flood: connections of strangers, of whom some say nothing and some half of
// something, hold a bounded number of places. Meanwhile a member of the same address is
// taken: its call is repeated, if it has to be. With -strangers 100000 it takes half a
// minute.
func TestFinding5Flood(t *testing.T) {
	n := *floodSize
	all := sources(t, "a", "b")
	w := newTown()
	a, seen := w.settle(t, "a", 1, func(c *Config) { c.TLS = all["a"] })
	b, _ := w.settle(t, "b", 1, func(c *Config) { c.TLS = all["b"] })
	const callers, each = 8, 100 // 800 in flight at once
	var group sync.WaitGroup
	most := 0
	for k := range callers {
		group.Go(func() {
			var open [each]net.Conn
			for i := range n / callers {
				conn, err := (&net.Dialer{}).Dial("tcp", a.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				if (i+k)%2 == 0 {
					_, _ = conn.Write([]byte("TRIB"))
				}
				if old := open[i%each]; old != nil {
					_ = old.(*net.TCPConn).SetLinger(0) // no trace is left in the system
					old.Close()
				}
				open[i%each] = conn
				if i == n/callers/2 && k == 0 {
					b.Hold("a", Control, a.Addr()) // in the middle of it
				}
				if k == 0 {
					most = max(most, a.Counters().Pending)
				}
			}
			for _, conn := range open {
				if conn != nil {
					_ = conn.(*net.TCPConn).SetLinger(0)
					conn.Close()
				}
			}
		})
	}
	await(t, "the member", func() bool { return len(seen.ups()) == 1 })
	group.Wait()
	await(t, "those that wait in the kernel", func() bool { return a.Counters().Arrived >= uint64(n)*9/10 })
	if k := a.Counters(); most > 64 || len(seen.downs()) > 0 {
		t.Errorf("up to %d of one address were pending; %+v; the member's connection has ended by %v", most, k, seen.downs())
	}
	b.Release("a", Control, a.Addr())
}

// TestFinding7Plaintext: without certificates other addresses than loopback are neither
// served nor called, unless that is asked for by name.
func TestFinding7Plaintext(t *testing.T) {
	c := Config{Name: "a", Incarnation: 1, Resolve: newTown().resolve, Listen: "0.0.0.0:0", Log: discard}
	if _, err := Listen(t.Context(), c); !errors.Is(err, ErrPlaintext) {
		t.Errorf("it listens everywhere: %v", err)
	}
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	w.set("b", "192.0.2.1:1") // of RFC 5737: it is nobody's
	send(t, a, "b", Control, 0, "secret", 1)
	await(t, "the call's end", func() bool { _, ok := seen.outcome(1); return ok })
	if err, _ := seen.outcome(1); !errors.Is(err, ErrPlaintext) {
		t.Errorf("it calls everybody: %v", err)
	}
	c.AllowPlaintext = true
	h, err := Listen(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	c.AllowPlaintext, c.TLS = false, sources(t, "a")["a"]
	if h, err = Listen(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// mute is a host that greets, and reads nothing more.
func mute(t testing.TB, at *Host, name string, class Class, source *pki.Source) net.Conn {
	t.Helper()
	conn := dialRaw(t, at.Addr())
	if source != nil {
		conn = tls.Client(conn, source.Client(pki.Want{}))
	}
	g := greeting.Greeting{Class: uint8(class), From: name, Incarnation: 1, To: at.Name(), Call: 1}
	if _, err := conn.Write(g.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if a, err := greeting.ReadAnswer(conn); err != nil || a.Code != greeting.Accept {
		t.Fatalf("%+v, %v", a, err)
	}
	return conn
}

// TestFinding8PeerThatReadsNothing: what is sent to it is refused when too much waits,
// its connection ends, all numbers are reported, and others are served meanwhile.
func TestFinding8PeerThatReadsNothing(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		w := newTown()
		var source *pki.Source
		_, _ = w.settle(t, "b", 1, func(c *Config) { trust("b")(c); source = c.TLS })
		a, seen := w.settle(t, "a", 1, func(c *Config) { trust("a")(c); c.DeadAfter, c.KeepAlive = 300*time.Millisecond, 300*time.Millisecond })
		mute(t, a, "c", Control, sourceFor(t, source, trust))
		await(t, "it to be there", func() bool { return len(seen.ups()) == 1 })
		l, body := a.Channel("c", Control), make([]byte, 64<<10)
		number, full := uint64(0), false
		for !full && len(seen.downs()) == 0 { // on a slow machine it may be found out first
			err := l.Send(&Send{Service: testService, Body: body, Number: number + 1})
			if full = errors.Is(err, ErrFull); full {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			number++
			if done := l.Flush(testService, nil); len(done) > 0 {
				seen.Sent(done, nil)
			}
			if number > 10_000 {
				t.Fatal("600 MiB wait for it")
			}
		}
		send(t, a, "b", Control, 0, "hello", 1_000_000)
		await(t, "others to be served", func() bool { err, ok := seen.outcome(1_000_000); return ok && err == nil })
		await(t, "its end", func() bool { return len(seen.downs()) == 1 })
		if err := seen.downs()[0]; !errors.Is(err, ErrStuck) && !errors.Is(err, peering.ErrDead) && !strings.Contains(err.Error(), "timed out") {
			t.Errorf("it ended by %v", err)
		}
		await(t, "word of all", func() bool {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			return uint64(len(seen.sent)) == number+1
		})
	})
}

// sourceFor returns c's certificate, if there are any.
func sourceFor(t testing.TB, any *pki.Source, trust func(string) func(*Config)) *pki.Source {
	t.Helper()
	var c Config
	if any != nil {
		trust("c")(&c)
	}
	return c.TLS
}

// TestLengthsAreNotTrusted: a frame that is said to be large takes no memory before it is
// there; a length that cannot be ends the connection, and so does what the connection
// itself cannot say.
func TestLengthsAreNotTrusted(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	conn := mute(t, a, "b", Large, nil)
	head := appendHead(nil, testService, 0, 64<<20)
	if _, err := conn.Write(append(head, make([]byte, 1000)...)); err != nil {
		t.Fatal(err)
	}
	await(t, "it to be read", func() bool { return a.Counters().Bursts == 1 })
	if k := a.Counters(); k.BurstBytes > burstClasses[1] {
		t.Errorf("%d bytes are held for a frame of which 1000 have come", k.BurstBytes)
	}
	conn.Close()
	for i, bad := range [][]byte{
		appendHead(nil, testService, 0, frameMost[Large]+1),
		binary.BigEndian.AppendUint32(nil, 1<<31),
		appendFrame(nil, itself, 0, nil, []byte{9}),
		appendFrame(nil, itself, 0, nil, []byte{ping, ping}),
	} {
		await(t, "the one before to end", func() bool { return len(seen.downs()) == i+1 })
		conn := mute(t, a, "b", Large, nil)
		if _, err := conn.Write(append(bad, make([]byte, 8)...)); err != nil {
			t.Fatal(err)
		}
		await(t, "its end", func() bool { return len(seen.downs()) == i+2 })
		if err := seen.downs()[i+1]; !errors.Is(err, ErrFrame) {
			t.Errorf("%x: it ended by %v", bad, err)
		}
	}
	// What is for no service is dropped, and counted.
	conn = mute(t, a, "b", Control, nil)
	if _, err := conn.Write(appendFrame(nil, 77, 0, nil, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	await(t, "it to be counted", func() bool { return a.Counters().Nobodys == 1 })
}

// TestVersions: hosts of other versions learn both, and so is who calls one.
func TestVersions(t *testing.T) {
	w := newTown()
	a, seen := w.settle(t, "a", 1, nil)
	for _, hello := range []string{"TRIB\x02", "TRIB\x03", "TRIB\x04", "TRIM\x01", "TRIB\x06"} {
		conn := dialRaw(t, a.Addr())
		if _, err := conn.Write([]byte(hello + strings.Repeat("x", 200))); err != nil {
			t.Fatal(err)
		}
		answer, err := greeting.ReadAnswer(conn)
		if want := fmt.Sprintf("version %d of the protocol between hosts, and this host speaks version 5", hello[4]); err != nil || answer.Code != greeting.Refuse || !strings.Contains(answer.Reason, want) {
			t.Errorf("%q is answered by %+v, %v", hello, answer, err)
		}
	}
	// One of version 2 answers as it always did.
	old, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := old.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var head [5]byte
		_, _ = io.ReadFull(conn, head[:])
		why := fmt.Sprintf("b: the greeting is of version %d of the host connections' protocol, and this host speaks version 2", head[4])
		_, _ = conn.Write(append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(why))}, why...))
		_, _ = io.Copy(io.Discard, conn)
	})
	w.set("b", old.Addr().String())
	send(t, a, "b", Control, 0, "x", 1)
	await(t, "the refusal", func() bool { _, ok := seen.outcome(1); return ok })
	if err, _ := seen.outcome(1); !errors.Is(err, peering.ErrRefused) || !strings.Contains(err.Error(), "version 5") || !strings.Contains(err.Error(), "version 2") {
		t.Error(err)
	}
	serving.Wait()
}
