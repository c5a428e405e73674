package netlab

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// buildRails returns a rails fabric that ends with the test.
func buildRails(t *testing.T, c RailsConfig) *Rails {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	f, err := BuildRails(c)
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("root may not make network namespaces here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// socket opens a UDP socket at a host's rail.
func socket(t *testing.T, f *Rails, host, rail int) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := f.Do(host, func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(addrPort(f, host, rail)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// say sends a word; what is wrong with that may be what is tested.
func say(f *Rails, from *net.UDPConn, host, rail int, word string) {
	_, _ = from.WriteToUDPAddrPort([]byte(word), addrPort(f, host, rail))
}

// expect reads the next word.
func expect(t *testing.T, at *net.UDPConn, want string) {
	t.Helper()
	b := make([]byte, 64)
	n, err := at.Read(b)
	if err != nil || string(b[:n]) != want {
		t.Fatalf("read %q, %v, want %q", b[:n], err, want)
	}
}

// TestRailFaults has datagrams between hosts on all rails, and one host's link fail in
// each way: what is lost is what the fault says, and all passes again afterwards.
func TestRailFaults(t *testing.T) {
	f := buildRails(t, RailsConfig{Prefix: "nlrail", Hosts: 3, Rates: []int64{200_000_000, 0}})
	var at [3][2]*net.UDPConn
	for host := range at {
		for rail := range at[host] {
			at[host][rail] = socket(t, f, host, rail)
		}
	}
	const broken = 1 // the link of host 0 to this rail
	other := func(t *testing.T, word string) {
		t.Helper()
		say(f, at[0][0], 1, 0, word) // the other rail
		expect(t, at[1][0], word)
		say(f, at[2][broken], 1, broken, word) // other hosts
		expect(t, at[1][broken], word)
	}
	other(t, "before")
	for fault := Silent; fault <= In; fault++ {
		t.Run(fault.String(), func(t *testing.T) {
			both := func(word string) {
				say(f, at[0][broken], 1, broken, word+" out")
				say(f, at[1][broken], 0, broken, word+" in")
			}
			both("works")
			expect(t, at[1][broken], "works out")
			expect(t, at[0][broken], "works in")
			if err := f.SetFault(0, broken, fault); err != nil {
				t.Fatal(err)
			}
			both("broken")
			if fault == In {
				expect(t, at[1][broken], "broken out")
			}
			if fault == Out {
				expect(t, at[0][broken], "broken in")
			}
			waitCarrier(t, f, 0, broken, fault != Carrier && fault != Disabled && fault != Deleted)
			other(t, "meanwhile")
			if err := f.SetFault(0, broken, Works); err != nil {
				t.Fatal(err)
			}
			waitCarrier(t, f, 0, broken, true)
			// What was on its way when the link broke was dropped, not delayed.
			both("again")
			expect(t, at[1][broken], "again out")
			expect(t, at[0][broken], "again in")
		})
	}
	other(t, "after")
}

// waitCarrier waits until an interface is running, or is not.
func waitCarrier(t *testing.T, f *Rails, host, rail int, want bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); ; <-poll.C {
		var running bool
		err := f.Do(host, func() error {
			i, err := net.InterfaceByName(RailInterface(rail))
			if err == nil { // else it was deleted
				running = i.Flags&net.FlagRunning != 0 && i.Flags&net.FlagUp != 0
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if running == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the interface is running: %v, want %v", running, want)
		}
	}
}

// rateOf returns the bytes a second that an interface is shaped to, 0 if it is not.
func rateOf(t *testing.T, p *place, device string) (rate uint64) {
	t.Helper()
	err := p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err != nil {
			return err
		}
		queues, err := p.netlink.QdiscList(link)
		for _, q := range queues {
			if shaped, ok := q.(*netlink.Tbf); ok {
				rate = shaped.Rate
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rate
}

func TestRailRates(t *testing.T) {
	f := buildRails(t, RailsConfig{Prefix: "nlrate", Hosts: 2, Rates: []int64{200_000_000, 0}})
	check := func(rail int, want uint64) {
		t.Helper()
		if a, b := rateOf(t, f.hosts[0], RailInterface(rail)), rateOf(t, f.networks[rail], RailHost(0)); a != want || b != want {
			t.Errorf("rail %d: %d B/s and %d back, want %d", rail, a, b, want)
		}
	}
	check(0, 25_000_000)
	check(1, 0)
	for _, rate := range []int64{8_000_000, 0, 200_000_000} {
		if err := f.SetRate(0, 0, rate); err != nil {
			t.Fatal(err)
		}
		check(0, uint64(rate/8))
	}
	for _, fault := range []Fault{Silent, Works} { // keeps the rate
		if err := f.SetFault(0, 0, fault); err != nil {
			t.Fatal(err)
		}
	}
	check(0, 25_000_000)
	if a := rateOf(t, f.hosts[1], RailInterface(0)); a != 25_000_000 {
		t.Errorf("the other host sends %d B/s", a)
	}
	for _, err := range []error{f.SetRate(0, 0, -1), f.SetRate(0, 2, 1), f.SetRate(2, 0, 1), f.SetFault(-1, 0, Silent)} {
		if !errors.Is(err, ErrConfig) && !errors.Is(err, ErrUnknown) {
			t.Errorf("a link or rate that cannot be: %v", err)
		}
	}
}

// TestPin expects that hosts' processes have their own cores.
func TestPin(t *testing.T) {
	f := buildRails(t, RailsConfig{Prefix: "nlrpin", Hosts: 2, Rates: []int64{0}, Pin: true})
	var cores [2]string
	for host := range cores {
		var out bytes.Buffer
		cmd := exec.Command("grep", "Cpus_allowed_list", "/proc/self/status")
		cmd.Stdout = &out
		if err := f.Start(host, cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		cores[host] = out.String()
	}
	if cores[0] == cores[1] && runtime.NumCPU() > 1 {
		t.Errorf("both hosts run on %q", cores[0])
	}
}

// TestRailCounts expects that counters show on which rail bytes have passed.
func TestRailCounts(t *testing.T) {
	f := buildRails(t, RailsConfig{Prefix: "nlrcnt", Hosts: 2, Rates: []int64{0, 0}})
	a, b := socket(t, f, 0, 1), socket(t, f, 1, 1)
	word := strings.Repeat("x", 64)
	for i := range 100 {
		say(f, a, 1, 1, word)
		expect(t, b, word)
		if i != 50 {
			continue
		}
		for _, fault := range []Fault{Deleted, Deleted, Works} { // and what was counted stays
			if err := f.SetFault(0, 1, fault); err != nil {
				t.Fatal(err)
			}
		}
	}
	for rail, want := range []uint64{0, 100 * 64} {
		sent, _, err := f.Counts(0, rail)
		if err != nil {
			t.Fatal(err)
		}
		_, received, err := f.Counts(1, rail)
		if err != nil {
			t.Fatal(err)
		}
		if sent.Bytes < want || received.Bytes < want || want == 0 && sent.Bytes > 1000 {
			t.Errorf("rail %d carried %d and %d bytes, want %d and headers", rail, sent.Bytes, received.Bytes, want)
		}
	}
}

// TestRailsRemoved expects that nothing is left of a fabric, whatever its state.
func TestRailsRemoved(t *testing.T) {
	f := buildRails(t, RailsConfig{Prefix: "nlrgone", Hosts: 2, Rates: []int64{0, 0}})
	for host, fault := range []Fault{Carrier, Deleted} {
		if err := f.SetFault(host, 1, fault); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := BuildRails(f.cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(spacesDir, "nlrgone-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := f.SetFault(0, 0, Silent); !errors.Is(err, ErrClosed) {
		t.Errorf("a fault after the end: %v", err)
	}
}

// addrPort is where the socket of a host's rail is.
func addrPort(f *Rails, host, rail int) netip.AddrPort {
	return netip.AddrPortFrom(f.Addr(host, rail), 7300)
}
