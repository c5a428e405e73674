package members

import (
	"net"
	"sync/atomic"
)

// Bytes of the headers that are counted with each datagram, and with each
// segment of a connection, and the payload of the largest segment.
const (
	DatagramHeader = 20 + 8
	SegmentHeader  = 20 + 20 + 12
	SegmentPayload = 1500 - SegmentHeader
)

// Meter counts what one node sends.
type Meter struct {
	datagrams, datagramBytes atomic.Uint64
	writes, writeBytes       atomic.Uint64
}

// Traffic is a reading of a Meter, or the sum of several. Bytes include headers.
type Traffic struct {
	Datagrams     uint64 `json:"datagrams"`
	DatagramBytes uint64 `json:"datagram_bytes"`
	Writes        uint64 `json:"writes"` // to connections
	WriteBytes    uint64 `json:"write_bytes"`
}

// Datagram counts a datagram of so many bytes.
func (m *Meter) Datagram(payload int) {
	m.datagrams.Add(1)
	m.datagramBytes.Add(uint64(payload + DatagramHeader))
}

// Write counts a write of so many bytes to a connection.
func (m *Meter) Write(payload int) {
	segments := (payload + SegmentPayload - 1) / SegmentPayload
	m.writes.Add(1)
	m.writeBytes.Add(uint64(payload + segments*SegmentHeader))
}

// Read returns what was counted so far.
func (m *Meter) Read() Traffic {
	return Traffic{
		Datagrams: m.datagrams.Load(), DatagramBytes: m.datagramBytes.Load(),
		Writes: m.writes.Load(), WriteBytes: m.writeBytes.Load(),
	}
}

// Add returns the sums of t and u.
func (t Traffic) Add(u Traffic) Traffic {
	return Traffic{t.Datagrams + u.Datagrams, t.DatagramBytes + u.DatagramBytes, t.Writes + u.Writes, t.WriteBytes + u.WriteBytes}
}

// Sub returns what was counted between u and t.
func (t Traffic) Sub(u Traffic) Traffic {
	return Traffic{t.Datagrams - u.Datagrams, t.DatagramBytes - u.DatagramBytes, t.Writes - u.Writes, t.WriteBytes - u.WriteBytes}
}

// Bytes returns the bytes of all that was sent.
func (t Traffic) Bytes() uint64 { return t.DatagramBytes + t.WriteBytes }

// meteredConn counts what is written to a connection.
type meteredConn struct {
	net.Conn
	meter *Meter
}

func (c *meteredConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.meter.Write(n)
	}
	return n, err
}
