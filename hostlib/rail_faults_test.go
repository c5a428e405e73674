package hostlib

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// journal keeps what is logged.
type journal struct {
	slog.Handler
	mu  *sync.Mutex
	all *[]string
}

func newJournal() journal {
	return journal{slog.DiscardHandler, &sync.Mutex{}, new([]string)}
}

func (j journal) Enabled(context.Context, slog.Level) bool { return true }

func (j journal) WithAttrs([]slog.Attr) slog.Handler { return j }

func (j journal) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	j.mu.Lock()
	defer j.mu.Unlock()
	*j.all = append(*j.all, line)
	return nil
}

// has reports whether a line has all of these.
func (j journal) has(parts ...string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(*j.all, func(line string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) })
	})
}

// TestNoRailInCommon: both sides name it with all their rails, as soon as they have met, and use
// the connection that they have.
func TestNoRailInCommon(t *testing.T) {
	for name, rails := range map[string][2][]Rail{
		"kinds":    {{{Name: "a0", Address: "127.0.0.1"}, {Name: "a1", Address: "127.0.0.2"}}, {{Name: "b0", Address: "127.0.0.3", Kind: RailUDP}, {Name: "b1", Address: "127.0.0.4", Kind: RailUDP}}},
		"networks": {{{Name: "a0", Address: "127.0.0.1", Network: "red"}, {Name: "a1", Address: "127.0.0.2", Network: "red"}}, {{Name: "b0", Address: "127.0.0.3", Network: "blue"}, {Name: "b1", Address: "127.0.0.4", Network: "blue"}}},
		"families": {{{Name: "a0", Address: "127.0.0.1"}, {Name: "a1", Address: "127.0.0.2"}}, {{Name: "b0", Address: "::1"}, {Name: "b1", Address: "::1", Kind: RailUDP}}},
	} {
		t.Run(name, func(t *testing.T) {
			source, said := loopback(), newJournal()
			var hosts []*Host
			var members []Member
			for i, list := range rails {
				name := fmt.Sprint("h", i)
				h := joinHooked(t, hooks.Hooks{Interfaces: source}, name, func(c *Config) { *c = Config{Name: name, Rails: list, Log: slog.New(said)} })
				hosts, members = append(hosts, h), append(members, h.Member())
			}
			comms := form(t, "c", hosts, members, OnTree())
			addUp(t, comms, 1000)
			until(within(t), t, "both name it", func() bool {
				return said.has("no rail in common", "peer=h0", "h1 has b0 (") && said.has("no rail in common", "peer=h1", "h0 has a0 (")
			})
			if !said.has("no rail in common", "a0 (", "a1 (", "b0 (", "b1 (") {
				t.Error("it does not list all rails")
			}
			for i, h := range hosts {
				for _, p := range h.Paths("") {
					if p.State != PathUp || p.Fault == nil || !strings.Contains(p.Fault.Error(), "no rail in common") {
						t.Errorf("h%d has %+v", i, p)
					}
				}
			}
		})
	}
}

