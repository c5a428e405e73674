package transport

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// maxDatagram is the most bytes of a UDP datagram's payload.
const maxDatagram = 1<<16 - 1 - udpHeader

// plain moves one datagram a system call, by what every system has.
type plain struct {
	socket *net.UDPConn
	tally  *tally
	room   []byte // of the datagram that was received last
	there  bool   // room holds one that was not given away
	size   int    // its bytes
	from   netip.AddrPort

	mu    sync.Mutex
	whole []byte // of one that is sent: head and body in one piece; guarded by mu
}

// openPlain opens a socket on local, and returns where it is.
func openPlain(local netip.AddrPort, c Config, t *tally) (*plain, netip.AddrPort, error) {
	network := "udp6"
	if local.Addr().Is4() {
		network = "udp4"
	}
	socket, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, netip.AddrPort{}, err
	}
	p := &plain{socket: socket, tally: t, room: make([]byte, maxDatagram), whole: make([]byte, 0, maxDatagram)}
	if c.ReceiveBuffer > 0 {
		if err := p.enlarge(c.ReceiveBuffer); err != nil {
			return nil, netip.AddrPort{}, errors.Join(err, socket.Close())
		}
	}
	if c.SendBuffer > 0 {
		if err := socket.SetWriteBuffer(c.SendBuffer); err != nil {
			return nil, netip.AddrPort{}, errors.Join(err, socket.Close())
		}
	}
	bound := socket.LocalAddr().(*net.UDPAddr).AddrPort()
	return p, netip.AddrPortFrom(bound.Addr().Unmap(), bound.Port()), nil
}

func (p *plain) features() Features { return 0 }

func (p *plain) take(packets []Packet, last bool) (int, error) {
	if !p.there && last {
		if err := p.tryRead(); err != nil {
			return 0, err
		}
	}
	if !p.there || len(packets) == 0 {
		return 0, nil
	}
	p.there = false
	packets[0] = Packet{Data: p.room[:p.size:p.size], From: p.from}
	p.tally.in(1, p.size+overhead(p.from.Addr()))
	return 1, nil
}

// arm sets the deadline. The only error is that the socket is closed, which
// the read reports, too.
func (p *plain) arm(until time.Time) { _ = p.socket.SetReadDeadline(until) }

func (p *plain) wake() { _ = p.socket.SetReadDeadline(time.Unix(1, 0)) }

func (p *plain) pollSleep(time.Duration) error { return p.park() }

func (p *plain) park() error {
	p.tally.readCalls.Add(1)
	n, from, err := p.socket.ReadFromUDPAddrPort(p.room)
	if err != nil {
		return err
	}
	p.there, p.size, p.from = true, n, netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	return nil
}

func (p *plain) write(messages []Message) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range messages {
		m := &messages[i]
		m.Each(func(head, body []byte) {
			if err == nil {
				err = p.send(m.To, head, body)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *plain) send(to netip.AddrPort, head, body []byte) error {
	p.whole = append(append(p.whole[:0], head...), body...)
	p.tally.writeCalls.Add(1)
	_, err := p.socket.WriteToUDPAddrPort(p.whole, to)
	return p.tally.tried(len(p.whole)+overhead(to.Addr()), err)
}

func (p *plain) sendFrom(netip.Addr, int) bool { return false }

func (p *plain) enlarge(bytes int) error { return p.socket.SetReadBuffer(bytes) }

func (p *plain) overflowed() (uint64, bool) { return overflowed(p.socket) }

func (p *plain) granted() int { return granted(p.socket) }

func (p *plain) close() error { return p.socket.Close() }
