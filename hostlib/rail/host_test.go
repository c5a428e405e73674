package rail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/rail"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// What the tests need of package hostlib, which imports this one: package rail_test has it.
type (
	// TestKind is a kind of rails.
	TestKind uint8
	// TestRail is a hostlib.Rail.
	TestRail struct {
		Name, Address, Network string
		Kind                   TestKind
	}
	// TestTLS is a hostlib.TLS.
	TestTLS struct{ Cert, Key, CA, Revoked string }
	// TestConfig is a hostlib.Config.
	TestConfig struct {
		Name, Listen string
		Resolve      func(ctx context.Context, host string) (string, error)
		TLS          *TestTLS
		Rails        []TestRail
		Interfaces   *nic.Fake
		DeadAfter    time.Duration
	}
	// TestHost is a hostlib.Host.
	TestHost struct {
		Host
		Close      func(context.Context) error
		AddRail    func(context.Context, TestRail) error
		RemoveRail func(ctx context.Context, name string) error
	}
)

// Join is hostlib.Join.
var Join func(ctx context.Context, c TestConfig) (*TestHost, error)

// String returns the name.
func (k TestKind) String() string { return rail.Kind(k).String() }

// wiring is what joins two hosts: the kinds of the rails of each. The i-th ones are in one network
// if there are as many on both sides, and else all.
type wiring struct {
	kinds [2][]TestKind
	isTLS bool
}

const (
	tcp = TestKind(rail.TCP)
	udp = TestKind(rail.UDP)
)

// String returns what tests of the wiring are called.
func (l wiring) String() string {
	s := ""
	for side, kinds := range l.kinds {
		s += [...]string{"", " to "}[side]
		for _, k := range kinds {
			s += k.String() + " "
		}
	}
	return strings.TrimSpace(s) + [...]string{"", " TLS"}[map[bool]int{true: 1}[l.isTLS]]
}

func same(kinds ...TestKind) [2][]TestKind {
	return [2][]TestKind{kinds, kinds}
}

// wirings are those on which messages are tested. In short mode they are those of several kinds.
func wirings() []wiring {
	if testing.Short() {
		return []wiring{{same(tcp), false}, {same(tcp, tcp), true}, {same(tcp, udp), true}, {[2][]TestKind{{tcp, tcp, tcp}, {tcp}}, false}}
	}
	return []wiring{
		{same(tcp), false}, {same(tcp), true}, {same(tcp, tcp), false}, {same(tcp, tcp), true}, {same(tcp, tcp, tcp), false},
		{same(tcp, udp), false}, {same(tcp, udp), true}, {same(udp, udp), false},
		{[2][]TestKind{{tcp, tcp, tcp}, {tcp}}, false}, {[2][]TestKind{{tcp, tcp}, {tcp, tcp, tcp}}, true},
	}
}

// site is two hosts.
type site struct {
	t      testing.TB
	wiring wiring
	files  [2]*TestTLS
	hosts  [2]*TestHost
	nodes  [2]*Node
	peers  [2]*Peer      // the other side's
	dead   time.Duration // after which a host is

	mu    sync.Mutex
	addrs map[string]string
}

// siteNames are the names of a site's hosts.
var siteNames = [2]string{"a", "b"}

// newSite joins two hosts by rails of loopback addresses.
func newSite(t testing.TB, l wiring, cfg Config) *site { return newMortal(t, l, cfg, patience) }

// newMortal is newSite of hosts that are dead when they cannot be reached for so long.
func newMortal(t testing.TB, l wiring, cfg Config, dead time.Duration) *site {
	s := &site{t: t, wiring: l, addrs: map[string]string{}, dead: dead}
	if l.isTLS {
		s.files = trusted(t)
	}
	for side := range siteNames {
		s.start(side, cfg)
	}
	return s
}

// trusted returns the files of the hosts' certificates.
func trusted(t testing.TB) (all [2]*TestTLS) {
	dir := filepath.Join(t.TempDir(), "trust")
	var ids []pki.Identity
	for _, name := range siteNames {
		ids = append(ids, pki.Identity{Role: pki.Host, Name: name})
	}
	if _, err := pki.Init(dir, ids...); err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		file := func(name string) string { return filepath.Join(dir, name) }
		all[i] = &TestTLS{Cert: file(pki.CertFile(id)), Key: file(pki.KeyFile(id)), CA: file(pki.AuthorityFile)}
	}
	return all
}

