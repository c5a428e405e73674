package rail

import "fmt"

// took notes that this side has room again. A CREDIT has totals since the session began, so
// that a later one makes up for one that is lost.
func (p *Peer) took(n heap) {
	p.taken.bytes += n.bytes
	p.taken.heads += n.heads
}

// extra is how many envelopes of requests that go First the other side may send beyond others.
func extra(heads uint64) uint64 { return heads / 4 }

// mostLent is how many times MaxHeads envelopes are lent.
const mostLent = 15

// lend lets the other side send more envelopes where it can send none, and a receive that goes First
// waits: its message may be behind those that are here, which nobody receives before.
func (p *Peer) lend() {
	most := uint64(p.cfg.MaxHeads)
	if p.came.heads-p.reported.heads < most+extra(most) || p.lent >= mostLent*most {
		return
	}
	for i := range p.box.waiting {
		for r := p.box.waiting[i].first; r != nil; r = r.links.next {
			if r.First {
				p.lent += most
				return
			}
		}
	}
}

// report sends a CREDIT when half of the room for envelopes that are not First, or of that for bytes,
// has been used and is free again. Room that messages occupy for long does not count.
func (p *Peer) report() {
	p.lend()
	n := heap{p.taken.bytes, min(p.taken.heads+p.lent, p.came.heads)}
	most := uint64(p.cfg.MaxHeads)
	room := most - min(most, p.came.heads-n.heads)
	gain := n.heads - p.reported.heads
	isDue := n.bytes-p.reported.bytes >= uint64(p.cfg.MaxUnexpected+1)/2 || gain > 0 && gain >= (room+1)/2
	if isDue || p.mustReport {
		p.reported, p.mustReport = n, false
		h := &p.control(kindCredit).head
		h.words[fieldSize], h.words[fieldHeads] = n.bytes, n.heads
	}
}

// credited takes CREDIT.
func (p *Peer) credited(h *head) error {
	n := heap{h.words[fieldSize], h.words[fieldHeads]}
	if n.bytes > p.sent.bytes || n.heads > p.sent.heads {
		return fmt.Errorf("%w: CREDIT of %d bytes in %d messages, of %d in %d", ErrMalformed, n.bytes, n.heads, p.sent.bytes, p.sent.heads)
	}
	p.returned = heap{max(n.bytes, p.returned.bytes), max(n.heads, p.returned.heads)}
	return nil
}

// Largest of the buffers that are kept for later, and how many of a size.
const (
	smallestSpare = 6 // 64 bytes
	largestSpare  = 16
	maxSpares     = 64
)

// spares are the core's own requests and buffers, for later use.
type spares struct {
	sends   []*SendRequest
	recvs   []*RecvRequest
	buffers [largestSpare + 1][][]byte // by the logarithm of their size
}

// send returns a request.
func (s *spares) send() *SendRequest {
	if n := len(s.sends); n > 0 {
		r := s.sends[n-1]
		s.sends = s.sends[:n-1]
		return r
	}
	return new(SendRequest)
}

// receive returns a request.
func (s *spares) receive() *RecvRequest {
	if n := len(s.recvs); n > 0 {
		r := s.recvs[n-1]
		s.recvs = s.recvs[:n-1]
		return r
	}
	return new(RecvRequest)
}

// recv takes a request back, with its buffer.
func (s *spares) recv(r *RecvRequest) {
	s.give(r.buffer)
	*r = RecvRequest{}
	if len(s.recvs) < maxSpares {
		s.recvs = append(s.recvs, r)
	}
}

// take returns an empty buffer for n bytes.
func (s *spares) take(n int) []byte {
	k := smallestSpare
	for 1<<k < n {
		k++
	}
	if k > largestSpare {
		return make([]byte, 0, n)
	}
	if all := s.buffers[k]; len(all) > 0 {
		s.buffers[k] = all[:len(all)-1]
		return all[len(all)-1][:0]
	}
	return make([]byte, 0, 1<<k)
}

// give takes a buffer back.
func (s *spares) give(b []byte) {
	for k := smallestSpare; k <= largestSpare; k++ {
		if cap(b) == 1<<k && len(s.buffers[k]) < maxSpares {
			s.buffers[k] = append(s.buffers[k], b)
		}
	}
}
