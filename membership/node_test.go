package membership

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/internal/driver/loopback"
)

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// join starts a node that ends with the test.
func join(t *testing.T, c Config) *Node {
	t.Helper()
	n, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, n) })
	return n
}

// shut ends a node without a word.
func shut(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// zoneOf starts nodes n0, n1 ... that all know the first.
func zoneOf(t *testing.T, size int, change func(i int, c *Config)) []*Node {
	t.Helper()
	nodes := make([]*Node, size)
	for i := range nodes {
		c := Config{Name: fmt.Sprintf("n%d", i)}
		if i > 0 {
			c.Bootstrap = []string{nodes[0].Addr().String()}
		}
		if change != nil {
			change(i, &c)
		}
		nodes[i] = join(t, c)
	}
	return nodes
}

// agree waits until all nodes see each other and nobody else.
func agree(t *testing.T, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		w := n.Watcher()
		defer w.Close()
		there := map[string]uint64{}
		for {
			fits := len(there) == len(nodes)
			for _, other := range nodes {
				fits = fits && there[other.Name()] == other.Incarnation()
			}
			if fits {
				break
			}
			all, err := w.Next(within(t))
			if err != nil {
				t.Fatalf("%s sees %v: %v", n.Name(), there, err)
			}
			for _, x := range all {
				if x.Kind == Joined {
					there[x.Member.Name] = x.Member.Version.Incarnation
				} else if there[x.Member.Name] == x.Member.Version.Incarnation {
					delete(there, x.Member.Name)
				}
			}
		}
	}
}

// follow returns a reader of notices that knows the view as it is.
func follow(t *testing.T, n *Node) *Watcher {
	t.Helper()
	w := n.Watcher()
	t.Cleanup(w.Close)
	if _, err := w.Next(within(t)); err != nil {
		t.Fatal(err)
	}
	return w
}

// settle waits until all nodes have somebody to watch them.
func settle(t *testing.T, nodes ...*Node) {
	t.Helper()
	for _, n := range nodes {
		await(t, func() bool {
			names, err := n.WatchersOf(within(t), n.Name())
			return err == nil && len(names) > 0
		})
	}
}

// waitFor returns the first notice of a kind about a node.
func waitFor(t *testing.T, w *Watcher, kind Kind, name string) Notice {
	t.Helper()
	for {
		all, err := w.Next(within(t))
		if err != nil {
			t.Fatalf("waiting until %s %v: %v", name, kind, err)
		}
		for _, x := range all {
			if x.Kind == kind && x.Member.Name == name {
				return x
			}
		}
	}
}

func TestZone(t *testing.T) {
	nodes := zoneOf(t, 8, nil)
	agree(t, nodes...)
	view, err := nodes[3].View(within(t))
	if err != nil || len(view) != 8 || view[3].Name != "n3" || view[3].Addr != nodes[3].Addr() {
		t.Errorf("view %v, %v", view, err)
	}
	m, err := nodes[0].Member(within(t), "n5")
	if err != nil || m.Version.Incarnation != nodes[5].Incarnation() || m.Version.Minor == 0 {
		t.Errorf("member %v, %v", m, err)
	}
	if _, err := nodes[0].Member(within(t), "n9"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a node that is not: %v", err)
	}
}

// TestNoticesOfAnyZone: who was in the view before a reader came is not there
// twice, and then has left.
func TestNoticesOfAnyZone(t *testing.T) {
	nodes := zoneOf(t, 3, func(_ int, c *Config) { c.Zone = 5 })
	agree(t, nodes...)
	w := follow(t, nodes[0])
	shut(t, nodes[1])
	if x := waitFor(t, w, Left, "n1"); x.Zone != 5 || x.Cause != Failed {
		t.Errorf("%v in zone %d", x, x.Zone)
	}
}

