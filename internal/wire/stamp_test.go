package wire

import (
	"testing"

	"pgregory.net/rapid"
)

// TestStampPutsWhatTheHeaderPuts: with a chunk's own fields, a stamp writes the
// bytes of the whole header.
func TestStampPutsWhatTheHeaderPuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		s := h.Stamp()
		h.Type = rapid.SampledFrom([]Type{Contribution, Result}).Draw(t, "another type")
		s = s.Of(h.Type)
		h.Flags = Flags(rapid.Byte().Draw(t, "other flags"))
		h.Chunk, h.ChunkElements, h.Exponent = rapid.Uint32().Draw(t, "another chunk"), rapid.Uint16().Draw(t, "its elements"), rapid.Int8().Draw(t, "its exponent")
		var want, got [HeaderSize]byte
		h.Put(want[:])
		s.Put(&got, h.Flags, h.Chunk, h.ChunkElements, h.Exponent)
		if got != want {
			t.Fatalf("% x\nwant % x", got, want)
		}
		if n, e := PeekChunk(got[:]); n != h.Chunk || e != h.Exponent {
			t.Fatalf("chunk %d, exponent %d, want %d and %d", n, e, h.Chunk, h.Exponent)
		}
	})
}

// TestStampFits: a changed bit shows, unless it is of a field that may differ.
func TestStampFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		s := h.Stamp()
		var b [HeaderSize]byte
		h.Put(b[:])
		if !s.Fits(b[:], h.Flags, h.ChunkElements) {
			t.Fatal("a header does not fit its own stamp")
		}
		fitsChunk := func() bool { return s.FitsChunk(b[:], h.Flags, h.Chunk, h.ChunkElements, h.Exponent) }
		if !fitsChunk() {
			t.Fatal("it does not fit its own chunk")
		}
		at := rapid.IntRange(0, HeaderSize-1).Draw(t, "byte")
		b[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		differs := at == 19 || at >= 20 && at < 24 || at >= 37
		if s.Fits(b[:], h.Flags, h.ChunkElements) != differs {
			t.Fatalf("with byte %d changed it fits: %v", at, !differs)
		}
		n, exponent := PeekChunk(b[:])
		if fitsChunk() != (differs && n == h.Chunk && exponent == h.Exponent) {
			t.Fatalf("with byte %d changed it fits the chunk: %v", at, fitsChunk())
		}
	})
}
