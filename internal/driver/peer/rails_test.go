package peer

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rail"
)

// railsOf returns n rails on loopback addresses of their own, every third of kind UDP.
func railsOf(host byte, n int) []Rail {
	all := make([]Rail, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("rail%d", i)
		all[i].Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(i + 1), 0, host}), 0)
		all[i].Bits = 16
		if i%3 == 2 {
			all[i].Kind = rail.UDP
		}
	}
	return all
}

// withRails gives a host rails.
func withRails(host byte, n int) func(*Config) {
	return func(c *Config) {
		c.Rails = railsOf(host, n)
		c.Listen = c.Rails[0].Address.String()
	}
}

// ledger counts what comes, by number.
type ledger struct {
	witness
	mu   sync.Mutex
	next map[string]uint64 // by sender and class
	bad  []string
}

func (l *ledger) Received(c *Conn, frames []Frame, b *Burst) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range frames {
		at := fmt.Sprint(c.Peer().Name, " ", c.Class())
		n := binary.BigEndian.Uint64(f.Bytes)
		if n != l.next[at] {
			l.bad = append(l.bad, fmt.Sprintf("%s: frame %d in place of %d", at, n, l.next[at]))
		}
		l.next[at] = n + 1
		for i, x := range f.Bytes[8:] {
			if x != byte(n)+byte(i) {
				l.bad = append(l.bad, fmt.Sprintf("%s: byte %d of frame %d is wrong", at, i, n))
				break
			}
		}
	}
	b.Release()
}

func newLedger() *ledger {
	return &ledger{witness: witness{sent: map[uint64]error{}}, next: map[string]uint64{}}
}

func numbered(n uint64, size int) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 8+size), n)
	for i := range size {
		b = append(b, byte(n)+byte(i))
	}
	return b
}

// pathsOf returns the living paths between two hosts.
func pathsOf(h *Host, to string, class Class) []*Path {
	l := h.Channel(to, class)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.conn.all()), func(p *Path) bool { return p.reason.Load() != nil })
}

// isWhole reports that a connection has all its paths, and may lose any.
func isWhole(h *Host, to string, class Class, rails int) bool {
	all := pathsOf(h, to, class)
	if len(all) != rails {
		return false
	}
	l := all[0].channel
	l.mu.Lock()
	defer l.mu.Unlock()
	return all[0].conn.stripe != nil && all[0].conn.stripe.anchor == nil
}

// TestPathsLost: frames of all classes and sizes arrive in order, once, while paths are cut
// on either side and come again; the connection stays.
func TestPathsLost(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		for _, rails := range []int{2, 3} {
			t.Run(fmt.Sprint(rails), func(t *testing.T) {
				w := newTown()
				out, in := newLedger(), newLedger()
				settle := func(name string, at byte, l *ledger) *Host {
					h, _ := w.settle(t, name, 1, func(c *Config) {
						withRails(at, rails)(c)
						trust(name)(c)
						c.Handlers = map[Service]Handler{testService: l}
					})
					return h
				}
				a, b := settle("a", 1, out), settle("b", 2, in)
				times := uint64(300)
				if testing.Short() {
					times = 100
				}
				for i := range times {
					for class := range Message {
						size := int(i*i*37) % 5000
						if class == Large {
							size *= 100
						}
						l := a.Channel("b", class)
						if err := l.Send(&Send{Service: testService, Body: numbered(i, size), Number: i*3 + uint64(class) + 1}); err != nil {
							t.Fatal(err)
						}
						if done := l.Flush(testService, nil); len(done) > 0 {
							out.Sent(done, nil)
						}
						if i%20 == 7 {
							await(t, "all paths", func() bool { return isWhole(a, "b", class, rails) && isWhole(b, "a", class, rails) })
							h, o := a, "b"
							if i%40 == 7 {
								h, o = b, "a"
							}
							pathsOf(h, o, class)[int(i/20)%rails].raw.Close()
						}
					}
				}
				await(t, "all frames", func() bool {
					in.mu.Lock()
					defer in.mu.Unlock()
					return len(in.next) == 3 && in.next["a 0"]+in.next["a 1"]+in.next["a 2"] == 3*times
				})
				await(t, "all reports", func() bool {
					out.witness.mu.Lock()
					defer out.witness.mu.Unlock()
					return uint64(out.reported) == 3*times
				})
				if len(in.bad) > 0 {
					t.Error(in.bad[:min(5, len(in.bad))])
				}
				for n, err := range out.sent {
					if err != nil {
						t.Errorf("frame %d: %v", n, err)
					}
				}
				if downs := append(out.downs(), in.downs()...); len(downs) > 0 {
					t.Error(downs)
				}
			})
		}
	})
}

// hole is a connection whose bytes vanish, in one direction or in both, while neither side
// gets an error.
type hole struct {
	net.Conn
	swallows *atomic.Bool // what is written
}