func TestLeaveWithExitCode(t *testing.T) {
	nodes := zoneOf(t, 4, nil)
	agree(t, nodes...)
	settle(t, nodes...)
	w := follow(t, nodes[2])
	if err := nodes[1].Leave(within(t), 7); err != nil {
		t.Fatal(err)
	}
	if x := waitFor(t, w, Left, "n1"); x.Cause != Departed || x.Exit == nil || *x.Exit != 7 {
		t.Errorf("%v", x)
	}
	agree(t, nodes[0], nodes[2], nodes[3])
	if err := nodes[1].Leave(within(t), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("leaving again: %v", err)
	}
	if err := nodes[1].Err(); err != nil {
		t.Errorf("it has left: %v", err)
	}
	if _, err := nodes[1].View(within(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("the view of a node that has left: %v", err)
	}
}

// TestDeathAndRestart kills a node; it starts again at the same address.
func TestDeathAndRestart(t *testing.T) {
	state := filepath.Join(t.TempDir(), "incarnation")
	nodes := zoneOf(t, 4, func(i int, c *Config) {
		if i == 1 {
			c.State, c.Listen = state, loopback.Address(t)
		}
	})
	agree(t, nodes...)
	w := follow(t, nodes[3])
	shut(t, nodes[1])
	if x := waitFor(t, w, Left, "n1"); x.Cause != Failed || x.Exit != nil {
		t.Errorf("%v", x)
	}
	again := join(t, Config{Name: "n1", Listen: nodes[1].Addr().String(), Bootstrap: []string{nodes[0].Addr().String()}, State: state})
	if again.Incarnation() <= nodes[1].Incarnation() {
		t.Errorf("incarnation %d after %d", again.Incarnation(), nodes[1].Incarnation())
	}
	if x := waitFor(t, w, Joined, "n1"); x.Member.Version.Incarnation != again.Incarnation() || x.Member.Deaths == 0 {
		t.Errorf("%v, deaths %d", x, x.Member.Deaths)
	}
	nodes[1] = again
	agree(t, nodes...)
}

func TestAttributes(t *testing.T) {
	nodes := zoneOf(t, 4, nil)
	agree(t, nodes...)
	ctx := within(t)
	if err := nodes[1].Set(ctx, "port", []byte("80")); err != nil {
		t.Fatal(err)
	}
	w := nodes[3].AttributeWatcher()
	defer w.Close()
	next := func() AttributeChange {
		t.Helper()
		all, err := w.Next(within(t))
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		return all[0]
	}
	if c := next(); c.Node != "n1" || c.Key != "port" || string(c.Value) != "80" || c.Deleted {
		t.Errorf("%+v", c)
	}
	value, there, err := nodes[3].Attribute(ctx, "n1", "port")
	if err != nil || !there || string(value) != "80" {
		t.Errorf("%q, %v, %v", value, there, err)
	}
	if all, err := nodes[3].Attributes(ctx, "n1"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if err := nodes[1].Delete(ctx, "port"); err != nil {
		t.Fatal(err)
	}
	if c := next(); !c.Deleted || c.Value != nil {
		t.Errorf("%+v", c)
	}
	if err := nodes[1].Delete(ctx, "port"); err != nil {
		t.Errorf("deleting what is not there: %v", err)
	}
	for _, key := range []string{"", "tributary.monitor", strings.Repeat("k", 129)} {
		if err := nodes[1].Set(ctx, key, nil); !errors.Is(err, ErrAttribute) {
			t.Errorf("key %.20q: %v", key, err)
		}
	}
	if _, _, err := nodes[0].Attribute(ctx, "nobody", "port"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an attribute of nobody: %v", err)
	}
	// The writer's own readers hear of it, too.
	own := nodes[1].AttributeWatcher()
	defer own.Close()
	if err := nodes[1].Set(ctx, "a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if all, err := own.Next(ctx); err != nil || len(all) != 1 || all[0].Node != "n1" || all[0].Key != "a" {
		t.Errorf("%v, %v", all, err)
	}
}

// TestKeys: only who has a key of the zone is in it; keys can be changed.
func TestKeys(t *testing.T) {
	old, fresh, other := Key{1, [32]byte{1}}, Key{2, [32]byte{2}}, Key{1, [32]byte{3}}
	for _, encrypt := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypt=%v", encrypt), func(t *testing.T) {
			sealed := func(c *Config, keys ...Key) { c.Keys, c.Encrypt = keys, encrypt }
			nodes := zoneOf(t, 3, func(i int, c *Config) {
				if i == 2 {
					sealed(c, fresh, old)
				} else {
					sealed(c, old, fresh)
				}
			})
			seeds := []string{nodes[0].Addr().String()}
			strange := Config{Name: "stranger", Bootstrap: seeds}
			sealed(&strange, other)
			stranger := join(t, strange)
			open := join(t, Config{Name: "open", Bootstrap: seeds})
			agree(t, nodes...)
			await(t, func() bool { return nodes[0].counts.malformed.Load() > 1 })
			for _, n := range []*Node{stranger, open} {
				if view, err := n.View(within(t)); err != nil || len(view) != 1 {
					t.Errorf("%s sees %v, %v", n.Name(), view, err)
				}
			}
			agree(t, nodes...)
		})
	}
}

// await waits until a condition holds that only counters report of.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it never came about")
		}
	}
}

