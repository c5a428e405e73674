package rail

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// describe returns what a fragment is.
func describe(b []byte) string {
	var h head
	body, err := h.parse(b)
	if err != nil {
		return err.Error()
	}
	s := h.kind.String()
	names := [...]string{"seq", "context", "r", "tag", "size", "from", "to", "region", "key", "at", "heads"}
	for _, f := range layouts[h.kind].fields {
		if f != fieldKey && h.words[f] != 0 {
			s += fmt.Sprintf(" %s%x", names[f], h.words[f])
		}
	}
	if len(body) > 0 {
		s += fmt.Sprintf(" [%d]", len(body))
	}
	return s
}

// fill returns n bytes of message m.
func fill(n int, m byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + m
	}
	return b
}

// aliases reports whether a is a part of b.
func aliases(a, b []byte) bool {
	for i := range b {
		if len(a) > 0 && &b[i] == &a[0] {
			return true
		}
	}
	return false
}

func same(a, b []byte) bool { return bytes.Equal(a, b) }

// even chooses paths in turn, each with a window.
type even struct {
	window   int // 0: evenWindow
	up       uint8
	last     int
	inFlight [MaxRails]int
}

const evenWindow = 1 << 20

func (e *even) Up(i int, _ uint64) { e.up |= 1 << i; e.inFlight[i] = 0 }
func (e *even) Down(i int)         { e.up &^= 1 << i }
func (e *even) ChooseOf(size, _ int, _ core.Time) (int, bool) {
	for n := range MaxRails {
		i := (e.last + 1 + n) % MaxRails
		if e.up&(1<<i) != 0 && (e.inFlight[i] == 0 || e.inFlight[i]+size <= cmp.Or(e.window, evenWindow)) {
			e.last = i
			return i, true
		}
	}
	return 0, false
}
func (e *even) Sent(i, size int, _ core.Time)       { e.inFlight[i] += size }
func (e *even) Acked(i, size int, _ core.Time)      { e.inFlight[i] -= size }
func (e *even) Delay(int, time.Duration, core.Time) {}
func (e *even) Measured(int) Measured               { return Measured{} }

// edge is a change of a request's state.
type edge struct{ side, from, to string }

// stateOf returns the state of a receive, as the table names it.
func stateOf(r *RecvRequest) string {
	if r.state == resetting && r.isThere {
		return "overtaken"
	}
	return r.state.String()
}

// observe notes the states of a side's requests, and what has become of them when the function
// that it returns is called.
func (w *world) observe(side uint8) (changed func()) {
	if w.edges == nil {
		return func() {}
	}
	p := w.peers[side]
	sends, recvs := map[*SendRequest]string{}, map[*RecvRequest]string{}
	for i := range p.sends.places {
		if s := p.sends.places[i].item; s != nil && s.state != eager {
			sends[s] = s.state.String()
		}
	}
	for i := range p.recvs.places {
		if r := p.recvs.places[i].item; r != nil {
			recvs[r] = stateOf(r)
		}
	}
	return func() {
		for s, from := range sends {
			w.edges[edge{Sender, from, s.state.String()}]++
		}
		for r, from := range recvs {
			w.edges[edge{Receiver, from, stateOf(r)}]++
		}
	}
}