// rail returns a rail of a side.
func (s *site) rail(side, i int) TestRail {
	r := TestRail{Name: fmt.Sprintf("%s%d", siteNames[side], i), Kind: s.wiring.kinds[side][i], Address: fmt.Sprintf("127.0.%d.%d", i, side+1)}
	if len(s.wiring.kinds[0]) == len(s.wiring.kinds[1]) {
		r.Network = fmt.Sprint("net", i)
	}
	return r
}

// start starts a side, with a node.
func (s *site) start(side int, cfg Config) {
	t, name := s.t, siteNames[side]
	c := TestConfig{Name: name, Resolve: s.resolve, TLS: s.files[side], DeadAfter: s.dead, Listen: fmt.Sprintf("127.0.0.%d:0", side+1)}
	lo := nic.Interface{Name: "lo", Enabled: true, Up: true}
	for i := range s.wiring.kinds[side] {
		r := s.rail(side, i)
		c.Rails = append(c.Rails, r)
		lo.Addresses, lo.Bits = append(lo.Addresses, netip.MustParseAddr(r.Address)), append(lo.Bits, 8)
	}
	c.Interfaces = &nic.Fake{}
	c.Interfaces.Set([]nic.Interface{lo}, nil)
	host, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(context.Background()); err != nil {
			t.Errorf("closing %s: %v", name, err)
		}
	})
	s.mu.Lock()
	s.addrs[name] = host.Addr()
	s.mu.Unlock()
	if s.nodes[side], err = On(host.Host, cfg); err != nil {
		t.Fatal(err)
	}
	s.hosts[side], s.peers[side] = host, peerOf(t, s.nodes[side], siteNames[1-side])
}

func (s *site) resolve(_ context.Context, host string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addrs[host] == "" {
		return "", errors.New("no such host")
	}
	return s.addrs[host], nil
}

// pairs is how many paths each connection has in the end.
func (s *site) pairs() int { return max(len(s.wiring.kinds[0]), len(s.wiring.kinds[1])) }

// whole waits until all paths of both classes are there. What is sent first may fail where a
// session has ended that only one side knows of.
func (s *site) whole() {
	s.t.Helper()
	ctx := background(s.t)
	large := s.nodes[0].cfg.Eager + 1
	arrived, cancel := context.WithCancel(ctx)
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for arrived.Err() == nil {
			_, _ = s.peers[1].Recv(arrived, 1<<60, make([]byte, large))
		}
	})
	for s.peers[0].Send(ctx, 1<<60, make([]byte, large)) != nil {
		if ctx.Err() != nil {
			s.t.Fatal("nothing arrives")
		}
	}
	cancel()
	receiver.Wait()
	for _, p := range s.peers {
		await(s.t, "all paths", func() bool {
			n := p.pathsUp()
			return n[rail.Message] == s.pairs() && n[rail.Fragment] == s.pairs()
		})
	}
}

// pathsUp counts the paths of the session.
func (p *Peer) pathsUp() (n [classes]int) {
	for _, on := range p.all() {
		n[on.conn.class]++
	}
	return n
}

// all returns the paths of the session.
func (p *Peer) all() (all []*pathOn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.paths {
		for _, on := range p.paths[class] {
			if on != nil {
				all = append(all, on)
			}
		}
	}
	return all
}

// sizesOf are those around everything that matters.
func sizesOf(eager int) []int { return []int{0, 1, 8, eager - 1, eager, eager + 1, 64 << 10, 1 << 20} }

// TestHosts: messages of all sizes arrive over the rails of two hosts, in both directions,
// with few and with many under way.
func TestHosts(t *testing.T) {
	for _, l := range wirings() {
		t.Run(l.String(), func(t *testing.T) {
			s := newSite(t, l, Config{})
			eager := s.nodes[0].cfg.Eager
			a, b := s.peers[0], s.peers[1]
			exchange(t, a, b, 1, []int{16<<20 + 3})
			exchange(t, a, b, 20, sizesOf(eager))
			exchange(t, a, b, 200, sizesOf(eager)[:6])
			exchange(t, a, b, 1000, []int{0, 8, eager, 3000})
			s.whole()
			exchange(t, a, b, 8, sizesOf(eager))
		})
	}
}

