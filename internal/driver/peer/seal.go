package peer

import (
	"encoding/binary"
	"net"
	"sync"
	"time"
)

const (
	recordHead = 5
	handshake  = 22 // the first byte of a TLS connection
	sealMost   = 256 << 10
)

// sealBuffers are what ciphertext is read into.
var sealBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// seal is what TLS runs over. Beside the handshake it writes to memory, so that who
// sends encrypts without waiting, and what is encrypted is then written as any other
// bytes. Reading, it passes on one TLS record at a time: between two records TLS holds
// nothing, so that one can wait for the kernel alone.
type seal struct {
	net.Conn

	// Of who reads.
	in       *[64 << 10]byte // nil: nothing is there
	from, to int             // what is there
	early    []byte          // bytes before those of the connection
	head     [recordHead]byte
	got      int // of head, if left is 0
	left     int // of the record

	mu       sync.Mutex
	isHeld   bool   // writes go to memory
	mayWrite uint64 // bytes, before used is called
	used     func() // nil: it was
	out      buffer
	written  int  // of out
	isPushed bool // out is being written, without the lock
}

// Read implements net.Conn.
func (s *seal) Read(b []byte) (int, error) {
	if s.from == s.to {
		if len(s.early) > 0 || s.in == nil {
			return s.direct(b)
		}
		n, err := s.Conn.Read(s.in[:])
		s.from, s.to = 0, n
		if n == 0 {
			return 0, err
		}
	}
	return s.pass(b), nil
}

// pass copies what is there, up to the end of the record's head, or of the record.
func (s *seal) pass(b []byte) int {
	there := s.in[s.from:s.to]
	n := copy(b, there[:min(len(there), s.part())])
	s.from += n
	s.passed(b[:n])
	return n
}

// direct reads without memory of its own, as in the handshake: who is not authenticated
// gets none.
func (s *seal) direct(b []byte) (n int, err error) {
	b = b[:min(len(b), s.part())]
	if len(s.early) > 0 {
		n = copy(b, s.early)
		if s.early = s.early[n:]; len(s.early) == 0 {
			s.early = nil // with what it lies in
		}
	} else {
		n, err = s.Conn.Read(b)
	}
	s.passed(b[:n])
	return n, err
}

// part returns the bytes up to the end of the record's head, or of the record.
func (s *seal) part() int {
	if s.left > 0 {
		return s.left
	}
	return recordHead - s.got
}

// passed notes bytes that TLS has.
func (s *seal) passed(b []byte) {
	if s.left > 0 {
		s.left -= len(b)
		return
	}
	s.got += copy(s.head[s.got:], b)
	if s.got == recordHead {
		s.got, s.left = 0, int(binary.BigEndian.Uint16(s.head[3:]))
	}
}

// between reports that TLS has all of the record that came last.
func (s *seal) between() bool { return s.left == 0 && s.got == 0 }

// hasRecord reports that a read of a record would not wait.
func (s *seal) hasRecord() bool {
	there := s.to - s.from
	return s.between() && there >= recordHead && there >= recordHead+int(binary.BigEndian.Uint16(s.in[s.from+3:]))
}

// room returns memory for ciphertext, when there is none to read.
func (s *seal) room() []byte {
	if s.in == nil {
		s.in = sealBuffers.Get().(*[64 << 10]byte)
	}
	return s.in[:]
}

// more reads what is there behind what TLS does not have yet, which is less than a record.
func (s *seal) more() error {
	room := s.room()
	s.from, s.to = 0, copy(room, room[s.from:s.to])
	n, err := s.Conn.Read(room[s.to:])
	s.to += n
	return err
}

// rest gives the memory back while nothing is there.
func (s *seal) rest() {
	if s.from == s.to && s.in != nil {
		sealBuffers.Put(s.in)
		s.in = nil
	}
}

// Write implements net.Conn.
func (s *seal) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isHeld {
		return s.Conn.Write(b)
	}
	if n := uint64(len(b)); n < s.mayWrite {
		s.mayWrite -= n
	} else if s.used != nil {
		s.used()
		s.used = nil
	}
	if s.isPushed {
		s.out.keep() // a push writes what is there
	}
	s.out.append(b)
	return len(b), nil
}

// hold has writes go to memory from now on. It calls used, which must not wait, once so many
// bytes were written.
func (s *seal) hold(most uint64, used func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isHeld, s.mayWrite, s.used = true, most, used
}

// unsent returns the bytes that are encrypted and not written.
func (s *seal) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.out.b) - s.written
}

// try writes as much as the kernel takes.
func (s *seal) try(w tryWriter) (left int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.out.b) > s.written {
		var n int
		n, err = w.Write(s.out.b[s.written:])
		s.took(n)
	}
	return len(s.out.b) - s.written, err
}

func (s *seal) took(n int) {
	if s.written += n; s.written == len(s.out.b) {
		s.out.release()
		s.written = 0
	}
}

// push writes all, and may wait for that.
func (s *seal) push(within time.Duration) error {
	for {
		s.mu.Lock()
		out := s.out.b[s.written:]
		s.isPushed = len(out) > 0
		s.mu.Unlock()
		if len(out) == 0 {
			return nil
		}
		_ = s.Conn.SetWriteDeadline(time.Now().Add(within))
		n, err := s.Conn.Write(out[:min(len(out), sealMost)]) // it grows behind, at most
		s.mu.Lock()
		s.isPushed = false
		s.took(n)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
}