// TestRailOfAnotherHost: the address of a rail leads to another host, which refuses the call.
// The path is reported with the address and who is there; the other rails carry on.
func TestRailOfAnotherHost(t *testing.T) {
	source, said := loopback(), newJournal()
	other := joinRails(t, "h2", source, Config{})
	b := joinRails(t, "h1", source, Config{Rails: railsAt("b", "127.0.0.3", "127.0.0.4")})
	wrong := b.Rails()[1].Address
	divert := func(c net.Conn) net.Conn {
		if c.RemoteAddr().String() != wrong {
			return c
		}
		diverted, err := net.Dial("tcp", other.Addr())
		if err != nil {
			t.Error(err)
			return c
		}
		c.Close()
		return diverted
	}
	a := joinHooked(t, hooks.Hooks{Interfaces: source, Link: divert}, "h0", func(c *Config) {
		*c = Config{Name: "h0", Rails: railsAt("a", "127.0.0.1", "127.0.0.2"), Log: slog.New(said)}
	})
	// The child in the tree of hosts calls.
	hosts := []*Host{b, a}
	comms := form(t, "c", hosts, []Member{b.Member(), a.Member()}, OnTree())
	until(within(t), t, "the call is refused", func() bool {
		addUp(t, comms, 1000)
		failed := func(p PathStatus) bool { return p.Rail == "a1" && p.Fault != nil }
		return slices.ContainsFunc(a.Paths("h1"), failed) && !slices.ContainsFunc(a.Paths("h1"), func(p PathStatus) bool { return p.Rail == "a1" && !failed(p) })
	})
	for _, p := range a.Paths("h1") {
		switch p.Rail {
		case "a0":
			if p.State != PathUp || p.Fault != nil {
				t.Errorf("%+v", p)
			}
		case "a1":
			text := fmt.Sprint(p.Fault)
			if p.State == PathUp || !strings.Contains(text, "calling h1 at "+wrong+": ") || !strings.Contains(text, `another host is wanted: this is "h2", not "h1"`) {
				t.Errorf("%+v", p)
			}
		}
	}
	if !said.has("a path cannot be made", "rail=a1", wrong, "h2") {
		t.Error("nothing is logged")
	}
	if r := a.Rails()[1]; r.Missing == 0 || r.LastLoss == nil || !strings.Contains(r.LastLoss.Error(), wrong) {
		t.Errorf("%+v", r)
	}
}

// drain is a connection that takes what is written, and sends nothing on, while it is open. Its
// kernel's acknowledgements are not to be had.
type drain struct {
	net.Conn
	isOpen *atomic.Bool
}

