package transport

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// ErrWoken is returned by a ReadBatch that was ended by Wake, or that has dropped all that came.
var ErrWoken = errors.New("transport: woken")

// Packet is one datagram that was received, or a batch of them.
type Packet struct {
	Data []byte         // its payload: memory of the Conn, lent until its next ReadBatch
	From netip.AddrPort // the sender; never an IPv4 address in IPv6 form

	// Size, if not 0, says that Data are the payloads of several datagrams of
	// so many bytes each, one after the other, the last of which may be shorter.
	// There are such only where Config.Batches asked for them.
	Size int
}

// Message is one datagram to send, Head and Body one after the other, or
// several. They are gathered by the kernel, not copied into one buffer first;
// either may be empty.
type Message struct {
	To         netip.AddrPort
	Head, Body []byte

	// Size, if not 0, says that this is a batch of datagrams: Body has so many
	// bytes of each, one after the other, the last of which may have fewer; and
	// Head as many bytes of each, which go before these, or none at all.
	Size int
}

// Count returns how many datagrams m is.
func (m *Message) Count() int {
	if m.Size == 0 || len(m.Body) == 0 {
		return 1
	}
	return (len(m.Body) + m.Size - 1) / m.Size
}

// Each calls f with each of m's datagrams.
func (m *Message) Each(f func(head, body []byte)) {
	if m.Size == 0 {
		f(m.Head, m.Body)
		return
	}
	heads := len(m.Head) / m.Count()
	for head, rest := m.Head, m.Body; ; head = head[heads:] {
		n := min(m.Size, len(rest))
		f(head[:heads], rest[:n])
		if rest = rest[n:]; len(rest) == 0 {
			return
		}
	}
}

// Conn sends and receives datagrams in batches. ReadBatch and Close are for the one
// goroutine that owns it (Close also for others, once); the rest is safe for all.
type Conn interface {
	// LocalAddr returns the address that others send to.
	LocalAddr() netip.AddrPort

	// ReadBatch takes at least one packet and at most len(packets), and
	// returns how many; what the ReadBatch before it lent is given back. It
	// waits until one is there, until the moment until (the zero time: for
	// ever), or until Wake. What is there already is returned first, also after
	// the moment and after a Wake. Otherwise the error is
	// os.ErrDeadlineExceeded, ErrWoken, or net.ErrClosed.
	ReadBatch(packets []Packet, until time.Time) (int, error)

	// WriteBatch sends all messages, those to one destination in their order;
	// what the network refuses is dropped and counted. Messages to one
	// destination cost least when they follow each other. The only error is
	// net.ErrClosed. Head and Body are the caller's again when it returns.
	WriteBatch(messages []Message) error

	// SetSource has messages sent from an address of this machine, on which the Conn
	// receives, and over the interface of a number; zero: as routes have it. It reports
	// false where the system cannot do that, or the address is of the other family; then
	// nothing has changed.
	SetSource(source netip.Addr, device int) bool

	// Wake makes one ReadBatch return ErrWoken: the one that waits now or,
	// where none does, the next one that finds no datagram. Several Wakes
	// before that count as one.
	Wake()

	// Counters returns what was counted so far.
	Counters() Counters

	// ReceiveBuffer returns the bytes that the receive buffer may hold, as the
	// kernel accounts for them; 0 where that is unknown.
	ReceiveBuffer() int

	// Close ends the Conn; a ReadBatch that waits returns net.ErrClosed.
	Close() error
}

// Counters count the datagrams of one Conn. Bytes include the IP and the UDP
// header of each, without options: what a link carries above its own framing.
type Counters struct {
	PacketsIn, BytesIn   uint64
	PacketsOut, BytesOut uint64

	Refused    uint64 // messages that the network refused to send, or packets that have no key
	Overflowed uint64 // datagrams that found the receive buffer full, where the system reports

	ReadCalls  uint64 // system calls for datagrams, also those that found none
	WriteCalls uint64 // system calls that sent datagrams
	WaitCalls  uint64 // those that offered the processor to others, or slept
}

// Add returns the sums of c's and d's counts.
func (c Counters) Add(d Counters) Counters {
	return Counters{
		PacketsIn: c.PacketsIn + d.PacketsIn, BytesIn: c.BytesIn + d.BytesIn,
		PacketsOut: c.PacketsOut + d.PacketsOut, BytesOut: c.BytesOut + d.BytesOut,
		Refused: c.Refused + d.Refused, Overflowed: c.Overflowed + d.Overflowed,
		ReadCalls: c.ReadCalls + d.ReadCalls, WriteCalls: c.WriteCalls + d.WriteCalls, WaitCalls: c.WaitCalls + d.WaitCalls,
	}
}

// Bytes of the headers beneath a datagram's payload.
const (
	udpHeader  = 8
	ipv4Header = 20
	ipv6Header = 40
)

// overhead returns the bytes of the headers of a datagram to or from a.
func overhead(a netip.Addr) int {
	if a.Is4() || a.Is4In6() {
		return ipv4Header + udpHeader
	}
	return ipv6Header + udpHeader
}

// tally is Counters that one goroutine adds to and others read.
type tally struct {
	packetsIn, bytesIn   atomic.Uint64
	packetsOut, bytesOut atomic.Uint64
	refused, overflowed  atomic.Uint64

	readCalls, writeCalls, waitCalls atomic.Uint64
}

func (t *tally) in(packets, bytes int) {
	t.packetsIn.Add(uint64(packets))
	t.bytesIn.Add(uint64(bytes))
}

func (t *tally) out(packets, bytes int) {
	t.packetsOut.Add(uint64(packets))
	t.bytesOut.Add(uint64(bytes))
}

// tried counts what became of one datagram, of so many bytes with its headers. The only error is net.ErrClosed:
// what the network refused is dropped.
func (t *tally) tried(bytes int, err error) error {
	switch {
	case errors.Is(err, net.ErrClosed):
		return net.ErrClosed
	case err != nil:
		t.refused.Add(1)
	default:
		t.out(1, bytes)
	}
	return nil
}

func (t *tally) counters() Counters {
	return Counters{
		PacketsIn: t.packetsIn.Load(), BytesIn: t.bytesIn.Load(),
		PacketsOut: t.packetsOut.Load(), BytesOut: t.bytesOut.Load(),
		Refused: t.refused.Load(), Overflowed: t.overflowed.Load(),
		ReadCalls: t.readCalls.Load(), WriteCalls: t.writeCalls.Load(), WaitCalls: t.waitCalls.Load(),
	}
}
