package attack_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/driver/peer"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/wire/greeting"
	"github.com/tributary-fabric/tributary/reduce"
	"github.com/tributary-fabric/tributary/topology"
)

// hello is a valid greeting of the attacker's to h0, with another's in its layout.
func hello(class peer.Class) (m message, other []byte) {
	g := greeting.Greeting{Class: uint8(class), From: mallory, Incarnation: 1, To: "h0", Known: 0, Call: 1}
	m = message{name: "greeting", bytes: g.Append(nil), fields: []field{
		{"magic", 0, 4}, {"version", 4, 1}, {"class", 5, 1}, {"path", 6, 1}, {"first", 7, 1}, {"incarnation", 8, 8},
		{"known incarnation", 16, 8}, {"call", 24, 8}, {"accepted", 32, 8}, {"joins", 40, 8},
		{"length of the caller", 48, 1}, {"caller", 49, 2}, {"length of the wanted", 51, 1}, {"wanted", 52, 2},
	}}
	g.From, g.To, g.Path, g.Joins, g.Known, g.Accepted = "h1", "h2", 1, 1, 1, 1
	return m, g.Append(nil)
}

// dial connects to a host: as a stranger (nil), or under TLS with a certificate.
func (f *fabric) dial(to string, as *pki.Source) (net.Conn, error) {
	raw, err := net.Dial("tcp", to)
	if err != nil {
		f.Fatal(err)
	}
	deadline, _ := f.ctx.Deadline()
	_ = raw.SetDeadline(deadline)
	if as == nil {
		return raw, nil
	}
	conn := tls.Client(raw, as.Client(pki.Want{Role: pki.Host, Name: "h0"}))
	if err := conn.Handshake(); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// exchange sends what it has to say, and returns all that is answered until the other side closes.
func (f *fabric) exchange(conn net.Conn, b []byte) []byte {
	f.Helper()
	defer conn.Close()
	if _, err := conn.Write(b); err == nil {
		_ = conn.(interface{ CloseWrite() error }).CloseWrite() // who is gone already reads nothing
	}
	answer, err := io.ReadAll(conn)
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		f.Fatalf("%q is neither refused nor closed", b)
	}
	return answer
}

// testGreetings: greetings to a host's listener, by a stranger, under TLS or not, and by mallory.
func (f *fabric) testGreetings(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 2))
	h := f.hosts[0]
	life, before := h.Incarnation(), h.Connections()
	f.under(t, func() {
		r := f.matrix.of("nothing", "host's listener, TCP: greetings")
		m, other := hello(peer.Control)
		for _, x := range append(m.forge(other, random), forged{what: "greeting as it was", bytes: m.bytes}) {
			conn, _ := f.dial(h.Addr(), nil)
			f.refusal(t, r, x, f.exchange(conn, x.bytes))
		}
		r = f.matrix.of("nothing", "host's listener, TCP: TLS")
		for _, x := range f.firstFlight(t).forge(nil, random) {
			conn, _ := f.dial(h.Addr(), nil)
			answer := f.exchange(conn, x.bytes)
			r.tried, r.in, r.out = r.tried+1, r.in+len(x.bytes), r.out+len(answer)
			if len(answer) > 0 && answer[0] == 22 {
				r.answered++ // a server's part of a handshake, which the stranger cannot finish
			} else {
				r.refused++
			}
		}
	})
	f.under(t, func() {
		r := f.matrix.of("a host's certificate", "host's listener, TCP: greetings")
		as := f.source(pki.Identity{Role: pki.Host, Name: mallory})
		m, other := hello(peer.Control)
		for _, x := range append(m.forge(other, random), forged{what: "greeting as it was", bytes: m.bytes}) {
			conn, err := f.dial(h.Addr(), as)
			if err != nil {
				t.Fatal(err)
			}
			f.refusal(t, r, x, f.exchange(conn, x.bytes))
		}
	})
	f.until("all are counted", func() bool {
		return h.Connections().Rejected-before.Rejected >= uint64(f.matrix.of("nothing", "host's listener, TCP: greetings").tried)
	})
	if h.Incarnation() != life {
		t.Errorf("h0 is in incarnation %d, before it was in %d", h.Incarnation(), life)
	}
}

