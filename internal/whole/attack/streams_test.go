package attack_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/rudp"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/driver/udp"
)

// recorder keeps the last datagram of each kind that a caller sends.
type recorder struct {
	transport.Conn
	mu   sync.Mutex
	sent map[rudp.Kind][]byte
}

func (p *recorder) WriteBatch(messages []transport.Message) error {
	p.mu.Lock()
	for i := range messages {
		messages[i].Each(func(head, body []byte) {
			b := append(bytes.Clone(head), body...)
			if kind, _, err := rudp.KindOf(b); err == nil {
				p.sent[kind] = b
			}
		})
	}
	p.mu.Unlock()
	return p.Conn.WriteBatch(messages)
}

// datagramFields are those of the kinds of datagrams of streams.
var datagramFields = map[rudp.Kind][]field{
	rudp.Connect: {{"version, kind", 0, 1}, {"flags", 1, 1}, {"most bytes", 2, 2}, {"window", 4, 4}, {"from", 8, 8}, {"cookie's moment", 16, 8}, {"cookie", 24, 24}},
	rudp.Retry:   {{"version, kind", 0, 1}, {"flags", 1, 1}, {"to", 8, 8}, {"cookie", 16, 32}},
	rudp.Accept:  {{"version, kind", 0, 1}, {"flags", 1, 1}, {"most bytes", 2, 2}, {"window", 4, 4}, {"to", 8, 8}, {"from", 16, 8}},
	rudp.Data: {
		{"version, kind", 0, 1}, {"flags", 1, 1}, {"bytes of the acknowledgement", 2, 2}, {"number", 4, 4}, {"to", 8, 8}, {"lowest", 16, 4},
		{"offset", 20, 8}, {"acknowledgement or stream", 28, 4}, {"stream", 32, 8},
	},
	rudp.Reset:   {{"version, kind", 0, 1}, {"flags", 1, 1}, {"zero", 2, 6}, {"to", 8, 8}},
	rudp.Unknown: {{"version, kind", 0, 1}, {"flags", 1, 1}, {"zero", 2, 6}, {"to", 8, 8}},
}

// testStreams: a stream over UDP, as rails of kind udp have. Who has another address sends every datagram of
// it with every field forged, with the stream's own IDs, which it cannot know. Answers are no larger than what
// they answer, and the stream has the bytes that were written.
func (f *fabric) testStreams(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 6))
	at := netip.MustParseAddrPort("127.0.0.1:0")
	listener, err := udp.Listen(at, udp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var echoes sync.WaitGroup
	defer func() {
		_ = listener.Close()
		echoes.Wait()
	}()
	echoes.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			echoes.Go(func() {
				_, _ = io.Copy(c, c) // until the caller's end
				_ = c.(*udp.Conn).Abort()
			})
		}
	})
	p := &recorder{sent: map[rudp.Kind][]byte{}}
	to := netip.MustParseAddrPort(listener.Addr().String())
	stream, err := udp.Dial(f.ctx, at, to, udp.Config{Wrap: func(c transport.Conn) transport.Conn { p.Conn = c; return p }})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Abort()
	text := make([]byte, 1<<16)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	echo := func() {
		go func() { _, _ = stream.Write(text) }() // what is not written is not read
		got := make([]byte, len(text))
		if _, err := io.ReadFull(stream, got); err != nil || !bytes.Equal(got, text) {
			t.Fatalf("the stream is another: %v", err)
		}
	}
	echo()
	p.mu.Lock()
	connect, data := p.sent[rudp.Connect], p.sent[rudp.Data]
	p.mu.Unlock()
	short := func(kind rudp.Kind, size int) []byte {
		b := make([]byte, size)
		b[0] = data[0]&0xf0 | byte(kind)
		copy(b[8:16], data[8:16])
		return b
	}
	accept := short(rudp.Accept, 24)
	copy(accept[2:8], connect[2:8])
	all := map[rudp.Kind][]byte{
		rudp.Connect: connect, rudp.Data: data, rudp.Accept: accept,
		rudp.Retry: short(rudp.Retry, 48), rudp.Reset: short(rudp.Reset, 16), rudp.Unknown: short(rudp.Unknown, 16),
	}
	socket := f.socket(t)
	r := f.matrix.of("nothing", "host's listener, UDP")
	fence, b := uint64(1)<<63, make([]byte, 1<<16)
	// say sends a datagram, and one after it for an ID that nobody has, which is answered later.
	say := func(what string, datagram []byte) {
		fence++
		unknown := short(rudp.Data, len(data))
		binary.BigEndian.PutUint64(unknown[8:], fence)
		for _, x := range [][]byte{datagram, unknown} {
			if _, err := socket.WriteToUDPAddrPort(x, to); err != nil {
				t.Fatal(err)
			}
		}
		got := 0
		for {
			n, _, err := socket.ReadFromUDPAddrPort(b)
			if err != nil {
				t.Fatalf("%s: what comes after it is not answered: %v", what, err)
			}
			if kind, id, err := rudp.KindOf(b[:n]); err == nil && kind == rudp.Unknown && id == rudp.ID(fence) {
				break
			}
			got += n
		}
		r.tried, r.in, r.out = r.tried+1, r.in+len(datagram), r.out+got
		if got > len(datagram) {
			t.Errorf("%s: %d bytes are answered by %d", what, len(datagram), got)
		}
		if got > 0 {
			r.answered++
		} else {
			r.refused++
		}
	}
	for kind := rudp.Connect; kind <= rudp.Unknown; kind++ {
		m := message{name: kind.String(), bytes: all[kind], fields: datagramFields[kind]}
		for _, x := range fewer(append(m.forge(nil, random), forged{what: m.name + " as it was", bytes: m.bytes})) {
			say(x.what, x.bytes)
		}
	}
	echo()
}