// TestHostsMemory: memory is read and written over the rails of two hosts.
func TestHostsMemory(t *testing.T) {
	for _, l := range wirings() {
		t.Run(l.String(), func(t *testing.T) {
			s := newSite(t, l, Config{})
			access(t, s.peers[0], s.peers[1], 2, []int{1, 8, 64 << 10, 4<<20 + 3})
		})
	}
}

// access reads and writes memory of b, and of a, at once.
func access(t *testing.T, a, b *Peer, rounds int, sizes []int) {
	ctx := background(t)
	var all sync.WaitGroup
	for side, p := range []*Peer{a, b} {
		other := []*Peer{b, a}[side].node
		register := func(access Access, memory []byte) *Memory {
			m, err := other.Register(access, memory)
			if err != nil {
				t.Error(err)
			}
			return m
		}
		all.Go(func() {
			most := slices.Max(sizes)
			readable := pattern(side, most)
			source := register(Read, readable)
			for i := range rounds {
				for _, n := range sizes {
					got := make([]byte, n)
					if err := p.Get(ctx, source.Key(), uint64(most-n), got); err != nil || !bytes.Equal(got, readable[most-n:]) {
						t.Errorf("%s: get of %d bytes: %v", p.node.Name(), n, err)
					}
					data, writable := pattern(i*1000+n, n), make([]byte, n+2)
					target := register(Write, writable)
					err := p.Put(ctx, target.Key(), 1, data)
					target.Release()
					if err != nil || !bytes.Equal(writable[1:1+n], data) || writable[0] != 0 || writable[n+1] != 0 {
						t.Errorf("%s: put of %d bytes: %v", p.node.Name(), n, err)
					}
				}
			}
			source.Release()
		})
	}
	all.Wait()
}

var errTest = errors.New("cut by a test")

// saboteur cuts rails, again and again, until stop is called; those of one pair never, so that
// there always is one, unless spared is -1: then often all. It cuts when some fragments more are
// sent, wherever they are then.
func (s *site) saboteur(seed uint64, spared int) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	r := rand.New(rand.NewPCG(seed, 7))
	spares := func(on *pathOn) bool { return strings.Contains(on.name(), fmt.Sprint(siteNames[0], spared)) }
	next := func() bool { // false: it is to end
		until := s.fragments() + r.Uint64N(60)
		for s.fragments() < until {
			select {
			case <-ended:
				return false
			default:
				runtime.Gosched()
			}
		}
		return true
	}
	go func() {
		defer close(done)
		cuts := 0
		for ; next(); cuts++ {
			side, what := r.IntN(2), r.IntN(8)
			if spared < 0 {
				for _, on := range s.peers[side].all() {
					if what < 4 || r.IntN(2) == 0 {
						on.Break(errTest)
					}
				}
				continue
			}
			victim := (spared + 1 + r.IntN(s.pairs()-1)) % s.pairs()
			switch {
			case what == 0:
				s.nodes[side].host.(*link).host.LoseRail(s.rail(side, victim).Name, errTest)
			case what == 1:
				of := s.rail(side, victim)
				if err := s.hosts[side].RemoveRail(s.t.Context(), of.Name); err != nil {
					s.t.Error(err)
				}
				if err := s.hosts[side].AddRail(s.t.Context(), of); err != nil {
					s.t.Error(err)
				}
			default:
				all := slices.DeleteFunc(s.peers[side].all(), spares)
				if len(all) > 0 {
					all[r.IntN(len(all))].Break(errTest)
				}
			}
		}
		s.t.Logf("%d cuts", cuts)
	}()
	return func() { close(ended); <-done }
}

// name returns that of the rails that a path lies on.
func (on *pathOn) name() string { return on.conn.peer.node.host.place(on.path).rail }

// fragments is how many both sides have sent.
func (s *site) fragments() (n uint64) {
	for _, p := range s.peers {
		p.mu.Lock()
		n += p.core.Counters().Fragments
		p.mu.Unlock()
	}
	return n
}

