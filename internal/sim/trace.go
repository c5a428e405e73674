package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"reflect"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// what is the kind of a line of the trace.
type what uint8

const (
	arrived what = iota
	lost
	doubled
	stepped
	crashed
	restarted
	paused
	broke
	cut
	repaired
	partitioned
	healed
	called
	noted
)

var whatNames = [...]string{
	"<-", "loses", "gets twice", "is due", "crashes", "starts again", "is paused", "breaks with",
	"is cut from", "is repaired with", "partition", "all healed", "call", "notes",
}

const nobody NodeID = -1

// entry is a line of the trace, not yet written out.
type entry struct {
	at    core.Time
	event uint64
	what  what
	kind  Kind
	node  NodeID
	peer  NodeID
	bytes []byte // of the caller
	value any
	text  string
}

// kept is an entry with the head of its bytes.
type kept struct {
	entry
	size int
	head [DescribeBytes]byte
}

// trace adds an entry to the hash, to the lines kept, and to the writer.
func (w *World) trace(e entry) {
	e.at, e.event = w.now, w.events
	w.hash.line(&e)
	if len(w.ring) < cap(w.ring) {
		w.ring = w.ring[:len(w.ring)+1]
	}
	k := &w.ring[w.lines%uint64(cap(w.ring))]
	w.lines++
	k.entry, k.size = e, len(e.bytes)
	k.bytes = k.head[:copy(k.head[:], e.bytes)]
	if w.cfg.Trace != nil {
		fmt.Fprintln(w.cfg.Trace, w.format(k))
	}
}

// Lines returns the last lines of the trace, Config.Keep at most.
func (w *World) Lines() []string {
	var lines []string
	n := uint64(len(w.ring))
	for i := range n {
		lines = append(lines, w.format(&w.ring[(w.lines-n+i)%uint64(cap(w.ring))]))
	}
	return lines
}

func (w *World) format(k *kept) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v #%d", time.Duration(k.at), k.event)
	if k.node != nobody {
		b.WriteString(" " + w.Name(k.node))
	}
	b.WriteString(" " + whatNames[k.what])
	if k.peer != nobody {
		b.WriteString(" " + w.Name(k.peer))
	}
	if k.what <= doubled {
		b.WriteString(" " + k.kind.String())
	}
	if k.size > 0 {
		fmt.Fprintf(&b, " %d B", k.size)
		if w.cfg.Describe != nil {
			b.WriteString(": " + w.cfg.Describe(k.bytes))
		}
	}
	if k.value != nil {
		fmt.Fprintf(&b, " %T", k.value)
	}
	if k.text != "" {
		b.WriteString(" " + k.text)
	}
	return b.String()
}

// Hash returns the hash of all that has happened, and of all bytes sent.
func (w *World) Hash() uint64 { return w.hash.sum }

// hash is a running hash. It is not for adversaries.
type hash struct{ sum uint64 }

const (
	prime0 = 0x9e3779b97f4a7c15
	prime1 = 0xc2b2ae3d27d4eb4f
	prime2 = 0x165667b19e3779f9
	prime3 = 0xd6e8feb86659fd93
)

func (h *hash) mix(a, b uint64) {
	hi, lo := bits.Mul64(h.sum^a^prime0, b^prime1|1)
	h.sum = bits.RotateLeft64(h.sum, 23) ^ hi ^ lo
}

func (h *hash) line(e *entry) {
	h.mix(uint64(e.at), uint64(e.what)<<8|uint64(e.kind))
	h.mix(uint64(uint32(e.node))<<32|uint64(uint32(e.peer)), uint64(len(e.bytes)))
	if e.text != "" {
		h.bytes([]byte(e.text))
	}
}

func (h *hash) send(p *path, b []byte) {
	h.mix(uint64(uint32(p.from))<<32|uint64(uint32(p.to)), uint64(len(b)))
	h.bytes(b)
}

// notify adds a control value by its type: what it holds may be an address, which
// no seed determines.
func (h *hash) notify(p *path, value any) {
	h.mix(uint64(uint32(p.from))<<32|uint64(uint32(p.to)), prime2)
	if value != nil {
		h.bytes([]byte(reflect.TypeOf(value).String()))
	}
}

// bytes adds b, four lanes of eight bytes at once.
func (h *hash) bytes(b []byte) {
	a0, a1, a2, a3 := uint64(prime0), uint64(prime1), uint64(prime2), uint64(prime3)
	for ; len(b) >= 32; b = b[32:] {
		a0 = bits.RotateLeft64(a0^binary.LittleEndian.Uint64(b), 29) * prime1
		a1 = bits.RotateLeft64(a1^binary.LittleEndian.Uint64(b[8:]), 31) * prime2
		a2 = bits.RotateLeft64(a2^binary.LittleEndian.Uint64(b[16:]), 33) * prime3
		a3 = bits.RotateLeft64(a3^binary.LittleEndian.Uint64(b[24:]), 37) * prime0
	}
	for i, c := range b {
		a0 = bits.RotateLeft64(a0^uint64(c)<<(8*(i&7)), 29) * prime1
	}
	h.mix(a0^bits.RotateLeft64(a1, 17), a2^bits.RotateLeft64(a3, 17))
}