// TestSuperseded: the later of two processes with one name and address stays.
// They do not listen at the same, since the system would not let them.
func TestSuperseded(t *testing.T) {
	nodes := zoneOf(t, 3, nil)
	agree(t, nodes...)
	later := join(t, Config{Name: "n1", Listen: "127.0.0.1:0", Advertise: nodes[1].Addr().String(), Bootstrap: []string{nodes[0].Addr().String()}})
	select {
	case <-nodes[1].Done():
	case <-within(t).Done():
		t.Fatal("both go on")
	}
	if err := nodes[1].Err(); !errors.Is(err, ErrSuperseded) {
		t.Errorf("it ended with %v", err)
	}
	shut(t, later)
}

// TestGarbage sends what is not of the protocol to a node's sockets.
func TestGarbage(t *testing.T) {
	nodes := zoneOf(t, 3, nil)
	agree(t, nodes...)
	random := rand.New(rand.NewPCG(1, 1))
	noise := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	to := nodes[0].Addr().String()
	for range 64 {
		d, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = d.Write(noise(random.IntN(3000)))
		_ = d.Close()
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		body := noise(1 + random.IntN(200))
		_, _ = c.Write(append([]byte{0, 0, 0, byte(len(body))}, body...))
		_, _ = c.Write(noise(100))
		_ = c.Close()
	}
	await(t, func() bool { return nodes[0].counts.malformed.Load() >= 64 })
	agree(t, nodes...)
}

// TestWatch calls up and down, one at a time, as scoll wants it.
func TestWatch(t *testing.T) {
	nodes := zoneOf(t, 3, nil)
	type call struct {
		node string
		up   uint64 // 0: down
	}
	calls := make(chan call, 64)
	cancel := nodes[0].Watch(
		func(node string, incarnation uint64) { calls <- call{node, incarnation} },
		func(node string, _ uint64) { calls <- call{node, 0} })
	defer cancel()
	expect := func(fits func(there map[string]uint64) bool, there map[string]uint64) {
		t.Helper()
		for !fits(there) {
			select {
			case c := <-calls:
				if there[c.node] = c.up; c.up == 0 {
					delete(there, c.node)
				}
			case <-within(t).Done():
				t.Fatalf("there are %v", there)
			}
		}
	}
	there := map[string]uint64{}
	expect(func(m map[string]uint64) bool { return len(m) == 3 && m["n2"] == nodes[2].Incarnation() }, there)
	shut(t, nodes[2])
	expect(func(m map[string]uint64) bool { return len(m) == 2 && m["n2"] == 0 }, there)
}

// TestWatchNamesTheLife: a node that starts again at another address before its
// earlier life was found dead may be up before that is down. Whoever compares the
// incarnations knows that it lives.
func TestWatchNamesTheLife(t *testing.T) {
	nodes := zoneOf(t, 3, nil)
	type call struct {
		up          bool
		incarnation uint64
	}
	calls := make(chan call, 64)
	note := func(up bool) func(string, uint64) {
		return func(node string, incarnation uint64) {
			if node == "n2" {
				calls <- call{up, incarnation}
			}
		}
	}
	defer nodes[0].Watch(note(true), note(false))()
	before := nodes[2].Incarnation()
	next := func() (c call) {
		t.Helper()
		select {
		case c = <-calls:
		case <-within(t).Done():
			t.Fatal("no call")
		}
		return c
	}
	if c := next(); c != (call{true, before}) {
		t.Fatalf("%+v, want up %d", c, before)
	}
	shut(t, nodes[2])
	again := join(t, Config{Name: "n2", Bootstrap: []string{nodes[0].Addr().String()}})
	seen := map[call]bool{next(): true, next(): true}
	if !seen[call{true, again.Incarnation()}] || !seen[call{false, before}] {
		t.Errorf("%v, want up %d and down %d", seen, again.Incarnation(), before)
	}
}