// refusal notes what was answered to a greeting: only mallory, under its own name, and whom it
// wants is there, may be taken.
func (f *fabric) refusal(t *testing.T, r *tally, x forged, answer []byte) {
	t.Helper()
	r.tried, r.in, r.out = r.tried+1, r.in+len(x.bytes), r.out+len(answer)
	a, err := greeting.ReadAnswer(bytes.NewReader(answer))
	if err != nil || a.Code != greeting.Accept {
		r.refused++
		if len(answer) > 3*max(len(x.bytes), greeting.MaxSize/3) {
			t.Errorf("%s: refused by %d bytes", x.what, len(answer))
		}
		return
	}
	r.answered++
	g, err := greeting.Read(bytes.NewReader(x.bytes))
	if r.attacker == "nothing" || err != nil || g.From != mallory || g.To != "h0" {
		t.Errorf("%s is accepted: %+v, %v", x.what, g, err)
	}
}

// firstFlight is the first of a TLS handshake.
func (f *fabric) firstFlight(t *testing.T) *message {
	t.Helper()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		_ = tls.Client(ours, &tls.Config{ServerName: "h0", MinVersion: tls.VersionTLS13}).Handshake() // it fails when the pipe is closed
	}()
	b := make([]byte, 1<<14)
	n, err := theirs.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return &message{name: "client hello", bytes: b[:n], fields: append([]field{
		{"record type", 0, 1}, {"record version", 1, 2}, {"record length", 3, 2}, {"handshake type", 5, 1}, {"handshake length", 6, 3},
		{"version", 9, 2}, {"random", 11, 32}, {"length of the session", 43, 1}, {"session", 44, 32}, {"length of the ciphers", 76, 2}, {"ciphers", 78, 8},
	}, words(n, 16)[6:]...)}
}

// frame is a frame of a connection.
func frame(service byte, stream uint32, payload []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload)))
	b = binary.BigEndian.AppendUint32(b, uint32(service)<<24|stream)
	b = append(b, payload...)
	return append(b, make([]byte, -len(b)&7)...)
}

// digest is that of the group "plain", which everybody can compute who knows its members, as
// docs/protocol.md says.
func (f *fabric) digest() []byte {
	h := sha256.New()
	text := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s)))
		h.Write([]byte(s))
	}
	members := f.groups[0].comms[0].Members()
	text("tributary group 1")
	text("plain")
	types := topology.AllTypes() &^ topology.Types(1<<reduce.Block32)
	_ = binary.Write(h, binary.BigEndian, [5]uint32{uint32(len(members)), 1432, hostlib.DefaultWindow, uint32(topology.AllFunctions()), uint32(types)})
	for _, m := range members {
		text(m.Host)
		text(m.Addr)
	}
	text("on the tree")
	return h.Sum(nil)
}

// wordMessages are the messages about streams, docs/protocol.md, with the group of the victims.
func (f *fabric) wordMessages() (all []message) {
	head := []field{{"kind", 0, 1}, {"zero", 1, 3}, {"to", 4, 4}, {"from", 8, 4}, {"own", 12, 8}}
	add := func(name string, kind byte, to, from uint32, own uint64, rest []byte, fields ...field) {
		b := binary.BigEndian.AppendUint32([]byte{kind, 0, 0, 0}, to)
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, from), own)
		all = append(all, message{name, append(b, rest...), append(slices.Clone(head), fields...)})
	}
	open := binary.BigEndian.AppendUint32(f.digest(), 1) // rank 1, which is h1
	open = binary.BigEndian.AppendUint32(open, 0)
	open = append(binary.BigEndian.AppendUint64(open, 0), "plain"...)
	add("open", 1, 0, 5, 77, open, field{"digest", 20, 32}, field{"child's rank", 52, 4}, field{"parent's rank", 56, 4}, field{"parent's communicator", 60, 8}, field{"name", 68, 5})
	add("accept", 2, 1, 5, 77, nil)
	add("refuse", 3, 1, 0, 0, []byte("no"), field{"reason", 20, 2})
	add("confirm", 4, 1, 0, 0, nil)
	add("last word", 5, 1, 0, 0, []byte{9}, field{"frame", 20, 1})
	add("close", 6, 1, 5, 0, nil)
	notice := binary.BigEndian.AppendUint64(f.digest(), 1)
	notice = append(notice, make([]byte, 8)...)
	add("revoke", 7, 0, 0, 0, notice, field{"group", 20, 32}, field{"life", 52, 8}, field{"by", 60, 4}, field{"reason", 64, 4})
	return all
}

