package session

import (
	"net/netip"

	"github.com/tributary-fabric/tributary/internal/wire"
)

// send adds a packet without a payload.
func (o *Output) send(to netip.AddrPort) *Send {
	o.Sends = append(o.Sends, Send{To: to})
	return &o.Sends[len(o.Sends)-1]
}

// place adds a packet of s with that payload, by itself or at the end of a batch,
// and returns where its header is to be written.
func (o *Output) place(s *Session, body []byte) *[wire.HeaderSize]byte {
	if !o.TakesBatches || len(body) == 0 || !s.link.Offload() {
		send := o.send(s.link.Parent)
		send.Body = body
		return &send.Head
	}
	at := len(o.heads)
	o.heads = append(o.heads, noHeader[:]...)
	head := (*[wire.HeaderSize]byte)(o.heads[at:])
	if n := len(o.Sends); n > 0 && o.Sends[n-1].follows(s.link.Parent, body) {
		run := &o.Sends[n-1]
		run.Body = run.Body[:len(run.Body)+len(body)]
		run.Heads = o.heads[at-len(run.Heads):]
		return head
	}
	// Its capacity, up to the end of the vector or of Session.turned, is that of the payloads behind it.
	o.Sends = append(o.Sends, Send{To: s.link.Parent, Body: body, Size: len(body), Heads: o.heads[at:]})
	return head
}

var noHeader [wire.HeaderSize]byte

// follows reports whether body lies right behind the payloads of a batch to the
// same switch, and may be the next of them.
func (s *Send) follows(to netip.AddrPort, body []byte) bool {
	n := len(s.Body)
	return s.Size > 0 && n%s.Size == 0 && len(body) <= s.Size && cap(s.Body) > n && &s.Body[:n+1][n] == &body[0] && s.To == to
}