func (c *drain) Write(b []byte) (int, error) {
	if c.isOpen.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestRailOfOneDirection: a rail stops to carry one direction, and no side gets an error. Its
// paths are found dead, what was on them goes over the others, and both sides report it.
func TestRailOfOneDirection(t *testing.T) {
	for _, dead := range []string{"127.0.0.2", "127.0.0.4"} {
		t.Run(dead, func(t *testing.T) {
			source, said := loopback(), newJournal()
			var isDead, never atomic.Bool
			var hosts []*Host
			var members []Member
			for i, rails := range [][]Rail{railsAt("a", "127.0.0.1", "127.0.0.2"), railsAt("b", "127.0.0.3", "127.0.0.4")} {
				h := joinHooked(t, hooks.Hooks{Interfaces: source, Link: func(c net.Conn) net.Conn {
					if local, _ := netip.ParseAddrPort(c.LocalAddr().String()); local.Addr().String() == dead {
						return &drain{c, &isDead}
					}
					return &drain{c, &never}
				}}, fmt.Sprint("h", i), func(c *Config) { c.Rails, c.Log = rails, slog.New(said) })
				hosts, members = append(hosts, h), append(members, h.Member())
			}
			comms := form(t, "c", hosts, members, OnTree())
			both := func() bool {
				addUp(t, comms, 10_000)
				return slices.Equal(joined(hosts[0], "h1"), []string{"a0-b0 up", "a1-b1 up"}) && slices.Equal(joined(hosts[1], "h0"), []string{"b0-a0 up", "b1-a1 up"})
			}
			until(within(t), t, "both rails are used", both)
			for range 3 { // so that the other side is known to have what was sent before there were two paths
				addUp(t, comms, 10_000)
			}
			isDead.Store(true)
			until(within(t), t, "both sides have lost it", func() bool {
				addUp(t, comms, 10_000)
				return hosts[0].Rails()[1].Lost > 0 && hosts[1].Rails()[1].Lost > 0
			})
			if !said.has("the rail is down") && !said.has("while another rail carries") {
				t.Errorf("not logged; %v; %v", hosts[0].Rails()[1].LastLoss, hosts[1].Rails()[1].LastLoss)
			}
			isDead.Store(false)
			until(within(t), t, "both rails are used again", both)
		})
	}
}

// TestRailsThatCannotListen: the address is in use. A host that is to join fails, and one that
// is there stays as it is.
func TestRailsThatCannotListen(t *testing.T) {
	for _, kind := range []RailKind{RailTCP, RailUDP} {
		t.Run(kind.String(), func(t *testing.T) {
			source := loopback()
			var taken string
			if kind == RailTCP {
				l, err := net.Listen("tcp", "127.0.0.2:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				taken = l.Addr().String()
			} else {
				l, err := net.ListenPacket("udp", "127.0.0.2:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				taken = l.LocalAddr().String()
			}
			r := Rail{Name: "x", Address: taken, Kind: kind}
			_, err := Join(hooks.With(t.Context(), hooks.Hooks{Interfaces: source}), Config{Name: "h0", Rails: []Rail{r}})
			if err == nil || !strings.Contains(err.Error(), "rail x: ") || !strings.Contains(err.Error(), taken) {
				t.Errorf("joining: %v", err)
			}
			h := joinRails(t, "h0", source, Config{Rails: railsAt("a", "127.0.0.1")})
			if err := h.AddRail(t.Context(), r); err == nil || errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "rail x: ") || !strings.Contains(err.Error(), taken) {
				t.Errorf("adding: %v", err)
			}
			if got, want := brief(h), []string{"a0 127.0.0.1"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			r.Name, r.Address = "y", "127.0.0.2"
			if err := h.AddRail(t.Context(), r); err != nil {
				t.Errorf("at another port: %v", err)
			}
		})
	}
}

// TestRailsMixed: rails of IPv4 and IPv6 of both kinds join hosts at a time.
func TestRailsMixed(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("there is no IPv6:", err)
	} else {
		l.Close()
	}
	rails := func(prefix string, last int) []Rail {
		return []Rail{
			{Name: prefix + "0", Address: fmt.Sprint("127.0.0.", last)}, {Name: prefix + "1", Address: "::1"},
			{Name: prefix + "2", Address: fmt.Sprintf("127.0.0.%d", last), Kind: RailUDP}, {Name: prefix + "3", Address: "[::1]:0", Kind: RailUDP},
		}
	}
	hosts, members := twoHosts(t, rails("a", 1), rails("b", 2))
	comms := form(t, "c", hosts, members, OnTree())
	until(within(t), t, "all four are used", func() bool {
		addUp(t, comms, 10_000)
		return slices.Equal(joined(hosts[0], "h1"), []string{"a0-b0 up", "a1-b1 up", "a2-b2 up", "a3-b3 up"})
	})
}

// TestBadRailsOfNames and addresses.
func TestBadRailsOfNames(t *testing.T) {
	source := loopback()
	for want, r := range map[string]Rail{
		"is not printable UTF-8 of at most 63 bytes": {Name: strings.Repeat("x", 64), Address: "127.0.0.1"},
		`its name "a\nb"`:                       {Name: "a\nb", Address: "127.0.0.1"},
		"the network's name":                    {Network: "\xff", Address: "127.0.0.1"},
		"0.0.0.0:1 is no address of one host":   {Address: "0.0.0.0"},
		"224.0.0.1:9 is no address of one host": {Address: "224.0.0.1:9"},
		"is not an IP address":                  {Address: "127.0.0.1:99999"},
		"no such interface: lo1":                {Interface: "lo1"},
	} {
		_, err := Join(hooks.With(t.Context(), hooks.Hooks{Interfaces: source}), Config{Name: "h0", Rails: []Rail{r}})
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		h := joinRails(t, "h0", source, Config{})
		if err := h.AddRail(t.Context(), r); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("adding: %v, want %s", err, want)
		}
	}
	h := joinRails(t, "h0", source, Config{Rails: railsAt("a", "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8")})
	if err := h.AddRail(t.Context(), Rail{Name: "b", Address: "127.0.0.9"}); !errors.Is(err, ErrArgument) || !strings.Contains(err.Error(), "there are 8 rails") {
		t.Errorf("a ninth one: %v", err)
	}
	var none nic.Fake
	none.Set([]nic.Interface{{Name: "eth0", Enabled: true, Up: true}}, nil)
	_, err := Join(hooks.With(t.Context(), hooks.Hooks{Interfaces: &none}), Config{Name: "h0", Rails: []Rail{{Interface: "eth0"}}})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "eth0 has no address") {
		t.Errorf("%v", err)
	}
}