// TestHostsCut: rails are lost in the middle of transfers and come again; as long as there is
// one, all arrives, once and in order.
func TestHostsCut(t *testing.T) {
	for _, l := range wirings() {
		if len(l.kinds[0]) < 2 || len(l.kinds[0]) != len(l.kinds[1]) {
			continue
		}
		for spared, kind := range l.kinds[0] {
			if kind == udp { // of which a loaded machine may find that it is dead
				continue
			}
			t.Run(fmt.Sprintf("%v/spared=%d", l, spared), func(t *testing.T) {
				s := newSite(t, l, Config{})
				s.whole()
				stop := s.saboteur(uint64(spared), spared)
				defer stop()
				a, b := s.peers[0], s.peers[1]
				exchange(t, a, b, 60, sizesOf(a.node.cfg.Eager))
				exchange(t, a, b, 2, []int{8<<20 + 3})
				access(t, a, b, 2, []int{8, 64 << 10, 3<<20 + 1})
			})
		}
	}
}

// TestHostsCutAll: connections are lost with all their paths, again and again. The next ones go on with
// what was under way: all arrives, once and in order.
func TestHostsCutAll(t *testing.T) {
	for _, l := range wirings() {
		t.Run(l.String(), func(t *testing.T) {
			s := newSite(t, l, Config{})
			s.whole()
			stop := s.saboteur(1, -1)
			defer stop()
			a, b := s.peers[0], s.peers[1]
			exchange(t, a, b, 30, sizesOf(a.node.cfg.Eager))
			access(t, a, b, 1, []int{8, 64 << 10, 1<<20 + 1})
			if n := a.Counters().Losses + b.Counters().Losses; n > 0 {
				t.Errorf("%d sessions are lost", n)
			}
		})
	}
}

// TestHostsLastRail: when there has been no rail for too long, all that is under way fails on both
// sides, with an error that names the peer and the rails; what is sent later arrives.
func TestHostsLastRail(t *testing.T) {
	for _, l := range wirings() {
		t.Run(l.String(), func(t *testing.T) {
			s := newMortal(t, l, Config{}, time.Second)
			s.whole()
			var pending []*Request
			for i := range 20 {
				for _, p := range s.peers {
					pending = append(pending, p.StartRecv(Tag(100+i), make([]byte, 8)), p.StartSend(3, make([]byte, 1<<20)))
				}
			}
			repair := s.hide()
			await(t, "the loss", func() bool {
				for _, p := range s.peers {
					for _, on := range p.all() {
						on.Break(errTest)
					}
				}
				return !slices.ContainsFunc(pending, func(r *Request) bool { _, isDone, _ := r.Test(); return !isDone })
			})
			repair()
			for i, r := range pending {
				_, err := r.Wait(background(t))
				var of *PeerError
				if !errors.As(err, &of) || of.Peer != r.peer.name || of.Incarnation == 0 || !errors.Is(err, ErrLost) || len(of.Rails) < s.pairs() || s.pairs() == 1 && !strings.Contains(err.Error(), "127.0.0.") {
					t.Fatalf("request %d: %v", i, err)
				}
				for k := range s.pairs() {
					if s.pairs() > 1 && k < len(l.kinds[0]) && !strings.Contains(err.Error(), s.rail(0, k).Name) {
						t.Errorf("request %d: %v does not name rail %d", i, err, k)
					}
				}
			}
			s.whole()
			exchange(t, s.peers[0], s.peers[1], 20, []int{0, 8, 1 << 20})
		})
	}
}

// hide lets no host find another one, until repair is called.
func (s *site) hide() (repair func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.addrs
	s.addrs = map[string]string{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addrs = known
	}
}

// TestHostsRestart: a host that starts again fails what was under way with its earlier life.
func TestHostsRestart(t *testing.T) {
	for _, l := range wirings() {
		t.Run(l.String(), func(t *testing.T) {
			s := newSite(t, l, Config{})
			s.whole()
			a := s.peers[0]
			pending := []*Request{a.StartRecv(7, make([]byte, 8)), a.StartSend(7, make([]byte, 8<<20))}
			if err := s.hosts[1].Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.start(1, Config{})
			for _, r := range pending {
				_, err := r.Wait(background(t))
				var of *PeerError
				if !errors.As(err, &of) || of.Peer != "b" || !errors.Is(err, ErrRestarted) && !errors.Is(err, ErrLost) && !errors.Is(err, ErrAbsent) && !errors.Is(err, ErrUnreachable) {
					t.Errorf("%v", err)
				}
			}
			s.whole()
			exchange(t, s.peers[0], s.peers[1], 20, []int{0, 8, 1 << 20})
		})
	}
}