func TestStatusAndMetrics(t *testing.T) {
	nodes := zoneOf(t, 5, func(i int, c *Config) { c.Zone, c.Monitor = 9, i == 1 })
	agree(t, nodes...)
	// Others know of a monitor when they have its attribute.
	var s Status
	await(t, func() bool {
		answer := httptest.NewRecorder()
		nodes[0].ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), "GET", StatusPage, nil))
		s = Status{}
		if err := json.Unmarshal(answer.Body.Bytes(), &s); err != nil {
			t.Fatalf("%v: %s", err, answer.Body)
		}
		return len(s.Members) == 5 && s.Members[1].Monitor
	})
	if s.Self.Name != "n0" || s.Zone != 9 || s.Management || !slices.IsSortedFunc(s.Members, func(a, b StatusLine) int { return byName(a.Member, b.Member) }) {
		t.Errorf("%+v", s)
	}
	watching, err := nodes[0].Watching(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Members {
		if m.Watched != slices.Contains(watching, m.Name) && len(watching) > 0 {
			t.Logf("%s: watched %v, and %v are", m.Name, m.Watched, watching) // it may have changed between
		}
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(nodes[0].Collector())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tributary_membership_members" && f.GetMetric()[0].GetGauge().GetValue() != 5 {
			t.Errorf("%v", f)
		}
	}
	if len(families) < 10 {
		t.Errorf("%d metrics", len(families))
	}
}

// TestNothingIsLeft counts the goroutines after nodes have ended in all ways.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	nodes := zoneOf(t, 12, nil)
	agree(t, nodes...)
	if each := (runtime.NumGoroutine() - before) / len(nodes); each > 20 {
		t.Errorf("%d goroutines a node", each)
	}
	for i, n := range nodes {
		if i%2 == 0 {
			shut(t, n)
			shut(t, n)
		} else if err := n.Leave(within(t), 0); err != nil {
			t.Error(err)
		}
	}
	await(t, func() bool { return runtime.NumGoroutine() <= before })
}

func TestJoinRefuses(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, test := range map[string]struct {
		c    Config
		kind error
		want string
	}{
		"no name":     {Config{}, ErrConfig, "name"},
		"name with @": {Config{Name: "a@b"}, ErrConfig, "a@b"},
		"management":  {Config{Name: "a", Management: true, Zone: 3}, ErrConfig, "zone 3"},
		"key 0":       {Config{Name: "a", Keys: []Key{{}}}, ErrConfig, "number 0"},
		"twice":       {Config{Name: "a", Keys: []Key{{Number: 3}, {Number: 3}}}, ErrConfig, "each once"},
		"no key":      {Config{Name: "a", Encrypt: true}, ErrConfig, "key"},
		"bootstrap":   {Config{Name: "a", Bootstrap: []string{"nowhere"}}, ErrConfig, "bootstrap"},
		"theta":       {Config{Name: "a", Timing: Timing{Theta: 3, Successors: 2}}, ErrConfig, "Theta 3"},
		"confirm":     {Config{Name: "a", Timing: Timing{Confirm: time.Second}}, ErrConfig, "Confirm 1s"},
		"health":      {Config{Name: "a", Timing: Timing{Health: -2}}, ErrConfig, "Health -2"},
		"stealth":     {Config{Name: "a", Timing: Timing{Stealth: -2}}, ErrConfig, "Stealth -2"},
		"delegates":   {Config{Name: "a", Hierarchy: Hierarchy{Delegates: 33}}, ErrConfig, "33 delegates"},
		"beat":        {Config{Name: "a", Hierarchy: Hierarchy{Beat: -1}}, ErrConfig, "Beat"},
		"a time":      {Config{Name: "a", Timing: Timing{Tau: -1}}, ErrConfig, "Tau"},
		"everywhere":  {Config{Name: "a", Listen: "0.0.0.0:0"}, ErrConfig, "Advertise"},
		"plaintext":   {Config{Name: "a", Listen: "0.0.0.0:0", Advertise: "192.0.2.1:7946"}, ErrConfig, "AllowPlaintext"},
		"no file":     {Config{Name: "a", TLS: &TLS{Cert: "a", CA: "c"}, AllowPlaintext: true}, ErrConfig, "TLS.Key is empty"},
		"no keys":     {Config{Name: "a", TLS: &TLS{Cert: "a", Key: "b", CA: "c"}}, ErrConfig, "give Keys, or AllowPlaintext"},
		"loopback":    {Config{Name: "a", Listen: "127.0.0.1:0", Bootstrap: []string{"127.0.0.1:1", "192.0.2.1:7946"}}, ErrConfig, "192.0.2.1:7946 cannot reach it: set Listen"},
		"supervised":  {Config{Name: "a", Listen: "127.0.0.1:0", Supervisors: []string{"192.0.2.1:7946"}}, ErrConfig, "192.0.2.1:7946 cannot reach it: set Listen"},
		"busy":        {Config{Name: "a", Listen: busy.Addr().String()}, nil, busy.Addr().String()},
	} {
		n, err := Join(t.Context(), test.c)
		if err == nil {
			shut(t, n)
			t.Errorf("%s: no error", name)
			continue
		}
		if test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
