package hostlib

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/revoke"
)

// FuzzReadWord: what is read as a word is written as the same bytes, and all else is
// malformed.
func FuzzReadWord(f *testing.F) {
	f.Add((&word{kind: opens, from: 3, own: 4, hello: hello{group: digest{1, 2, 3}, rank: 3, of: 1, met: 5, name: "job-17"}}).bytes())
	f.Add((&word{kind: accepts, to: 3, from: 1, own: 4}).bytes())
	f.Add((&word{kind: refuses, to: 3, rest: []byte("no")}).bytes())
	f.Add((&word{kind: closes, from: 3}).bytes())
	f.Add((&word{kind: revokes, rest: make([]byte, revoke.NoticeSize)}).bytes())
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := readWord(b)
		if err != nil {
			if !errors.Is(err, errWord) {
				t.Errorf("an error of another kind: %v", err)
			}
			return
		}
		if got := w.bytes(); !bytes.Equal(got, b) {
			t.Errorf("%x was read as %+v, which is %x", b, w, got)
		}
	})
}