// testFrames: what mallory says on connections that are its own. Every message about streams, and of
// every stream that is not its own; of the connection itself; and of no service.
func (f *fabric) testFrames(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 3))
	h := f.hosts[0]
	as := f.source(pki.Identity{Role: pki.Host, Name: mallory})
	m, _ := hello(peer.Control)
	binary.BigEndian.PutUint64(m.bytes[8:], f.last) // no earlier incarnation of its own is taken any more
	says := func(r *tally, what string, frames ...[]byte) []byte {
		conn, err := f.dial(h.Addr(), as)
		if err != nil {
			t.Fatal(err)
		}
		f.calls++
		binary.BigEndian.PutUint64(m.bytes[24:], 1<<62+f.calls)
		b := slices.Concat(append([][]byte{m.bytes}, frames...)...)
		answer := f.exchange(conn, b)
		r.tried, r.in, r.out = r.tried+1, r.in+len(b), r.out+len(answer)
		if len(answer) > 3*len(b)+100 {
			t.Errorf("%s: %d bytes are answered by %d", what, len(b), len(answer))
		}
		return answer
	}
	f.under(t, func() {
		r := f.matrix.of("a host's certificate", "host's listener, frames")
		for _, m := range f.wordMessages() {
			all := append(m.forge(nil, random), forged{what: m.name + " as it was", bytes: m.bytes})
			for _, x := range fewer(all) {
				answer := says(r, x.what, frame(1, 0, x.bytes))
				if bytes.Contains(answer, []byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 5}) {
					t.Errorf("%s is accepted: %q", x.what, answer)
					r.answered++
					continue
				}
				r.refused++
				if x.what == "open as it was" && !bytes.Contains(answer, []byte("not the caller's parent")) {
					t.Errorf("an open with the group's own digest is answered by %q", answer)
				}
			}
		}
		own := message{name: "service 0", bytes: []byte{1}, fields: []field{{"kind", 0, 1}}}
		head := message{name: "frame", bytes: frame(1, 9, []byte("12345678")), fields: []field{{"length", 0, 4}, {"service", 4, 1}, {"stream", 5, 3}}}
		for _, x := range own.forge(nil, random) {
			says(r, x.what, frame(0, 0, x.bytes))
			r.refused++
		}
		for _, x := range head.forge(nil, random) {
			says(r, x.what, x.bytes)
			r.refused++
		}
		for kind := range byte(10) { // of the connection itself, with bytes of any length
			for _, n := range []int{0, 1, 3, 7, 20, 200} {
				says(r, "service 0", frame(0, 0, append([]byte{kind}, bytes.Repeat([]byte{0xff}, n)...)))
				r.refused++
			}
		}
		var frames [][]byte // of streams that are another's: each is dropped, and the connection stands
		for _, m := range golden(t, "../../wire/testdata/golden-frames", 0) {
			for _, x := range append(m.forge(nil, random), forged{bytes: m.bytes}) {
				for stream := range uint32(4) {
					frames = append(frames, frame(1, stream+1, append(make([]byte, 7), x.bytes...)))
				}
			}
		}
		says(r, "frames of others' streams", frames...)
		r.tried, r.refused = r.tried+len(frames)-1, r.refused+len(frames)
	})
}

// fewer returns all cases, or some with -short.
func fewer[T any](all []T) (some []T) {
	if !testing.Short() {
		return all
	}
	for i := 0; i < len(all); i += 8 {
		some = append(some, all[i])
	}
	return some
}
