package membership

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wirehierarchy "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// frameOf returns a frame as it is sent.
func frameOf(kind byte, number uint32, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, number), body...)
}

// TestFramesInOrder: what overtakes others waits for them; what comes twice, and what
// would fill the memory, ends the link.
func TestFramesInOrder(t *testing.T) {
	n := join(t, Config{Name: "a"})
	err := n.ask(within(t), func(s *stepper) {
		l := &link{linkKey: linkKey{peer: "b", number: 1}}
		s.links.all[l.linkKey] = l
		defer delete(s.links.all, l.linkKey)
		var got []byte
		take := func(_ byte, body []byte) { got = append(got, body...) }
		for _, number := range []uint32{2, 0, 3, 1, 4} {
			if err := s.links.order(l, frameOf(message, number, byte('0'+number)), take); err != nil {
				t.Fatal(err)
			}
		}
		if string(got) != "01234" || l.earlyBytes != 0 || s.links.early != 0 || len(l.early) != 0 {
			t.Errorf("%s, and %d bytes wait", got, s.links.early)
		}
		for _, number := range []uint32{3, 7, 7} {
			err := s.links.order(l, frameOf(message, number), take)
			if twice := number == 3 || l.early[7] == nil; (number == 7 && len(l.early) != 1) || twice && !errors.Is(err, errFrame) {
				t.Errorf("number %d: %v", number, err)
			}
		}
		large := make([]byte, gossip.MaxFrame)
		for number := uint32(8); ; number++ {
			if err := s.links.order(l, frameOf(message, number, large...), take); err != nil {
				if l.earlyBytes > maxEarly || int(number) < maxEarly/len(large) {
					t.Errorf("%v after %d bytes", err, l.earlyBytes)
				}
				break
			}
		}
		s.links.early -= l.earlyBytes
	})
	if err != nil {
		t.Fatal(err)
	}
}

// villain is a host that speaks to nodes as it likes.
type villain struct {
	t    *testing.T
	host *peer.Host
	to   *Node

	mu  sync.Mutex
	got map[uint32][]byte // kinds of the frames that came, by stream
}

func newVillain(t *testing.T, name string, incarnation uint64, to *Node, source *pki.Source) *villain {
	t.Helper()
	v := &villain{t: t, to: to, got: map[uint32][]byte{}}
	var err error
	v.host, err = peer.Listen(t.Context(), peer.Config{
		Name: name, Incarnation: incarnation, Listen: "127.0.0.1:0", TLS: source, Log: to.cfg.Log,
		Resolve:  func(context.Context, string) (string, error) { return to.Addr().String(), nil },
		Handlers: map[peer.Service]peer.Handler{peer.Membership: v},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.host.Close() })
	return v
}

func (*villain) Failed(string, peer.Class, error) {}

func (v *villain) Up(*peer.Conn)                    {}
func (v *villain) Down(*peer.Conn, error)           {}
func (v *villain) Sent([]uint64, error)             {}
func (v *villain) Restarted(string, uint64, uint64) {}
func (v *villain) Received(_ *peer.Conn, frames []peer.Frame, b *peer.Burst) {
	defer b.Release()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, f := range frames {
		v.got[f.Stream] = append(v.got[f.Stream], f.Bytes[0])
	}
}

// say sends frames of a link that the villain opens.
func (v *villain) say(class peer.Class, stream uint32, frames ...[]byte) {
	v.t.Helper()
	l := v.host.Channel(v.to.Name(), class)
	for _, f := range frames {
		if err := l.Send(&peer.Send{Service: peer.Membership, Stream: stream, Body: f}); err != nil {
			v.t.Fatal(err)
		}
	}
	l.Flush(peer.Membership, nil)
}

// hears waits for the kinds of the first frames on a link that the villain has opened.
func (v *villain) hears(stream uint32, kinds ...byte) {
	v.t.Helper()
	await(v.t, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		got := v.got[stream|toOpener]
		return slices.Equal(got[:min(len(got), len(kinds))], kinds)
	})
}

// hello is what opens a link of the zone as a node.
func hello(to *Node, name string, incarnation uint64) []byte {
	id, err := gossip.MakeID(name, to.Addr())
	if err != nil {
		panic(err)
	}
	p := gossip.Packet{
		Type: gossip.Hello, Target: to.id.Key(), Need: gossip.Random,
		From: gossip.Entry{Key: id.Key(), ID: []byte(id), Version: gossip.Version{Incarnation: incarnation, Minor: 1}},
	}
	return p.Append(nil)
}

