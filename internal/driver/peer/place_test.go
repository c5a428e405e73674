package peer

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"
)

// placer is a service that has places for frames: their payload begins with their number.
type placer struct {
	pathWitness
	refuses map[uint32]int // frames that have no place, from which time on that it is asked
	asked   map[uint32]int
	places  map[uint32][]byte
	taken   map[uint32]Frame // what was handed on, with a copy of its bytes
	order   []uint32
}

func newPlacer() *placer {
	s := &placer{pathWitness: *newPathWitness(), refuses: map[uint32]int{}, asked: map[uint32]int{}, places: map[uint32][]byte{}, taken: map[uint32]Frame{}}
	s.onFrames = func(_ *Conn, frames []Frame) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range frames {
			number := binary.BigEndian.Uint32(f.Bytes)
			s.order = append(s.order, number)
			s.taken[number] = Frame{Bytes: bytes.Clone(f.Bytes), Rest: f.Rest}
		}
	}
	return s
}

func (s *placer) Place(_ *Conn, begin []byte, size, at int, read func([]byte)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := binary.BigEndian.Uint32(begin)
	s.asked[number]++
	if n, is := s.refuses[number]; is && s.asked[number] >= n {
		return false
	}
	if s.places[number] == nil {
		s.places[number] = bytes.Clone(begin)
	}
	place := append(s.places[number], make([]byte, size-len(s.places[number]))...)
	read(place[at:])
	s.places[number] = place
	return true
}

// payloadOf returns the payload of a frame.
func payloadOf(number uint32, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7) + byte(number) + byte(i>>8)
	}
	binary.BigEndian.PutUint32(b, number)
	return b
}

// joined joins two hosts by one path, the sender's.
func joined(t *testing.T, class Class, trust func(string) func(*Config)) (out *pathWitness, in *placer, path *Path) {
	w := newTown()
	out, in = newPathWitness(), newPlacer()
	settle := func(name string, s Handler) *Host {
		h, _ := w.settle(t, name, 1, func(c *Config) {
			trust(name)(c)
			c.Handlers = map[Service]Handler{Messages: s}
		})
		return h
	}
	a, b := settle("a", out), settle("b", in)
	a.Hold("b", class, b.Addr())
	t.Cleanup(func() { a.Release("b", class, b.Addr()) })
	await(t, "a path", func() bool { return len(out.up(class)) == 1 && len(in.up(class)) == 1 })
	return out, in, out.up(class)[0]
}

// TestPlaced: frames of all sizes come whole and in order, whether their service has a place for them
// or not; of one that has none any more the begin comes.
func TestPlaced(t *testing.T) {
	eachTrust(t, func(t *testing.T, trust func(string) func(*Config)) {
		out, in, path := joined(t, Fragment, trust)
		if runtime.GOOS != "linux" {
			t.Skip("nothing is placed on this system")
		}
		sizes := []int{8, 40, BeginSize, 4000, placeLeast + BeginSize, 5001, 64 << 10, 100_003, 256<<10 + 24, 40, 1<<20 + 5, 300_002, 1 << 20, 64}
		for i, size := range sizes {
			in.mu.Lock()
			switch i % 4 {
			case 1:
				in.refuses[uint32(i)] = 1
			case 2:
				in.refuses[uint32(i)] = 2
			}
			in.mu.Unlock()
			if err := path.Send(&Send{Service: Messages, Body: payloadOf(uint32(i), size), Number: uint64(i + 1)}); err != nil {
				t.Fatal(err)
			}
			path.Flush()
		}
		await(t, "acknowledgements", func() bool { _, ok := out.outcome(uint64(len(sizes))); return ok })
		in.mu.Lock()
		defer in.mu.Unlock()
		placed := 0
		for i, size := range sizes {
			number := uint32(i)
			f, want := in.taken[number], payloadOf(number, size)
			if in.order[i] != number {
				t.Fatalf("frames come in the order %v", in.order)
			}
			switch {
			case f.Rest > 0:
				placed++
				if place := in.places[number]; !bytes.Equal(f.Bytes, want[:BeginSize]) || len(f.Bytes)+f.Rest != size || !bytes.Equal(place, want) {
					t.Errorf("%d: of %d bytes, %d and %d have come, or others", i, size, len(f.Bytes), f.Rest)
				}
			case in.places[number] != nil: // a part was placed
				if !bytes.Equal(f.Bytes, want[:BeginSize]) || in.refuses[number] == 0 {
					t.Errorf("%d: %d bytes are handed on of a frame that was dropped", i, len(f.Bytes))
				}
			case !bytes.Equal(f.Bytes, want):
				t.Errorf("%d: of %d bytes, %d have come, or others", i, size, len(f.Bytes))
			}
		}
		if placed < 4 {
			t.Errorf("%d frames were placed", placed)
		}
	})
}

// TestPathEndsWithinAFrame: a path stalls in the middle of a frame that is placed, and ends. Nobody
// is asked for a place after that, nor handed the frame, and it is not acknowledged.
func TestPathEndsWithinAFrame(t *testing.T) {
	_, in, path := joined(t, Fragment, func(string) func(*Config) { return func(*Config) {} })
	if runtime.GOOS != "linux" {
		t.Skip("nothing is placed on this system")
	}
	payload := payloadOf(7, 256<<10)
	half := appendFrame(nil, Messages, 0, nil, payload)[:100<<10]
	if _, err := path.raw.Write(half); err != nil {
		t.Fatal(err)
	}
	n := len(half) - HeadSize
	await(t, "a half", func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return len(in.places[7]) > n && bytes.Equal(in.places[7][:n], payload[:n])
	})
	taken := in.up(Fragment)[0]
	path.Break(errNowhere)
	await(t, "the end", func() bool { return len(in.up(Fragment)) == 0 || in.up(Fragment)[0] != taken })
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.taken) > 0 || taken.taken.Load() != 0 {
		t.Errorf("%d frames are handed on, %d are taken", len(in.taken), taken.taken.Load())
	}
	if !bytes.Equal(in.places[7][n:], make([]byte, len(payload)-n)) {
		t.Error("more is placed than has come")
	}
}
