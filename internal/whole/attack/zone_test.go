package attack_test

import (
	"bytes"
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

const gossipMessages = "../../wire/gossip/testdata/golden"

// refusedDatagrams returns how many messages of the zone a node has dropped as malformed or not sealed.
func refusedDatagrams(t *testing.T, h *hostlib.Host) (n int) {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(h.Members().Collector())
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if !strings.HasSuffix(f.GetName(), "dropped_total") {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == "malformed" {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

// ring returns what seals datagrams of zone 0, as who has one of its keys does.
func ring(t *testing.T, secret [32]byte) *gossip.Keyring {
	t.Helper()
	secret = sha256.Sum256(append(secret[:], "tributary membership zone\x00\x00\x00\x00"...))
	k, err := gossip.NewKeyring(false, gossip.SharedKey{Number: zoneKey.Number, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// testZone: datagrams of the zone, by who has no key: as they are, sealed by another key, and sealed by
// the zone's and then changed, as who has the network's view could. Each is dropped, counted, and not
// answered.
func (f *fabric) testZone(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 4))
	h := f.hosts[0]
	to := netip.MustParseAddrPort(h.Addr())
	socket := f.socket(t)
	send := func(r *tally, all []forged) {
		before := refusedDatagrams(t, h)
		for chunk := range slices.Chunk(all, burst) {
			for _, x := range chunk {
				if _, err := socket.WriteToUDPAddrPort(x.bytes, to); err != nil {
					t.Fatal(err)
				}
				r.in += len(x.bytes)
			}
			before += len(chunk)
			f.until(r.protocol+", "+r.attacker+": the node has dropped "+chunk[0].what+" and those after it", func() bool { return refusedDatagrams(t, h) >= before })
		}
		r.tried, r.refused = r.tried+len(all), r.refused+len(all)
		silent(t, socket)
	}
	f.under(t, func() {
		isGood := func(x forged) bool { return len(x.bytes) > 1400 } // no datagram
		for _, m := range golden(t, gossipMessages, 4) {
			all := append(m.forge(nil, random), forged{what: m.name + " as it was", bytes: m.bytes})
			all = slices.DeleteFunc(all, isGood)
			send(f.matrix.of("nothing", "membership, datagrams"), fewer(all))
			if len(m.bytes) > 1300 {
				continue
			}
			var others []forged
			for _, x := range fewer(all) {
				if len(x.bytes) >= 2 {
					others = append(others, forged{what: x.what + ", by another key", bytes: ring(t, [32]byte{9}).Seal(nil, x.bytes)})
				}
			}
			send(f.matrix.of("nothing", "membership, datagrams"), others)
			sealed := message{name: m.name + ", sealed", bytes: ring(t, zoneKey.Secret).Seal(nil, m.bytes)}
			sealed.fields = words(len(sealed.bytes), 4)
			send(f.matrix.of("the network's view", "membership, datagrams"), fewer(sealed.forge(nil, random)))
		}
	})
}

func (f *fabric) socket(t *testing.T) *net.UDPConn {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	deadline, _ := f.ctx.Deadline()
	_ = socket.SetReadDeadline(deadline)
	return socket
}

// testKey: who has the zone's key, and no certificate, says of each victim, in every message that may be
// a datagram, that it has left, is dead, suspected, or in a later incarnation. Nobody believes it, and no
// answer is larger than three times what it answers.
func (f *fabric) testKey(t *testing.T) {
	h := f.hosts[0]
	to := netip.MustParseAddrPort(h.Addr())
	socket := f.socket(t)
	seals := ring(t, zoneKey.Secret)
	own := gossip.ID("x@" + socket.LocalAddr().String())
	r := f.matrix.of("a membership key", "membership, datagrams")
	b := make([]byte, 1<<16)
	nonce := uint32(1000)
	// ask sends a message, and after it a probe, whose answer comes after those to the message.
	ask := func(p *gossip.Packet) {
		sealed := seals.Seal(nil, p.Append(nil))
		if _, err := socket.WriteToUDPAddrPort(sealed, to); err != nil {
			t.Fatal(err)
		}
		nonce++
		target := gossip.ID("h0@" + h.Addr())
		fence := gossip.Packet{
			Type: gossip.Probe, Nonce: nonce, Target: target.Key(), From: gossip.Entry{Key: own.Key(), ID: []byte(own), Version: gossip.Version{Incarnation: 1, Minor: 1}},
		}
		if _, err := socket.WriteToUDPAddrPort(seals.Seal(nil, fence.Append(nil)), to); err != nil {
			t.Fatal(err)
		}
		got := 0
		for {
			n, _, err := socket.ReadFromUDPAddrPort(b)
			if err != nil {
				t.Fatalf("%v is not followed by the answer to a probe: %v", p.Type, err)
			}
			var a gossip.Packet
			if opened, err := seals.Open(bytes.Clone(b[:n])); err == nil && a.Decode(opened) == nil && a.Type == gossip.Echo && a.Nonce == nonce {
				break
			}
			got += n
		}
		r.tried, r.in, r.out = r.tried+1, r.in+len(sealed), r.out+got
		if got > 3*len(sealed) {
			t.Errorf("%v of %d bytes is answered by %d", p.Type, len(sealed), got)
		}
		if got > 0 {
			r.answered++
		} else {
			r.refused++
		}
	}
	f.under(t, func() {
		for _, boot := range []bool{false, true} {
			me := gossip.Entry{Key: own.Key(), ID: []byte(own), Version: gossip.Version{Incarnation: 1, Minor: 1}}
			ask(&gossip.Packet{Type: gossip.DiscoveryRequest, From: me, Nonce: 1, Boot: boot})
		}
		for _, p := range f.claims(own) {
			ask(&p)
		}
	})
}

// claims are what node own may say of the nodes of the zone to h0: that each has left, is dead, suspected, or
// in another version; and in its name.
func (f *fabric) claims(own gossip.ID) (all []gossip.Packet) {
	f.Helper()
	view, err := f.hosts[0].Members().View(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	h0, h4 := gossip.ID("h0@"+f.hosts[0].Addr()).Key(), gossip.ID("h4@"+f.hosts[4].Addr()).Key()
	for _, m := range view {
		id := gossip.ID(m.Name + "@" + m.Addr.String())
		now := gossip.Version{Incarnation: m.Version.Incarnation, Minor: m.Version.Minor}
		for _, v := range []gossip.Version{
			now, {Incarnation: now.Incarnation, Minor: now.Minor + 1}, {Incarnation: now.Incarnation, Minor: gossip.MaxMinor},
			{Incarnation: now.Incarnation + 1, Minor: 1}, {Incarnation: math.MaxInt64, Minor: 1}, {Incarnation: 1, Minor: 1},
		} {
			them := gossip.Reference{Key: id.Key(), Version: v}
			entry := gossip.Entry{Key: id.Key(), ID: []byte(id), Version: v}
			all = append(all,
				gossip.Packet{Type: gossip.Update, Leaves: []gossip.Departure{{Reference: them}}},
				gossip.Packet{Type: gossip.Update, Alives: []gossip.Entry{entry}},
				gossip.Packet{Type: gossip.Update, Suspicions: []gossip.Suspicion{{Reporter: own.Key(), Suspect: them}}},
				gossip.Packet{Type: gossip.Update, Suspicions: []gossip.Suspicion{{Reporter: h4, Suspect: them}}},
				gossip.Packet{Type: gossip.Probe, From: entry, Target: h0, Nonce: 1, About: gossip.Reference{Version: v}},
				gossip.Packet{Type: gossip.Echo, About: them, Nonce: 1},
				gossip.Packet{Type: gossip.Nack, About: them, Nonce: 1},
				gossip.Packet{Type: gossip.DiscoveryRequest, From: entry, Nonce: 1},
				gossip.Packet{Type: gossip.DiscoveryRequest, From: entry, Nonce: 1, Boot: true, Stealth: true},
				gossip.Packet{Type: gossip.DiscoveryReply, From: entry, Nonce: 1, Boot: true},
			)
		}
	}
	return all
}