// TestWhoSpeaks: on its connections a node is the one that its host's certificate names, in
// the incarnation of the greeting; who says otherwise, or nothing that can be read, is not
// heard.
func TestWhoSpeaks(t *testing.T) {
	key := Key{1, [32]byte{5}}
	nodes := zoneOf(t, 2, func(_ int, c *Config) { c.Keys = []Key{key} })
	agree(t, nodes...)
	source, err := pki.Shared(pki.Identity{Role: pki.Host, Name: "villain"}, key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	incarnation := uint64(time.Now().Add(time.Hour).UnixNano())
	v := newVillain(t, "villain", incarnation, nodes[0], source)
	zone := nodes[0].zoneMark()
	another := append([]byte(nil), zone...)
	another[3]++
	beat := (&gossip.Packet{Type: gossip.Hierarchy, Body: (&wirehierarchy.Beat{}).Append(nil)}).Append(nil)
	for i, c := range []struct {
		name   string
		frames [][]byte
		hears  []byte
	}{
		{"another node", [][]byte{frameOf(openZone, 0, zone...), frameOf(message, 1, hello(nodes[0], "n1", incarnation)...)}, []byte{opened, reset}},
		{"a later incarnation", [][]byte{frameOf(openZone, 0, zone...), frameOf(message, 1, hello(nodes[0], "villain", incarnation+1)...)}, []byte{opened, reset}},
		{"another zone", [][]byte{frameOf(openZone, 0, another...)}, []byte{reset}},
		{"no zone", [][]byte{frameOf(openZone, 0)}, []byte{reset}},
		{"a link that is not there", [][]byte{frameOf(message, 4, 1)}, []byte{reset}},
		{"of no number", [][]byte{{message}}, []byte{reset}},
		{"too large", [][]byte{make([]byte, gossip.MaxFrame+frameHead+1)}, []byte{reset}},
		{"no hierarchy here", [][]byte{frameOf(openTier, 0)}, []byte{reset}},
		{"of the hierarchy", [][]byte{frameOf(openZone, 0, zone...), frameOf(message, 1, beat...)}, []byte{opened, closeLink}},
		{"opened twice", [][]byte{frameOf(openZone, 0, zone...), frameOf(openZone, 1, zone...)}, []byte{opened, reset}},
		{"of another's", [][]byte{frameOf(openZone, 0, zone...), frameOf(opened, 1)}, []byte{opened, reset}},
		{"no kind", [][]byte{frameOf(openZone, 0, zone...), frameOf(99, 1)}, []byte{opened, reset}},
		{"closed", [][]byte{frameOf(openZone, 0, zone...), frameOf(closeLink, 1)}, []byte{opened, closeLink}},
		{"itself", [][]byte{frameOf(openZone, 0, zone...), frameOf(message, 1, hello(nodes[0], "villain", incarnation)...)}, []byte{opened, message}},
	} {
		class := peer.Control
		if len(c.frames[0]) > class.FrameMost() {
			class = peer.Large
		}
		v.say(class, uint32(i+1), c.frames...)
		t.Run(c.name, func(t *testing.T) {
			v.t = t
			v.hears(uint32(i+1), c.hears...)
		})
	}
	if m, err := nodes[1].Member(within(t), "n1"); err != nil || m.Version.Incarnation != nodes[1].Incarnation() {
		t.Errorf("%v, %v", m, err)
	}
}

// TestLinksAreBounded: one host has so many links, and who says nothing on them has to make
// room: nobody keeps others out.
func TestLinksAreBounded(t *testing.T) {
	n := join(t, Config{Name: "a"})
	v := newVillain(t, "villain", 1, n, nil)
	for i := range uint32(maxLinksOfPeer) {
		v.say(peer.Control, i+1, frameOf(openZone, 0, n.zoneMark()...))
	}
	v.hears(maxLinksOfPeer, opened)
	v.say(peer.Control, maxLinksOfPeer+1, frameOf(openZone, 0, n.zoneMark()...))
	v.hears(maxLinksOfPeer+1, reset)
	if got := n.counts.turnedAway.Load(); got != 1 {
		t.Errorf("%d turned away", got)
	}
	others := 1
	for open := maxLinksOfPeer; open <= maxStrangers; open += maxLinksOfPeer {
		o := newVillain(t, "villain"+strings.Repeat("x", others), 1, n, nil)
		others++
		for i := range uint32(maxLinksOfPeer) {
			o.say(peer.Control, i+1, frameOf(openZone, 0, n.zoneMark()...))
		}
		o.hears(maxLinksOfPeer, opened)
	}
	v.hears(1, opened, reset) // the oldest
	err := n.ask(within(t), func(s *stepper) {
		if len(s.links.strangers) != maxStrangers || s.links.others != maxStrangers {
			t.Errorf("%d strangers, %d links", len(s.links.strangers), s.links.others)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.host.Close(); err != nil {
		t.Error(err)
	}
	await(t, func() bool {
		links := -1
		return n.ask(within(t), func(s *stepper) { links = s.links.of["villain"] }) == nil && links == 0
	})
}

// TestLinkOfAnotherClass: a view of 20,000 nodes comes in class Large, what was said after
// it in class Control does not overtake it, and a supervisor hands it on to another.
func TestLinkOfAnotherClass(t *testing.T) {
	const size, zone = 20_000, 3
	m := join(t, Config{Name: "m0", Management: true})
	other := join(t, Config{Name: "m1", Management: true, Bootstrap: []string{m.Addr().String()}})
	agree(t, m, other)
	v := newVillain(t, "delegate", 9, m, nil)
	w := newVillain(t, "delegate-1", 9, other, nil)
	for _, d := range []*villain{v, w} {
		id, err := gossip.MakeID(d.host.Name(), m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		packet := func(x wirehierarchy.Message) []byte {
			return (&gossip.Packet{Type: gossip.Hierarchy, Body: x.Append(nil)}).Append(nil)
		}
		frames := [][]byte{frameOf(openTier, 0), frameOf(message, 1, packet(&wirehierarchy.Hello{Zone: zone, From: id, Incarnation: 9})...)}
		d.say(peer.Control, 1, frames...)
		d.hears(1, opened, message) // who supervises
		const inPiece = 1000
		var large [][]byte
		number := uint32(2)
		for from := 0; from < size; from += inPiece {
			piece := &wirehierarchy.Change{Zone: zone, Base: true, Last: from+inPiece == size}
			for k := range inPiece {
				id, err := gossip.MakeID(name(from+k), m.Addr())
				if err != nil {
					t.Fatal(err)
				}
				piece.Alives = append(piece.Alives, wirehierarchy.Member{ID: id, Version: gossip.Version{Incarnation: 1, Minor: 1}})
			}
			large = append(large, frameOf(message, number, packet(piece)...))
			number++
		}
		leave, err := gossip.MakeID(name(7), m.Addr())
		if err != nil {
			t.Fatal(err)
		}
		d.say(peer.Control, 1, frameOf(message, number, packet(&wirehierarchy.Change{Zone: zone, Leaves: []wirehierarchy.Leave{
			{ID: leave, Version: gossip.Version{Incarnation: 1, Minor: 1}, Cause: uint8(member.Suspected)},
		}})...)) // before the view, which it is after
		d.say(peer.Large, 1, large...)
	}
	for _, n := range []*Node{m, other} {
		await(t, func() bool {
			view, err := n.Fetch(within(t), zone)
			return err == nil && len(view) == size-1 && !slices.ContainsFunc(view, func(x Member) bool { return x.Name == name(7) })
		})
	}
}

func name(i int) string { return fmt.Sprintf("node-%d", i) }

// TestNobodyReads: what waits for a host that takes nothing is bounded, and its link ends.
func TestNobodyReads(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	n := join(t, Config{Name: "a"})
	err = n.ask(within(t), func(s *stepper) {
		l := &link{zone: 1 << 20}
		s.links.zone[l.zone] = l
		s.links.open("nobody", netip.MustParseAddrPort(silent.Addr().String()), l)
		packet, sent := make([]byte, smallMost), 0
		for ; len(s.links.ends) == 0; sent += len(packet) {
			s.links.send(l, [][]byte{packet})
		}
		for _, it := range s.links.flush() {
			s.take(&it)
		}
		if n.counts.stuck.Load() != 1 || len(s.links.all) != 0 || len(s.links.zone) != 0 || sent < 1<<20 || sent > 64<<20 {
			t.Errorf("%d stuck, %d links are left, after %d bytes", n.counts.stuck.Load(), len(s.links.all), sent)
		}
		if len(s.inputs) != 1 || s.inputs[0].Kind != member.ConnectFailed || s.inputs[0].Link != l.zone {
			t.Errorf("the core hears %+v", s.inputs)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
