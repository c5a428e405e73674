package scoll_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/membership"
	"github.com/tributary-fabric/tributary/reduce"
)

// tapped is a Network that keeps what is written on connections.
type tapped struct {
	membership.Network
	mu    sync.Mutex
	bytes [][]byte
}

func (n *tapped) Listen(ctx context.Context, address string) (net.Listener, membership.Datagrams, error) {
	l, d, err := n.Network.Listen(ctx, address)
	return &tappedListener{l, n}, d, err
}

func (n *tapped) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	c, err := n.Network.Dial(ctx, to)
	return n.tap(c), err
}

func (n *tapped) tap(c net.Conn) net.Conn {
	if c == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bytes = append(n.bytes, nil)
	return &tap{c, n, len(n.bytes) - 1}
}

type tappedListener struct {
	net.Listener
	n *tapped
}

func (l *tappedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return l.n.tap(c), err
}

type tap struct {
	net.Conn
	n *tapped
	i int
}

func (c *tap) Write(b []byte) (int, error) {
	c.n.mu.Lock()
	c.n.bytes[c.i] = append(c.n.bytes[c.i], b...)
	c.n.mu.Unlock()
	return c.Conn.Write(b)
}

// onePort checks that a host has made one listener and one socket for datagrams, at its port.
func onePort(t *testing.T, host *hostlib.Host, before, after map[string]int) {
	t.Helper()
	maps.DeleteFunc(after, func(socket string, _ int) bool { _, was := before[socket]; return was })
	at := netip.MustParseAddrPort(host.Addr())
	kinds := []string{}
	for socket, port := range after {
		kinds = append(kinds, socket[:3])
		if port != int(at.Port()) {
			t.Errorf("%s is at port %d, and the host at %v", socket, port, at)
		}
	}
	if slices.Sort(kinds); !slices.Equal(kinds, []string{"tcp", "udp"}) {
		t.Errorf("%s has %v", host.Name(), after)
	}
}

// TestOneHostOfThreeServices: a host with all three services has one listener and one socket for
// datagrams, of the same number; and with certificates nothing on its connections can be
// read.
func TestOneHostOfThreeServices(t *testing.T) {
	all := names(3)
	files := trusted(t, all...)
	const secret = "what nobody is to read, ten times over!!"
	keys := []membership.Key{{Number: 1, Secret: [32]byte{7}}}
	wire := &tapped{Network: membership.System()}
	var seeds []string
	var hosts []*hostlib.Host
	var collectives []*scoll.Node
	var members []hostlib.Member
	for i, n := range all {
		var before map[string]int
		if runtime.GOOS == "linux" {
			before = sockets(t)
		}
		host, err := hostlib.Join(background(t), hostlib.Config{
			Name:       n,
			TLS:        files(i),
			Membership: &membership.Config{Bootstrap: seeds, Keys: keys, Encrypt: true, Network: wire},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = host.Close(context.Background()) })
		node, err := scoll.On(host, scoll.Config{RoundTrip: patience})
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS == "linux" {
			onePort(t, host, before, sockets(t))
		}
		hosts, collectives, members = append(hosts, host), append(collectives, node), append(members, hostlib.Member{Host: n})
		seeds = []string{hosts[0].Addr()}
	}
	if err := hosts[0].Members().Set(background(t), "secret", []byte(secret)); err != nil {
		t.Fatal(err)
	}
	await(t, "the attribute", func() bool {
		value, _, err := hosts[2].Members().Attribute(background(t), all[0], "secret")
		return err == nil && string(value) == secret
	})
	roll := make([]*rollCall, len(all))
	var service *scoll.Service
	for i, n := range collectives {
		roll[i] = &rollCall{node: all[i]}
		s, err := n.Register(testService, roll[i].callbacks())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			service = s
		}
	}
	made := make(chan *scoll.Group, 1)
	targets := make([]scoll.Target, len(all))
	for i, n := range all {
		targets[i] = scoll.Target{Node: n, Tags: []scoll.Tag{{}}}
	}
	if err := service.CreateGroup(scoll.GroupSpec{Name: "all", Targets: targets}, func(g *scoll.Group, err error) {
		if err != nil {
			t.Error(err)
		}
		made <- g
	}); err != nil {
		t.Fatal(err)
	}
	if g := <-made; g != nil {
		if r, err := call(t, g, scoll.Broadcast{Payload: []byte(secret)}); err != nil || heard(r) != sorted(3) {
			t.Errorf("%v", err)
		}
	}
	var ranks sync.WaitGroup
	for i, h := range hosts {
		ranks.Go(func() {
			comm, err := h.Communicator(background(t), "c", members)
			if err != nil {
				t.Error(err)
				return
			}
			words := make([]int32, len(secret)/4)
			if i == 0 {
				for k := range words {
					words[k] = int32(binary.LittleEndian.Uint32([]byte(secret[4*k:])))
				}
			}
			if _, err := hostlib.Allreduce(background(t), comm, reduce.Max, words, words); err != nil || words[0] == 0 {
				t.Errorf("rank %d: %v, %v", i, words, err)
			}
			if err := comm.Leave(background(t)); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
	wire.mu.Lock()
	defer wire.mu.Unlock()
	for i, b := range wire.bytes {
		const handshake = 22
		if len(b) > 0 && b[0] != handshake || bytes.Contains(b, []byte(secret[:16])) || bytes.Contains(b, []byte("TRIB")) {
			t.Errorf("connection %d can be read: %.60q", i, b)
		}
	}
	if len(wire.bytes) == 0 {
		t.Error("no connection was heard")
	}
}
