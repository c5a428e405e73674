package hostlib

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

func FuzzReadHello(f *testing.F) {
	h := hello{group: digest{1, 2, 3}, from: 3, to: 1, own: 4, of: 5, name: "job-17"}
	f.Add(h.bytes())
	f.Add(h.bytes()[:20])
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHello(r)
		if err != nil {
			if !errors.Is(err, errHello) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		if read := b[:len(b)-r.Len()]; !bytes.Equal(h.bytes(), read) {
			t.Errorf("%x was read as %+v", read, h)
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte{accepted, 0, 0, 0, 0, 0, 0, 0, 7, 0})
	f.Add([]byte{refused, 0, 0, 0, 0, 0, 0, 0, 0, 2, 'n', 'o'})
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		by, why, err := readAnswer(bytes.NewReader(b))
		switch {
		case err != nil:
			if by != 0 || why != "" {
				t.Errorf("%d and %q with %v", by, why, err)
			}
		case (b[0] == accepted) != (by != 0) || len(why) != int(b[9]):
			t.Errorf("%x was read as %d, %q", b, by, why)
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 9, 0, 0, 0, 2, 1, 2})
	f.Add([]byte{0, 1, 0, 1, 9})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var pool buffers
		rest := b
		for r := bufio.NewReader(bytes.NewReader(b)); ; {
			frame, err := readFrame(r, &pool)
			want := -1
			if len(rest) >= frameLength {
				want = int(binary.BigEndian.Uint32(rest))
			}
			malformed := len(rest) >= frameLength && (want == 0 || want > maxFrame)
			short := len(rest) < frameLength || len(rest) < frameLength+want
			switch {
			case err == nil && (malformed || short || !bytes.Equal(*frame, rest[frameLength:frameLength+want])):
				t.Fatalf("%x was read from %x", *frame, rest)
			case err == nil:
				rest = rest[frameLength+want:]
				pool.put(frame)
				continue
			case errors.Is(err, errFrame) != malformed:
				t.Errorf("%x: %v", rest, err)
			case !malformed && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
				t.Errorf("%x: %v", rest, err)
			}
			return
		}
	})
}
