package sealed

import (
	"bytes"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

var (
	childAddr  = netip.MustParseAddrPort("10.0.0.2:7")
	otherAddr  = netip.MustParseAddrPort("10.0.0.3:7")
	parentAddr = netip.MustParseAddrPort("10.0.0.1:7")
)

// line is a Conn that keeps what it is to send, and receives what it is given.
type line struct {
	transport.Conn
	sent []transport.Message // with memory of their own
	come []transport.Packet
}

func (l *line) WriteBatch(messages []transport.Message) error {
	for _, m := range messages {
		m.Head, m.Body = bytes.Clone(m.Head), bytes.Clone(m.Body)
		l.sent = append(l.sent, m)
	}
	return nil
}

func (l *line) Counters() transport.Counters { return transport.Counters{} }

func (l *line) ReadBatch(packets []transport.Packet, _ time.Time) (int, error) {
	n := copy(packets, l.come)
	l.come = l.come[n:]
	return n, nil
}

// pair is a child and its parent, who knows another child, too.
type pair struct {
	childLine, parentLine line
	child, parent         *Conn
}

func newPair(t interface{ Fatal(...any) }, p wire.Protection) *pair {
	w := &pair{}
	w.child, w.parent = Over(&w.childLine), Over(&w.parentLine)
	for _, err := range []error{
		w.child.Install(4, p, []Edge{{Peer: parentAddr, Child: 1, Key: wire.Secret{1}}}),
		w.parent.Install(4, p, []Edge{
			{Peer: otherAddr, Child: 0, IsDown: true, Key: wire.Secret{2}}, {Peer: childAddr, Child: 1, IsDown: true, Key: wire.Secret{1}},
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// plain returns a packet of the child's, to or from it.
func plain(t wire.Type, chunk uint32, payload []byte) []byte {
	h := wire.Header{Type: t, Child: 1, Group: 9, Epoch: 4, Chunk: chunk, Cookie: 7}
	b := make([]byte, wire.HeaderSize)
	h.Put(b)
	return append(b, payload...)
}

// up sends messages from child to parent, and returns what leaves.
func (w *pair) up(t interface{ Fatal(...any) }, messages ...transport.Message) []transport.Message {
	w.childLine.sent = nil
	for i := range messages {
		messages[i].To = parentAddr
	}
	if err := w.child.WriteBatch(messages); err != nil {
		t.Fatal(err)
	}
	return w.childLine.sent
}

// arrive has the parent read packets of the child, and returns them one by one.
func (w *pair) arrive(t interface{ Fatal(...any) }, packets ...transport.Packet) (all [][]byte) {
	return arrive(t, w.parent, &w.parentLine, childAddr, packets)
}

func arrive(t interface{ Fatal(...any) }, c *Conn, l *line, from netip.AddrPort, packets []transport.Packet) (all [][]byte) {
	for i := range packets {
		packets[i].From, packets[i].Data = from, bytes.Clone(packets[i].Data)
	}
	l.come = packets
	into := make([]transport.Packet, 8)
	n, err := c.ReadBatch(into, time.Time{})
	if errors.Is(err, transport.ErrWoken) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range into[:n] {
		if p.Size == 0 {
			p.Size = len(p.Data)
		}
		all = slices.AppendSeq(all, slices.Chunk(p.Data, p.Size))
	}
	return all
}

var both = map[string]wire.Protection{"authenticated": wire.Authenticated, "encrypted": wire.Encrypted}

// TestRoundTrip: whatever messages are made of, what arrives is what was sent; no payload is seen on
// the way if they are encrypted.
func TestRoundTrip(t *testing.T) {
	for name, p := range both {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newPair(t, p)
				var want [][]byte
				var messages []transport.Message
				for range rapid.IntRange(1, 3).Draw(t, "messages") {
					size := rapid.IntRange(1, 100).Draw(t, "size")
					packets := rapid.IntRange(1, 4).Draw(t, "packets")
					last := rapid.IntRange(0, size).Draw(t, "last")
					most := wire.HeaderSize
					if packets == 1 {
						most += size
					}
					cut := rapid.OneOf(rapid.SampledFrom([]int{0, wire.HeaderSize}), rapid.IntRange(0, most)).Draw(t, "cut")
					var m transport.Message
					for i := range packets {
						payload := bytes.Repeat([]byte{0xa0 + byte(i)}, size)
						if i == packets-1 && (packets > 1 && last > 0) {
							payload = payload[:last]
						}
						whole := plain(wire.Contribution, uint32(len(want)), payload)
						want = append(want, whole)
						m.Head, m.Body = append(m.Head, whole[:cut]...), append(m.Body, whole[cut:]...)
					}
					if packets > 1 {
						m.Size = wire.HeaderSize + size - cut
					}
					messages = append(messages, m)
				}
				var got [][]byte
				for _, m := range w.up(t, messages...) {
					whole := append(bytes.Clone(m.Head), m.Body...)
					if p == wire.Encrypted && bytes.Contains(whole, []byte{0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0}) {
						t.Fatal("a payload can be read")
					}
					got = append(got, w.arrive(t, transport.Packet{Data: whole, Size: m.Size})...)
				}
				if !slices.EqualFunc(got, want, bytes.Equal) || w.parent.Refused() != 0 {
					t.Fatalf("%d packets of %d, %d refused", len(got), len(want), w.parent.Refused())
				}
			})
		})
	}
}

// TestForgeries: a packet with any bit changed, in another's name, sent back, cut, or not sealed is
// refused, counted for the neighbour whose name it uses, and keeps those beside it from nothing.
func TestForgeries(t *testing.T) {
	for name, p := range both {
		t.Run(name, func(t *testing.T) {
			w := newPair(t, p)
			good := w.up(t, transport.Message{Body: plain(wire.Contribution, 5, []byte("vector"))})[0].Body
			for bit := range len(good) * 8 {
				bad := bytes.Clone(good)
				bad[bit/8] ^= 1 << (bit % 8)
				if got := w.arrive(t, transport.Packet{Data: bad}); got != nil {
					t.Fatalf("bit %d changed: %x", bit, got)
				}
			}
			if of, above := w.parent.RefusedIn(4); of[1] == 0 || of[0] != 0 || above != 0 {
				t.Errorf("refused by neighbour: %v, %d", of, above)
			}
			for what, b := range map[string][]byte{
				"nothing": {}, "cut": good[:len(good)-1], "head alone": good[:wire.HeaderSize], "plain": plain(wire.Contribution, 5, []byte("vector")),
				"another epoch": func() []byte { b := bytes.Clone(good); b[11]++; return b }(),
			} {
				if got := w.arrive(t, transport.Packet{Data: b}); got != nil {
					t.Errorf("%s: %x", what, got)
				}
			}
			if got := arrive(t, w.parent, &w.parentLine, otherAddr, []transport.Packet{{Data: good}}); got != nil {
				t.Errorf("from another address: %x", got)
			}
			if got := arrive(t, w.child, &w.childLine, parentAddr, []transport.Packet{{Data: good}}); got != nil {
				t.Errorf("sent back: %x", got)
			}
			// The other child's packets with this one's index and address, under its own key.
			evil := Over(&line{})
			if err := evil.Install(4, p, []Edge{{Peer: parentAddr, Child: 1, Key: wire.Secret{2}}}); err != nil {
				t.Fatal(err)
			}
			if err := evil.WriteBatch([]transport.Message{{To: parentAddr, Body: plain(wire.Contribution, 5, []byte("vector"))}}); err != nil {
				t.Fatal(err)
			}
			if got := w.arrive(t, transport.Packet{Data: evil.Conn.(*line).sent[0].Body}); got != nil {
				t.Errorf("another's: %x", got)
			}
			// Amid a batch, between two that are good.
			batch := w.up(t, transport.Message{Body: slices.Concat(plain(wire.Contribution, 6, []byte("a")), plain(wire.Contribution, 7, []byte("b")), plain(wire.Contribution, 8, []byte("c"))), Size: wire.HeaderSize + 1})[0]
			batch.Body[batch.Size+wire.HeaderSize] ^= 1
			got := w.arrive(t, transport.Packet{Data: batch.Body, Size: batch.Size})
			if len(got) != 2 || !bytes.Equal(got[0], plain(wire.Contribution, 6, []byte("a"))) || !bytes.Equal(got[1], plain(wire.Contribution, 8, []byte("c"))) {
				t.Errorf("of a batch: %q", got)
			}
		})
	}
}

// TestReplays: what comes late by up to Window is taken, and what comes later is refused.
func TestReplays(t *testing.T) {
	w := newPair(t, wire.Authenticated)
	send := func() []byte {
		return w.up(t, transport.Message{Body: plain(wire.Probe, 1, nil)})[0].Body
	}
	skip := func(to uint64) { w.child.state.Load().edges[place{4, parentAddr, 1}].sent.Store(to - 1) }
	first := send()
	skip(1 + Window)
	atWindow := send()
	for _, b := range [][]byte{first, atWindow, first} {
		if w.arrive(t, transport.Packet{Data: b}) == nil {
			t.Error("a packet within the window is refused")
		}
	}
	if w.arrive(t, transport.Packet{Data: send()}) == nil || w.arrive(t, transport.Packet{Data: first}) != nil || w.arrive(t, transport.Packet{Data: atWindow}) == nil {
		t.Error("the window does not end where it should")
	}
}

// TestInstallAndRetire: epochs have keys of their own; after the last, nothing is taken, or sent.
func TestInstallAndRetire(t *testing.T) {
	w := newPair(t, wire.Encrypted)
	for _, p := range []wire.Protection{wire.Plain, wire.Encrypted + 1} {
		if err := w.child.Install(6, p, nil); err == nil {
			t.Errorf("installed: %v", p)
		}
	}
	good := w.up(t, transport.Message{Body: plain(wire.Probe, 1, nil)})[0].Body
	if err := w.parent.Install(6, wire.Encrypted, []Edge{{Peer: childAddr, Child: 1, IsDown: true, Key: wire.Secret{3}}}); err != nil {
		t.Fatal(err)
	}
	if w.arrive(t, transport.Packet{Data: good}) == nil {
		t.Error("an epoch ends as the next is installed")
	}
	w.parent.Retire(4)
	of, _ := w.parent.RefusedIn(4)
	if w.arrive(t, transport.Packet{Data: good}) != nil || len(of) != 0 {
		t.Error("a packet of an epoch that is over is taken, or counted for a neighbour")
	}
	if err := w.parent.Install(4, wire.Encrypted, []Edge{{Peer: childAddr, Child: 1, IsDown: true}}); err == nil {
		t.Error("an epoch that was retired is installed: its counters begin anew")
	}
	if err := w.child.Install(4, wire.Encrypted, []Edge{{Peer: parentAddr, Child: 1, Key: wire.Secret{1}}}); err != nil || w.child.state.Load().edges[place{4, parentAddr, 1}].sent.Load() != 1 {
		t.Errorf("installed twice: %v, and the counter begins anew", err)
	}
	for what, edges := range map[string][]Edge{
		"another key":       {{Peer: parentAddr, Child: 1, Key: wire.Secret{2}}},
		"another direction": {{Peer: parentAddr, Child: 1, IsDown: true, Key: wire.Secret{1}}},
		"twice":             {{Peer: otherAddr, Key: wire.Secret{8}}, {Peer: otherAddr, Key: wire.Secret{9}}},
	} {
		if err := w.child.Install(4, wire.Encrypted, edges); err == nil {
			t.Errorf("installed: %s", what)
		}
	}
	w.child.RetireBefore(0)
	w.child.RetireBefore(4)
	if w.child.state.Load().edges[place{4, parentAddr, 1}] == nil {
		t.Error("the epoch itself is retired")
	}
	w.child.RetireBefore(5)
	if sent := w.up(t, transport.Message{Body: plain(wire.Probe, 1, nil)}); sent != nil {
		t.Errorf("sent without a key: %x", sent)
	}
	if c := w.child.Counters(); c.Refused != 1 {
		t.Errorf("of the packet without a key: %+v", c)
	}
}

// TestShorterThanAHeader: what is too short for a header is of no edge, wherever it is in a message.
func TestShorterThanAHeader(t *testing.T) {
	w := newPair(t, wire.Encrypted)
	whole := plain(wire.Probe, 1, nil)
	for _, m := range []transport.Message{
		{Head: whole[:8], Body: whole[8 : len(whole)-1]},
		{Body: []byte("x")},
		{Body: append(slices.Clone(whole), 'x'), Size: len(whole)},
	} {
		before := w.child.Counters().Refused
		sent := w.up(t, m)
		if want := m.Count() - 1; len(sent) != want || w.child.Counters().Refused != before+1 {
			t.Errorf("of %d packets %d are sent, want %d; %+v", m.Count(), len(sent), want, w.child.Counters())
		}
	}
}

// TestBeforeInstall: as long as nothing is installed, nothing goes out or comes in, and it is counted.
func TestBeforeInstall(t *testing.T) {
	l := &line{}
	c := Over(l)
	c.Retire(2)
	packet := plain(wire.Contribution, 1, []byte("x"))
	send := func() {
		t.Helper()
		if err := c.WriteBatch([]transport.Message{{To: parentAddr, Body: packet}}); err != nil {
			t.Fatal(err)
		}
	}
	come := func() [][]byte {
		return arrive(t, c, l, parentAddr, []transport.Packet{{Data: slices.Concat(packet, packet), Size: len(packet)}})
	}
	if send(); l.sent != nil || c.Counters().Refused != 1 {
		t.Errorf("sent: %+v, %+v", l.sent, c.Counters())
	}
	if got := come(); got != nil || c.Refused() != 2 {
		t.Errorf("came: %x, %d refused", got, c.Refused())
	}
	if err := c.Install(4, wire.Plain, nil); err != nil {
		t.Fatal(err)
	}
	if send(); len(l.sent) != 1 || !bytes.Equal(l.sent[0].Body, packet) {
		t.Errorf("sent in plain: %+v", l.sent)
	}
	if got := come(); len(got) != 2 || !bytes.Equal(got[0], packet) {
		t.Errorf("came in plain: %x", got)
	}
	if err := c.Install(6, wire.Encrypted, []Edge{{Peer: parentAddr, Key: wire.Secret{1}}}); err == nil {
		t.Error("packets are plain and sealed at once")
	}
}

// TestNoAllocation: sealing and opening allocate nothing.
func TestNoAllocation(t *testing.T) {
	for name, p := range both {
		t.Run(name, func(t *testing.T) {
			var e [2]*edge
			for i := range e {
				var err error
				if e[i], err = newEdge(&Edge{IsDown: i == 1}, p); err != nil {
					t.Fatal(err)
				}
			}
			packet, n := make([]byte, 1472+overhead), new(nonce)
			if got := testing.AllocsPerRun(100, func() {
				e[0].seal(packet, packet[wire.HeaderSize:1472], n)
				if !e[1].open(packet, n) {
					t.Fatal("refused")
				}
			}); got != 0 {
				t.Errorf("%v allocations", got)
			}
		})
	}
}

// FuzzOpen gives a Conn any bytes: what is not sealed never arrives.
func FuzzOpen(f *testing.F) {
	f.Add(plain(wire.Contribution, 5, make([]byte, 64)), uint16(0))
	f.Add(bytes.Repeat(plain(wire.Result, 1, make([]byte, 24)), 3), uint16(wire.HeaderSize+24))
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		for _, p := range both {
			w := newPair(t, p)
			if got := w.arrive(t, transport.Packet{Data: data, Size: int(size)}); got != nil {
				t.Fatalf("arrived: %x", got)
			}
		}
	})
}

