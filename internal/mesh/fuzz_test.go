package mesh

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzGreeting: what is read as a greeting is written as the same bytes, and all
// else is an error.
func FuzzGreeting(f *testing.F) {
	g := greeting{3, Peer{"b", 5}, Peer{"a", 9}}
	f.Add(g.bytes())
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		g, err := readGreeting(in)
		if err != nil {
			if !errors.Is(err, ErrGreeting) {
				t.Errorf("%v is no ErrGreeting", err)
			}
			return
		}
		if took := b[:len(b)-in.Len()]; !bytes.Equal(g.bytes(), took) {
			t.Errorf("%q is read as %+v, which is %q", took, g, g.bytes())
		}
	})
}

// FuzzAnswer: the same for answers.
func FuzzAnswer(f *testing.F) {
	f.Add(answer(7, taken, ""))
	f.Add(answer(7, refused, "no"))
	f.Add(answer(7, earlier, "no"))
	f.Add(answer(7, former, "no"))
	f.Fuzz(func(t *testing.T, b []byte) {
		incarnation, err := readAnswer(bytes.NewReader(b))
		switch {
		case err == nil:
			if want := answer(incarnation, taken, ""); !bytes.HasPrefix(b, want) {
				t.Errorf("%q is read as %q", b, want)
			}
		case !errors.Is(err, ErrGreeting) && !errors.Is(err, ErrRefused):
			t.Errorf("%v is neither", err)
		}
	})
}
