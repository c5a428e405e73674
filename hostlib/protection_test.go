package hostlib

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// tap is a member's link to its switch in the hands of an attacker, who sees all packets, and sends
// each contribution with another vector before the member's own.
type tap struct {
	transport.Conn
	forges bool
	seen   []byte // that the attacker looks for
	found  *atomic.Bool
}

func (p *tap) WriteBatch(messages []transport.Message) error {
	for i := range messages {
		m := &messages[i]
		m.Each(func(head, body []byte) {
			packet := slices.Concat(head, body)
			if bytes.Contains(packet, p.seen) {
				p.found.Store(true)
			}
			if p.forges && packet[0]&15 == byte(wire.Contribution) && len(packet) > wire.HeaderSize+8 {
				packet[wire.HeaderSize] ^= 0x40
				_ = p.Conn.WriteBatch([]transport.Message{{To: m.To, Body: packet}})
			}
		})
	}
	return p.Conn.WriteBatch(messages)
}

// secretVector has 1,000 numbers, of which any can be recognized.
func secretVector() []int64 {
	v := make([]int64, 1000)
	for i := range v {
		v[i] = 0x5ec2e75ec2e7
	}
	return v
}

var protections = map[string][]GroupOption{"plain": nil, "authenticated": {Authenticated()}, "encrypted": {Encrypted()}}

// TestForgedPackets: who sees a member's packets, and sends others from its address, changes the sum
// unless packets are authenticated; and reads the vector unless they are encrypted. Switches count
// what was forged, by child.
func TestForgedPackets(t *testing.T) {
	for name, options := range protections {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 2, nil)
			var found atomic.Bool
			hosts, members := f.join()
			hosts[3].hooks.Data = func(c transport.Conn) transport.Conn {
				return &tap{Conn: c, forges: true, found: &found, seen: binary.LittleEndian.AppendUint64(nil, 0x5ec2e75ec2e7)}
			}
			comms := form(t, "job", hosts, members, append([]GroupOption{OnTree()}, options...)...)
			offloaded(t, comms, 0)
			ctx := within(t)
			right := make([]bool, len(comms))
			each(len(comms), func(i int) {
				v := secretVector()
				o, err := Allreduce(ctx, comms[i], reduce.Sum, v, v)
				right[i] = !slices.ContainsFunc(v, func(x int64) bool { return x != 4*0x5ec2e75ec2e7 })
				if err != nil || o.Transport != Offload {
					t.Errorf("rank %d: %v, by %v", i, err, o.Transport)
				}
			})
			if isRight := !slices.Contains(right, false); isRight != (name != "plain") {
				t.Errorf("the sums are right: %v", right)
			}
			if found.Load() != (name != "encrypted") {
				t.Errorf("the vector could be read: %v", found.Load())
			}
			forged, drops := uint64(0), uint64(0)
			for _, a := range f.agents {
				c, err := a.Counters(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range c.Epochs {
					for _, child := range e.Children {
						forged += child.Forged
					}
				}
				for _, tree := range c.Trees {
					drops += tree.Drops["unauthentic"]
				}
			}
			if (forged > 0) != (name != "plain") || forged != drops {
				t.Errorf("%d forged packets are counted by child, %d in all", forged, drops)
			}
			leave(t, comms)
		})
	}
}

// TestProtectedPackets: everything that trees carry goes by them, with faults, and after a switch
// has died.
func TestProtectedPackets(t *testing.T) {
	for name, options := range protections {
		t.Run(name, func(t *testing.T) {
			faults := transport.Faults{Loss: 0.02, Duplicate: 0.02, Reorder: 0.05, Seed: 1}
			f := newFabric(t, 2, func(c *agentd.Config) { c.Faults = faults })
			hosts, members := f.hooked(hooks.Hooks{Data: func(c transport.Conn) transport.Conn {
				conn, err := transport.WithFaults(c, faults)
				if err != nil {
					t.Error(err)
				}
				return conn
			}})
			comms := form(t, "job", hosts, members, append([]GroupOption{OnTree()}, options...)...)
			offloaded(t, comms, 0)
			for _, n := range []int{1, 176, 177, 40_000} {
				wantTransport(t, sum(t, comms, n), Offload)
			}
			root := f.root(comms[0])
			f.agents[root].Kill()
			epoch := comms[0].Stats().Epoch
			sum(t, comms, 1000)
			offloaded(t, comms, epoch)
			wantTransport(t, sum(t, comms, 10_000), Offload)
			leave(t, comms)
		})
	}
}

// TestPlainSwitches: a group whose packets are to be authenticated gets no switches that cannot do it,
// and says so; others get them.
func TestPlainSwitches(t *testing.T) {
	f := newFabric(t, 1, func(c *agentd.Config) { c.Capability.Plain = true })
	hosts, members := f.join()
	comms := form(t, "protected", hosts, members, Encrypted())
	wantTransport(t, sum(t, comms, 1000), HostTree, "takes no packets that are authenticated or encrypted")
	if e, err := comms[0].Explain(Question{Collective: "allreduce", Elements: 100, Type: reduce.Float32, Operator: reduce.Sum}); err != nil || !strings.Contains(e.String(), "takes no packets that are authenticated or encrypted") {
		t.Errorf("Explain: %v, %v", e, err)
	}
	leave(t, comms)
	plain := form(t, "plain", hosts, members, OnTree())
	offloaded(t, plain, 0)
	wantTransport(t, sum(t, plain, 1000), Offload)
	leave(t, plain)
}
