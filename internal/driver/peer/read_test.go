package peer

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/iotest"
	"time"
)

// stream is a connection that others cannot be made of: something that is read.
type stream struct {
	net.Conn
	r io.Reader
}

func (s stream) Read(b []byte) (int, error)     { return s.r.Read(b) }
func (stream) Close() error                     { return nil }
func (stream) SetWriteDeadline(time.Time) error { return nil }

// received returns what a reader hands on of a stream, and its error. Bursts are kept to
// the end, so that no memory is used twice before.
func received(t testing.TB, class Class, r io.Reader, keeps bool) ([][]byte, error) {
	var all [][]byte
	w := &witness{keeps: keeps}
	w.onFrames = func(_ *Conn, frames []Frame) {
		for _, f := range frames {
			if keeps {
				all = append(all, f.Bytes)
			} else {
				all = append(all, bytes.Clone(f.Bytes))
			}
		}
	}
	h := &Host{}
	h.services[testService].Store(&service{newGate(), w})
	p := h.newPath(1)
	p.connected(stream{r: r})
	p.class, p.conn = class, &Conn{host: h, id: p.id, class: class}
	err := p.read()
	for i := range all {
		all[i] = bytes.Clone(all[i])
	}
	for _, b := range w.bursts {
		b.Release()
	}
	if n, size := h.bursts.out(); n != 0 || size != 0 {
		t.Fatalf("%d bursts of %d bytes are lent", n, size)
	}
	return all, err
}

// TestReader: frames of all sizes, however the stream is cut, and whether or not their
// memory is kept.
func TestReader(t *testing.T) {
	var want [][]byte
	for i, size := range []int{1, 54, 4096, 1, 64 << 10, 3, 1<<20 + 100, 7, 3 << 19, 1} {
		want = append(want, bytes.Repeat([]byte{byte(i + 1)}, size))
	}
	for range 300 {
		want = append(want, []byte("a small one"))
	}
	var all []byte
	for _, b := range want {
		all = appendFrame(all, testService, 0, nil, b)
	}
	for name, r := range map[string]func() io.Reader{
		"whole":     func() io.Reader { return bytes.NewReader(all) },
		"halves":    func() io.Reader { return iotest.HalfReader(bytes.NewReader(all)) },
		"data, EOF": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(all)) },
		"with a cut": func() io.Reader {
			return io.MultiReader(bytes.NewReader(all[:len(all)-5]), bytes.NewReader(all[len(all)-5:]))
		},
	} {
		for _, keeps := range []bool{false, true} {
			got, err := received(t, Large, r(), keeps)
			if !errors.Is(err, io.EOF) || len(got) != len(want) {
				t.Fatalf("%s: %d frames of %d, %v", name, len(got), len(want), err)
			}
			for i := range want {
				if !bytes.Equal(got[i], want[i]) {
					t.Fatalf("%s: frame %d has changed", name, i)
				}
			}
		}
	}
}

// FuzzReader: against cutting the stream by hand.
func FuzzReader(f *testing.F) {
	two := appendFrame(appendFrame(nil, testService, 1, nil, []byte("one")), testService, 2, nil, make([]byte, 5000))
	f.Add(two, byte(3), true)
	f.Add(two, byte(200), false)
	f.Add(make([]byte, 8), byte(1), false)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, byte(1), true)
	f.Fuzz(func(t *testing.T, b []byte, step byte, keeps bool) {
		var want [][]byte
		malformed := false
		for rest := b; ; {
			s, frame, size, ok, err := parse(rest, frameMost[Data])
			if malformed = err != nil; malformed || !ok {
				break
			}
			if s == itself {
				t.Skip("the connection itself is the host's")
			}
			if s == testService {
				want = append(want, frame.Bytes)
			}
			rest = rest[size:]
		}
		got, err := received(t, Data, &slow{b, int(step) + 1}, keeps)
		if malformed != errors.Is(err, ErrFrame) || !malformed && !errors.Is(err, io.EOF) {
			t.Fatalf("%v, malformed: %v", err, malformed)
		}
		if len(got) != len(want) {
			t.Fatalf("%d frames, want %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d has changed", i)
			}
		}
	})
}

// slow reads so many bytes at a time.
type slow struct {
	rest []byte
	step int
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(s.step, len(b))], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