// BenchmarkConn moves 32 packets from a socket to another, as a member sends them (head and body apart) and
// as a switch does (in a batch).
func BenchmarkConn(b *testing.B) {
	for _, p := range []wire.Protection{wire.Plain, wire.Authenticated, wire.Encrypted} {
		for _, name := range []string{"apart", "batch"} {
			b.Run(p.String()+"/"+name, func(b *testing.B) { benchmarkConn(b, p, name == "batch") })
		}
	}
}

func benchmarkConn(b *testing.B, p wire.Protection, isBatch bool) {
	const packets, payload = 32, 1408
	var ends [2]*Conn
	for i := range ends {
		udp, err := transport.ListenUDP(netip.MustParseAddrPort("127.0.0.1:0"), transport.Config{ReceiveBuffer: 4 << 20, Batches: true})
		if err != nil {
			b.Fatal(err)
		}
		ends[i] = Over(udp)
		defer ends[i].Close()
	}
	for i, c := range ends {
		if err := c.Install(4, p, []Edge{{Peer: ends[1-i].LocalAddr(), Child: 1, IsDown: i == 1}}); err != nil {
			b.Fatal(err)
		}
	}
	m := transport.Message{To: ends[1].LocalAddr(), Size: payload}
	for i := range packets {
		packet := plain(wire.Contribution, uint32(i), make([]byte, payload))
		if isBatch {
			m.Body, m.Size = append(m.Body, packet...), len(packet)
		} else {
			m.Head, m.Body = append(m.Head, packet[:wire.HeaderSize]...), append(m.Body, packet[wire.HeaderSize:]...)
		}
	}
	into := make([]transport.Packet, packets)
	b.SetBytes(packets * (wire.HeaderSize + payload))
	b.ReportAllocs()
	for b.Loop() {
		if err := ends[0].WriteBatch([]transport.Message{m}); err != nil {
			b.Fatal(err)
		}
		for left := packets * (wire.HeaderSize + payload); left > 0; {
			n, err := ends[1].ReadBatch(into, time.Time{})
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range into[:n] {
				left -= len(p.Data)
			}
		}
	}
}

func BenchmarkPacket(b *testing.B) {
	for name, p := range both {
		b.Run(name, func(b *testing.B) {
			out, err := newEdge(&Edge{}, p)
			if err != nil {
				b.Fatal(err)
			}
			in, err := newEdge(&Edge{IsDown: true}, p)
			if err != nil {
				b.Fatal(err)
			}
			packet, n := make([]byte, 1448+overhead), new(nonce)
			b.SetBytes(int64(len(packet)))
			for b.Loop() {
				out.seal(packet, packet[wire.HeaderSize:1448], n)
				if !in.open(packet, n) {
					b.Fatal("refused")
				}
			}
		})
	}
}