func (c *hole) Write(b []byte) (int, error) {
	if c.swallows.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// holes make those of one rail swallow what is written.
type holes struct{ isOn [2]atomic.Bool }

// wrap returns what wraps the connections of one rail of a host.
func (h *holes) wrap(side int) func(net.Conn) net.Conn {
	never := &atomic.Bool{}
	return func(c net.Conn) net.Conn {
		on := never
		// A connection's first path has any local address.
		if local, remote := addressOf(c.LocalAddr()).As4(), addressOf(c.RemoteAddr()).As4(); local[1] == 1 || remote[1] == 1 {
			on = &h.isOn[side]
		}
		return &hole{Conn: c, swallows: on}
	}
}

// TestSilentPath: a path that carries nothing in one direction, or in both, while no side
// gets an error, is found dead, and all that was sent on it arrives over another. When its
// rail carries again, it is used again.
func TestSilentPath(t *testing.T) {
	for _, dead := range [][]int{{0}, {1}, {0, 1}} {
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			w := newTown()
			var lost holes
			out, in := newLedger(), newLedger()
			settle := func(name string, side int, l *ledger) *Host {
				h, _ := w.settle(t, name, 1, func(c *Config) {
					withRails(byte(side+1), 2)(c)
					c.Wrap = lost.wrap(side)
					c.Handlers = map[Service]Handler{testService: l}
				})
				return h
			}
			a, b := settle("a", 0, out), settle("b", 1, in)
			n := uint64(0)
			say := func(times int) {
				for range times {
					l := a.Channel("b", Control)
					if err := l.Send(&Send{Service: testService, Body: numbered(n, 100)}); err != nil {
						t.Fatal(err)
					}
					n++
					l.Flush(testService, nil)
				}
			}
			arrived := func() bool {
				in.mu.Lock()
				defer in.mu.Unlock()
				return in.next["a 0"] == n
			}
			whole := func() bool { return isWhole(a, "b", Control, 2) && isWhole(b, "a", Control, 2) }
			say(1)
			await(t, "both paths", whole)
			before := pathsOf(a, "b", Control)
			for _, side := range dead {
				lost.isOn[side].Store(true)
			}
			say(50)
			await(t, "all frames", arrived)
			await(t, "the end of the path", func() bool {
				return len(pathsOf(a, "b", Control)) == 1 || whole() && !slices.Equal(before, pathsOf(a, "b", Control))
			})
			say(50)
			await(t, "all frames", arrived)
			for _, side := range dead {
				lost.isOn[side].Store(false)
			}
			await(t, "both paths again", whole)
			say(50)
			await(t, "all frames", arrived)
			if len(in.bad) > 0 || len(out.downs()) > 0 || len(in.downs()) > 0 {
				t.Error(in.bad, out.downs(), in.downs())
			}
		})
	}
}

// TestEachFindsAnotherDead has both hosts find dead what the other one does not, at once, as
// after a moment in which all rails were silent: the connection stays.
func TestEachFindsAnotherDead(t *testing.T) {
	w := newTown()
	ledgers := [2]*ledger{newLedger(), newLedger()}
	var hosts [2]*Host
	for i, name := range []string{"a", "b"} {
		hosts[i], _ = w.settle(t, name, 1, func(c *Config) {
			withRails(byte(i+1), 2)(c)
			c.Handlers = map[Service]Handler{testService: ledgers[i]}
		})
	}
	a, b := hosts[0], hosts[1]
	for round := range uint64(20) {
		if err := a.Channel("b", Data).Send(&Send{Service: testService, Body: numbered(round, 100)}); err != nil {
			t.Fatal(err)
		}
		a.Channel("b", Data).Flush(testService, nil)
		await(t, "both paths", func() bool { return isWhole(a, "b", Data, 2) && isWhole(b, "a", Data, 2) })
		var both sync.WaitGroup
		for side, h := range hosts {
			for _, p := range pathsOf(h, hosts[1-side].cfg.Name, Data) {
				r := p.Rails()
				await(t, "the path's rails", func() bool { r = p.Rails(); return r != nil })
				if r.Own.Name == fmt.Sprint("rail", side) {
					both.Go(func() { p.endDead(ErrRailDown) })
				}
			}
		}
		both.Wait()
	}
	await(t, "all frames", func() bool {
		ledgers[1].mu.Lock()
		defer ledgers[1].mu.Unlock()
		return ledgers[1].next[fmt.Sprint("a ", Data)] == 20 || len(ledgers[1].bad) > 0
	})
	if bad := append(ledgers[0].downs(), ledgers[1].downs()...); len(bad) > 0 || len(ledgers[1].bad) > 0 {
		t.Errorf("connections have ended: %v; %v", bad, ledgers[1].bad)
	}
}
