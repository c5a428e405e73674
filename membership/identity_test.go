package membership

import (
	"crypto/ed25519"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

var (
	zone7  = []byte{0, 0, 0, 7, 0}
	future = uint64(1) << 62 // a century ahead
)

func sourceOf(t testing.TB, c *TLS) *pki.Source {
	t.Helper()
	s, err := pki.Load(pki.Files{Cert: c.Cert, Key: c.Key, CA: c.CA, Revoked: c.Revoked}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func idOf(t testing.TB, name string) gossip.ID {
	t.Helper()
	id, err := gossip.MakeID(name, netip.MustParseAddrPort("10.0.0.1:7946"))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func identityOf(t testing.TB, s *pki.Source, zone []byte, name string, incarnation uint64) *identity {
	t.Helper()
	k, err := newIdentity(s, zone, idOf(t, name), incarnation)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// signedAt returns the record of a birth whose signer says that it is another time.
func signedAt(t testing.TB, s *pki.Source, name string, incarnation, at uint64) (record []byte) {
	t.Helper()
	o := gossip.Origin{ID: []byte(idOf(t, name)), Incarnation: incarnation, Key: [32]byte{1}, Signed: at}
	var err error
	if o.Signature, o.Certificates, err = s.Sign(o.Statement(zone7)); err != nil {
		t.Fatal(err)
	}
	return o.Append(nil)
}

// TestBirth: a record proves the one life of the one node in the one zone for which the
// certificate of its host has signed it.
func TestBirth(t *testing.T) {
	of, others := certificates(t, "n1", "n2"), certificates(t, "n1")
	one, two, stranger := sourceOf(t, of("n1")), sourceOf(t, of("n2")), sourceOf(t, others("n1"))
	now := uint64(time.Now().UnixNano())
	soon, late := now+uint64(peering.MaxAhead-time.Hour), now+uint64(peering.MaxAhead+time.Hour)
	me := identityOf(t, two, zone7, "n2", now)
	for _, c := range []struct {
		what        string
		of          *identity
		name        string
		incarnation uint64
		ok          bool
	}{
		{"its own", identityOf(t, one, zone7, "n1", now), "n1", now, true},
		{"of another process of its host", identityOf(t, one, zone7, "n1#2", now), "n1#2", now, true},
		{"of a clock that was ahead", identityOf(t, one, zone7, "n1", soon), "n1", soon, true},
		{"of a clock that was further ahead", identityOf(t, one, zone7, "n1", late), "n1", late, false},
		{"of a life in a century", identityOf(t, one, zone7, "n1", future), "n1", future, false},
		{"of the last life that there can be", identityOf(t, one, zone7, "n1", ^uint64(0)), "n1", ^uint64(0), false},
		{"by another host", identityOf(t, two, zone7, "n1", now), "n1", now, false},
		{"by another authority", identityOf(t, stranger, zone7, "n1", now), "n1", now, false},
		{"of another zone", identityOf(t, one, []byte{0, 0, 0, 7, 1}, "n1", now), "n1", now, false},
		{"of another life", identityOf(t, one, zone7, "n1", now), "n1", now + 1, false},
		{"of another node", identityOf(t, one, zone7, "n1", now), "n2", now, false},
		{"signed in a century", &identity{record: signedAt(t, one, "n1", now, future)}, "n1", now, false},
		{"of before the certificate was", &identity{record: signedAt(t, one, "n1", 1, 1)}, "n1", 1, false},
		{"signed before the certificate was, of a life that began later", &identity{record: signedAt(t, one, "n1", now, 1)}, "n1", now, true},
		{"of a life that began before the certificate, signed again", identityOf(t, one, zone7, "n1", 1), "n1", 1, true},
	} {
		for range 2 { // also what is remembered
			if _, ok := me.Verify(idOf(t, c.name), c.incarnation, c.of.Birth()); ok != c.ok {
				t.Errorf("a record %s: taken %v, want %v", c.what, ok, c.ok)
			}
		}
	}
	record := identityOf(t, one, zone7, "n1", now).Birth()
	for i := range record {
		changed := slices.Clone(record)
		changed[i] ^= 1
		if _, ok := me.Verify(idOf(t, "n1"), now, changed); ok {
			t.Fatalf("a record with byte %d of %d changed is taken", i, len(record))
		}
	}
	key, _ := me.Verify(idOf(t, "n2"), now, me.Birth())
	if s := me.Sign([]byte("so")); !me.Check(key, []byte("so"), s) || me.Check(key, []byte("not so"), s) {
		t.Error("a life's signature is checked wrongly")
	}
}

// attacker holds the keys of a zone's datagrams, and a socket.
type attacker struct {
	t    *testing.T
	wire wire
	dir  *member.Directory
	conn *net.UDPConn
	id   gossip.ID
}

func newAttacker(t *testing.T, keys []Key) *attacker {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	r, err := ring(&Config{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	a := &attacker{t: t, dir: member.NewDirectory(), conn: conn}
	a.id, err = gossip.MakeID("x", conn.LocalAddr().(*net.UDPAddr).AddrPort())
	if err != nil {
		t.Fatal(err)
	}
	a.wire = wire{codec: member.NewCodec(a.dir), ring: r}
	return a
}

func (a *attacker) index(id gossip.ID) member.Index {
	i := a.dir.Add(id)
	a.dir.Hold(i)
	return i
}

// send sends a message to a node, and returns the size of its datagrams.
func (a *attacker) send(to *Node, m *member.Message) (size int) {
	a.wire.datagrams(m, func(b []byte) {
		size += len(b)
		if _, err := a.conn.WriteToUDPAddrPort(b, to.Addr()); err != nil {
			a.t.Fatal(err)
		}
	})
	return size
}

// drain asks whether a node is there, and returns what has come before its answer, which
// comes after what it does with all that was sent to it before.
func (a *attacker) drain(to *Node) (size int) {
	a.t.Helper()
	const last = 0xdead
	a.send(to, &member.Message{
		Type: gossip.Probe, From: member.Entry{Node: a.index(a.id), Version: gossip.Version{Incarnation: 1, Minor: 1}},
		Target: to.id.Key(), Nonce: last, About: member.Entry{Node: member.Nobody},
	})
	if err := a.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		a.t.Fatal(err)
	}
	for b := make([]byte, 1<<16); ; {
		n, _, err := a.conn.ReadFromUDPAddrPort(b)
		if err != nil {
			a.t.Fatal(err)
		}
		a.index(to.id)
		in, err := a.wire.takeDatagram(slices.Clone(b[:n]))
		if err != nil {
			a.t.Fatal(err)
		}
		if m := in.Message; m != nil && m.Type == gossip.Echo && m.Nonce == last {
			return size
		}
		size += n
	}
}

// TestForgedDatagrams: who has a zone's keys and no certificate of a node cannot raise that
// one's incarnation, announce its leave, or accuse it in others' names.
func TestForgedDatagrams(t *testing.T) {
	of := certificates(t, "n0", "n1", "n2")
	keys := []Key{{1, [32]byte{1}}}
	nodes := zoneOf(t, 3, func(_ int, c *Config) { c.TLS, c.Keys = of(c.Name), keys })
	agree(t, nodes...)
	settle(t, nodes...)
	a := newAttacker(t, keys)
	victim, version := a.index(nodes[1].id), gossip.Version{Incarnation: nodes[1].incarnation, Minor: 1}
	a.index(nodes[2].id)
	liar, err := newIdentity(sourceOf(t, of("n2")), nodes[2].zoneMark(), nodes[1].id, ^uint64(0))
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range nodes {
		for _, v := range []gossip.Version{{Incarnation: ^uint64(0), Minor: 1}, {Incarnation: version.Incarnation, Minor: gossip.MaxMinor}} {
			from := member.Entry{Node: victim, Version: v, Proof: liar.Sign([]byte("tributary member minor"))}
			a.send(to, &member.Message{Type: gossip.DiscoveryRequest, From: from, Nonce: 1, Boot: true})
			a.send(to, &member.Message{Type: gossip.Echo, From: from, Nonce: 1})
			a.send(to, &member.Message{Type: gossip.DiscoveryReply, From: from, Nonce: 1, Boot: true, Birth: liar.Birth()})
			a.send(to, &member.Message{
				Type: gossip.Probe, From: member.Entry{Node: a.index(a.id), Version: version}, Target: to.id.Key(), About: member.Entry{Node: member.Nobody, Version: v},
			})
			a.send(to, &member.Message{Type: gossip.Update, Leaves: []member.Departure{{Node: victim, Version: v}}})
		}
		a.send(to, &member.Message{Type: gossip.Update, Leaves: []member.Departure{{Node: victim, Version: version, Proof: liar.Sign(nil)}}})
		a.send(to, &member.Message{Type: gossip.Update, Suspicions: []member.Suspicion{
			{Reporter: nodes[2].id.Key(), Suspect: victim, Version: version, Proof: liar.Sign(nil)},
			{Reporter: nodes[0].id.Key(), Suspect: victim, Version: version},
		}})
		a.drain(to)
	}
	for _, n := range nodes {
		view, err := n.View(within(t))
		if err != nil || len(view) != 3 {
			t.Fatalf("%s sees %v, %v", n.Name(), view, err)
		}
		for i, m := range view {
			if m.Version.Incarnation != nodes[i].incarnation || m.Version.Minor != 1 {
				t.Errorf("%s sees %v", n.Name(), m)
			}
		}
	}
}

// TestDatagramsAreNotAmplified: what a request draws is at most three times as large, in a
// zone without keys, too, however many nodes it has.
func TestDatagramsAreNotAmplified(t *testing.T) {
	of := certificates(t, "n0", "n1")
	keys := []Key{{1, [32]byte{1}}}
	for what, nodes := range map[string][]*Node{
		"without keys":      zoneOf(t, 12, nil),
		"with certificates": zoneOf(t, 2, func(_ int, c *Config) { c.TLS, c.Keys = of(c.Name), keys }),
	} {
		agree(t, nodes...)
		a := newAttacker(t, nodes[0].cfg.Keys)
		from := member.Entry{Node: a.index(a.id), Version: gossip.Version{Incarnation: 1, Minor: 1}}
		other := member.Entry{Node: a.index(nodes[1].id)}
		for k, m := range []*member.Message{
			{Type: gossip.DiscoveryRequest, Boot: true}, {Type: gossip.DiscoveryRequest}, {Type: gossip.DiscoveryRequest, Stealth: true},
			{Type: gossip.Probe, Target: nodes[0].id.Key(), About: member.Entry{Node: member.Nobody}}, {Type: gossip.Relay, About: other},
		} {
			m.From, m.Nonce = from, uint32(k+1)
			sent := a.send(nodes[0], m)
			if drawn := a.drain(nodes[0]); drawn > 3*sent || drawn == 0 && m.Type != gossip.Relay {
				t.Errorf("%s: a %v of %d bytes draws %d", what, m.Type, sent, drawn)
			}
		}
	}
}

// TestProvenZone: nodes with certificates see each other join, leave, die and come back.
func TestProvenZone(t *testing.T) {
	of := certificates(t, "n0", "n1", "n2", "n3")
	keys := []Key{{1, [32]byte{1}}}
	proven := func(_ int, c *Config) { c.TLS, c.Keys = of(c.Name), keys }
	nodes := zoneOf(t, 4, proven)
	agree(t, nodes...)
	settle(t, nodes...)
	w := follow(t, nodes[1])
	if err := nodes[3].Leave(within(t), 7); err != nil {
		t.Fatal(err)
	}
	if x := waitFor(t, w, Left, "n3"); x.Cause != Departed || x.Exit == nil || *x.Exit != 7 {
		t.Errorf("it has left, and %v", x)
	}
	shut(t, nodes[2])
	if x := waitFor(t, w, Left, "n2"); x.Cause != Failed {
		t.Errorf("it was closed, and %v", x)
	}
	again := Config{Name: "n2", Bootstrap: []string{nodes[0].Addr().String()}}
	proven(2, &again)
	nodes[2] = join(t, again)
	agree(t, nodes[:3]...)
}

// BenchmarkBirth is what a life costs who meets it, for the first time and when its record
// comes again, and what its signature costs.
func BenchmarkBirth(b *testing.B) {
	dir := b.TempDir()
	id := pki.Identity{Role: pki.Host, Name: "n1"}
	files, err := pki.Init(dir, id)
	if err != nil {
		b.Fatal(err)
	}
	s := sourceOf(b, &TLS{Cert: files[2], Key: files[3], CA: files[0]})
	now := uint64(time.Now().UnixNano())
	b.Run("first", func(b *testing.B) {
		b.StopTimer()
		for i := range b.N {
			k := identityOf(b, s, zone7, "n1", now+uint64(i))
			b.StartTimer()
			if _, ok := k.Verify(idOf(b, "n1"), now+uint64(i), k.Birth()); !ok {
				b.Fatal("it is not taken")
			}
			b.StopTimer()
		}
		b.ReportMetric(float64(len(identityOf(b, s, zone7, "n1", now).Birth())), "record-bytes")
	})
	k := identityOf(b, s, zone7, "n1", now)
	name, record := idOf(b, "n1"), k.Birth()
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			k.Verify(name, now, record)
		}
	})
	statement := make([]byte, 50)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			k.Sign(statement)
		}
	})
	signature, public := k.Sign(statement), member.LifeKey(k.key.Public().(ed25519.PublicKey))
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			k.Check(public, statement, signature)
		}
	})
}

