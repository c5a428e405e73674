package attack_test

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// tap is a member's data socket in the hands of who has the network's view: it sees what is sent and
// what comes, sends from the member's address, and delivers packets from any address.
type tap struct {
	transport.Conn
	mu       sync.Mutex
	sent     []byte         // the last contribution
	to       netip.AddrPort // where it went
	came     []byte         // the last result
	delivers [][]byte       // that come next
	from     netip.AddrPort // from whom
	taken    atomic.Int64   // of delivers, by the member
}

func (p *tap) WriteBatch(messages []transport.Message) error {
	p.mu.Lock()
	for i := range messages {
		m := &messages[i]
		m.Each(func(head, body []byte) {
			if b := slices.Concat(head, body); wire.Type(b[0]&15) == wire.Contribution {
				p.sent, p.to = b, m.To
			}
		})
	}
	p.mu.Unlock()
	return p.Conn.WriteBatch(messages)
}

func (p *tap) ReadBatch(packets []transport.Packet, until time.Time) (int, error) {
	p.mu.Lock()
	n := min(len(p.delivers), len(packets))
	for i := range n {
		packets[i] = transport.Packet{Data: p.delivers[i], From: p.from}
	}
	p.delivers = p.delivers[n:]
	p.mu.Unlock()
	if n > 0 {
		p.taken.Add(int64(n))
		return n, nil
	}
	n, err := p.Conn.ReadBatch(packets, until)
	for _, x := range packets[:n] {
		size := len(x.Data)
		if x.Size != 0 {
			size = min(size, x.Size)
		}
		if wire.Type(x.Data[0]&15) == wire.Result {
			p.mu.Lock()
			p.came = slices.Clone(x.Data[:size])
			p.mu.Unlock()
		}
	}
	return n, err
}

// seen returns the last contribution, where it went, and the last result.
func (p *tap) seen() (sent []byte, to netip.AddrPort, came []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent), p.to, slices.Clone(p.came)
}

// send sends a datagram from the member's address.
func (p *tap) send(to netip.AddrPort, b []byte) {
	_ = p.Conn.WriteBatch([]transport.Message{{To: to, Body: b}}) // its only error is that it is closed
}

// deliver has packets come from an address.
func (p *tap) deliver(from netip.AddrPort, packets [][]byte) {
	p.mu.Lock()
	p.from, p.delivers = from, append(p.delivers, packets...)
	p.mu.Unlock()
	p.Wake()
}
