package peer

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzParse: what is read as a frame is written as the same bytes but for its padding,
// takes no more than is there, and all else is malformed or not there yet.
func FuzzParse(f *testing.F) {
	f.Add(appendFrame(nil, 3, 7, []byte("how"), []byte(" do you do")))
	f.Add(appendHead(nil, 3, 7, 1<<20))
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 64 << 10
		s, frame, size, ok, err := parse(b, most)
		switch {
		case err != nil:
			if !errors.Is(err, ErrFrame) {
				t.Errorf("%v is no ErrFrame", err)
			}
		case !ok:
			if size <= len(b) || size > padded(most+segmentMore) {
				t.Errorf("of %d bytes a frame of %d is not there", len(b), size)
			}
		default:
			again := appendFrame(nil, s, frame.Stream, nil, frame.Bytes)
			if len(again) != size || size > len(b) || !bytes.Equal(again[:HeadSize+len(frame.Bytes)], b[:HeadSize+len(frame.Bytes)]) {
				t.Errorf("%x is read as %d/%d %x", b[:size], s, frame.Stream, frame.Bytes)
			}
		}
	})
}
