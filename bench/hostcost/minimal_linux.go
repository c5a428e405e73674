package main

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// lentMost is the chunks of a batch with MSG_ZEROCOPY: a packet of the kernel refers to at
// most 17 pieces of memory, and a chunk is up to three.
const lentMost = 5

// minimal is a host without a protocol: it sends what fits the window, and takes
// results in order.
type minimal struct {
	*socket
	inPlace bool // results are received straight into the vector
	lends   bool // MSG_ZEROCOPY
	most    int  // chunks of a batch

	heads, got []byte // of a batch
	room       []byte
}

func newMinimal(peer netip.AddrPort, inPlace, lends bool) (*minimal, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	s.toward(peer)
	if lends {
		if err := s.zerocopy(); err != nil {
			return nil, err
		}
	}
	m := &minimal{socket: s, inPlace: inPlace, lends: lends, most: batchMost, room: make([]byte, batchRoom)}
	if lends {
		m.most = lentMost
	}
	m.heads, m.got = make([]byte, batchMost*wire.HeaderSize), make([]byte, batchMost*wire.HeaderSize)
	for at := 0; at < len(m.heads); at += wire.HeaderSize {
		m.heads[at] = wire.Version<<4 | byte(wire.Contribution)
	}
	return m, nil
}

func (m *minimal) allreduce(in, out []byte) error {
	chunks := (len(in) + chunkBytes - 1) / chunkBytes
	for sent, done := 0, 0; done < chunks; {
		for sent < chunks {
			n := min(m.most, chunks-sent)
			if sent+n-done > hostlib.DefaultWindow {
				break
			}
			if err := m.sendBatch(in, sent, n); err != nil {
				return err
			}
			sent += n
		}
		n, err := m.take(out, done)
		if err != nil {
			return err
		}
		done += n
	}
	return m.confirm()
}

// chunk returns chunk n of a vector.
func chunk(v []byte, n int) []byte { return v[n*chunkBytes : min((n+1)*chunkBytes, len(v))] }

// sendBatch sends n chunks from first on.
func (m *minimal) sendBatch(in []byte, first, n int) error {
	m.outVectors = m.outVectors[:0]
	for i := range n {
		head := m.heads[i*wire.HeaderSize:][:wire.HeaderSize]
		binary.BigEndian.PutUint32(head[20:], uint32(first+i))
		m.outVectors = append(m.outVectors, vector(head), vector(chunk(in, first+i)))
	}
	flags := 0
	if m.lends {
		flags = unix.MSG_ZEROCOPY
		m.unconfirmed++
	}
	if err := m.send(min(packetBytes, wire.HeaderSize+len(in)), flags); err != nil {
		return err
	}
	if m.lends { // the headers are used again
		return m.confirm()
	}
	return nil
}

// take receives a batch whose first chunk is the next.
func (m *minimal) take(out []byte, next int) (n int, err error) {
	m.inVectors = m.inVectors[:0]
	if m.inPlace {
		for i := range min(batchMost, (len(out)-next*chunkBytes+chunkBytes-1)/chunkBytes) {
			m.inVectors = append(m.inVectors, vector(m.got[i*wire.HeaderSize:][:wire.HeaderSize]), vector(chunk(out, next+i)))
		}
	} else {
		m.inVectors = append(m.inVectors, vector(m.room))
	}
	bytes, size, err := m.receive()
	if err != nil {
		return 0, err
	}
	for at := 0; at < bytes; at += size {
		head := m.got[n*wire.HeaderSize:]
		if !m.inPlace {
			packet := m.room[at:min(at+size, bytes)]
			head = packet
			copy(chunk(out, next+n), packet[wire.HeaderSize:])
		}
		if got := binary.BigEndian.Uint32(head[20:]); got != uint32(next+n) {
			return 0, fmt.Errorf("chunk %d came, and %d was the next", got, next+n)
		}
		n++
	}
	return n, nil
}
