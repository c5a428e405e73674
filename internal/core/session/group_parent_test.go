package session

import (
	"bytes"

	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/reduce"
)

// withExponent returns a copy of data with its exponent behind it, and parts
// undoes that.
func withExponent(data []byte, exponent int8) []byte {
	return append(bytes.Clone(data), byte(exponent))
}

func parts(b []byte) (data []byte, exponent int8) {
	return b[:len(b)-1], int8(b[len(b)-1])
}

type inFlight struct {
	to     int // rank, or parent
	packet []byte
}

func (w *world) send(to int, packet []byte) {
	copies := 1
	if w.faults {
		copies = []int{0, 1, 1, 1, 2}[w.rng.IntN(5)]
	}
	for range copies {
		w.wire = append(w.wire, inFlight{to, packet})
	}
}

// deliver takes any packet from the network.
func (w *world) deliver() {
	i := w.rng.IntN(len(w.wire))
	if !w.faults {
		i = 0
	}
	f := w.wire[i]
	w.wire = append(w.wire[:i], w.wire[i+1:]...)
	if f.to != parent {
		w.step(w.members[f.to], f.packet)
		return
	}
	var h wire.Header
	payload, _ := h.Decode(f.packet)
	if h.Epoch != w.epoch {
		return
	}
	if key := (chunkKey{h.Epoch, h.Chunk}); h.Type == wire.Contribution {
		w.contributed(key, &h, payload)
	} else {
		w.probed(key, &h)
	}
}

func (w *world) contributed(key chunkKey, h *wire.Header, payload []byte) {
	if w.taken[key] == nil {
		w.taken[key] = map[uint32][]byte{}
	}
	if _, have := w.taken[key][h.Lowest]; have {
		return
	}
	if sig, have := w.sigs[key]; have && sig != h.Signature {
		w.t.Fatalf("number %d is %+v and %+v", h.Chunk, sig, h.Signature)
	}
	w.sigs[key] = h.Signature
	w.taken[key][h.Lowest] = withExponent(payload, h.Exponent)
	if w.sinks[key] == nil {
		w.sinks[key] = map[uint32]bool{}
	}
	w.sinks[key][h.Lowest] = h.Flags&wire.Sink != 0
	if h.Flags&wire.Source != 0 {
		if first, twice := w.sources[key]; twice {
			w.t.Fatalf("number %d has the sources %d and %d", h.Chunk, first, h.Lowest)
		}
		w.sources[key] = h.Lowest
	}
	if len(w.taken[key]) < len(w.members) {
		return
	}
	if _, held := w.bits[h.Chunk]; held && h.Collective != wire.Barrier {
		w.t.Fatalf("number %d, whose result is held, is reduced again", h.Chunk)
	}
	w.results[key] = w.reduce(key, h.Signature)
	for r := range w.members {
		w.answer(key, r)
	}
}

func (w *world) reduce(key chunkKey, sig wire.Signature) []byte {
	if sig.PayloadSize() == 0 {
		return []byte{0}
	}
	if sig.Collective.Copies() {
		source, have := w.sources[key]
		if !have {
			w.t.Fatalf("number %d has no source", key.number)
		}
		return w.taken[key][source]
	}
	var in [][]byte
	var exponents []int8
	for r := range w.members {
		data, exponent := parts(w.taken[key][uint32(r)])
		in, exponents = append(in, data), append(exponents, exponent)
	}
	out := make([]byte, sig.PayloadSize())
	if sig.Element == reduce.Block32 {
		return withExponent(out, reduce.SumBlocks(out, in, exponents))
	}
	kernel, err := reduce.KernelOf(sig.Function, sig.Element)
	if err != nil {
		w.t.Fatal(err)
	}
	kernel(out, in)
	return withExponent(out, 0)
}

// answer sends the result of a chunk to a member.
func (w *world) answer(key chunkKey, rank int) {
	sig := w.sigs[key]
	h := w.header(key, wire.Result, rank)
	h.Signature = sig
	body, exponent := parts(w.results[key])
	if h.Exponent = exponent; w.sinks[key][uint32(rank)] {
		h.Flags = wire.Sink
	} else {
		body = nil
	}
	w.send(rank, packetOf(&h, body))
}

func (w *world) header(key chunkKey, t wire.Type, rank int) wire.Header {
	return wire.Header{Type: t, Group: 9, Epoch: key.epoch, Cookie: 7, Chunk: key.number, Child: uint16(rank)}
}

func packetOf(h *wire.Header, body []byte) []byte {
	b := make([]byte, wire.HeaderSize, wire.HeaderSize+len(body))
	h.Put(b)
	return append(b, body...)
}

func (w *world) probed(key chunkKey, h *wire.Header) {
	rank := int(h.Lowest)
	t := wire.Heard
	if _, finished := w.results[key]; finished {
		w.answer(key, rank)
		return
	}
	if _, have := w.taken[key][h.Lowest]; !have {
		t = wire.Want
	}
	answer := w.header(key, t, rank)
	w.send(rank, packetOf(&answer, nil))
}