// TestFreshCertificates: a birth that is signed as soon as there is a certificate counts also where the clock
// is behind that of the signer; and the next one is later, though the signer's clock was set back.
func TestFreshCertificates(t *testing.T) {
	a := newAuthority(t)
	a.write("n1-ca.pem", a.PEM())
	files := &TLS{Cert: filepath.Join(a.dir, "n1.pem"), Key: filepath.Join(a.dir, "n1-key.pem"), CA: filepath.Join(a.dir, "n1-ca.pem")}
	now := time.Now()
	a.issueFrom("n1", now)
	s := sourceOf(t, files)
	k := identityOf(t, s, zone7, "n1", uint64(now.UnixNano()))
	at := func(ahead time.Duration) uint64 { return uint64(now.Add(ahead).UnixNano()) }
	if _, err := k.origin(signedAt(t, s, "n1", at(0), at(10*time.Second))); err != nil {
		t.Errorf("signed by a clock that is 10 s ahead: %v", err)
	}
	if _, err := k.origin(signedAt(t, s, "n1", at(-2*time.Minute), at(-time.Minute))); err == nil {
		t.Error("signed before the certificate was good, and it counts")
	}
	var o gossip.Origin
	if err := o.Decode(k.record); err != nil {
		t.Fatal(err)
	}
	o.Signed = at(10 * time.Minute)
	before := o.Append(nil)
	record, err := k.sign(&o)
	if err != nil || !k.Later(record, before) {
		t.Errorf("what is signed after the clock was set back is later: %v, %v", k.Later(record, before), err)
	}
}
