package greeting

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var valid = Greeting{Class: 2, From: "b", Incarnation: 5, To: "a", Known: 6, Call: 7, Accepted: 8}

// TestGoldenBytes: the bytes of a greeting and of answers.
func TestGoldenBytes(t *testing.T) {
	want := "TRIB\x05\x02\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06" +
		"\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08" +
		"\x00\x00\x00\x00\x00\x00\x00\x00\x01b\x01a"
	if diff := cmp.Diff(want, string(valid.Append(nil))); diff != "" {
		t.Error(diff)
	}
	path := valid
	path.Path, path.First, path.Joins, path.Accepted = 3, true, 6, 0
	want = "TRIB\x05\x02\x03\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06" +
		"\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x00\x06\x01b\x01a"
	if diff := cmp.Diff(want, string(path.Append(nil))); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		Answer
		want string
	}{
		{Answer{Accept, 9, ""}, "\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00"},
		{Answer{Refuse, 9, "no"}, "\x01\x00\x00\x00\x00\x00\x00\x00\x00\x02no"}, // as in versions 1 and 2
		{Answer{Taken, 9, "no"}, "\x07\x00\x00\x00\x00\x00\x00\x00\x09\x02no"},
		{Answer{Outdated, 4, "no"}, "\x02\x00\x00\x00\x00\x00\x00\x00\x04\x02no"},
		{Answer{Named, 9, "a"}, "\x06\x00\x00\x00\x00\x00\x00\x00\x09\x01a"},
		{Answer{Ended, 9, "no"}, "\x08\x00\x00\x00\x00\x00\x00\x00\x09\x02no"},
		{Answer{Duplicate, 9, "no"}, "\x03\x00\x00\x00\x00\x00\x00\x00\x09\x02no"},
	} {
		if diff := cmp.Diff(c.want, string(c.Answer.Append(nil))); diff != "" {
			t.Error(diff)
		}
	}
}

// TestMalformed: what is no greeting is refused by an error that says why, and
// one of another version by an error that names both.
func TestMalformed(t *testing.T) {
	good := string(valid.Append(nil))
	for _, c := range []struct{ text, says string }{
		{"GET / HTTP/1.1\r\n\r\n", "not of the protocol"},
		{"TRIB\x02" + good[5:], "version 2 of the protocol between hosts, and this host speaks version 5"},
		{"TRIB\x03" + good[5:], "version 3 of the protocol between hosts, and this host speaks version 5"},
		{"TRIB\x04" + good[5:], "version 4 of the protocol between hosts, and this host speaks version 5"},
		{"TRIM\x01" + good[5:], "version 1 of the protocol between hosts, and this host speaks version 5"},
		{good[:6] + "\x01" + good[7:], "path 1 (0) of the connection of call 0"},
		{good[:7] + "\x01" + good[8:], "path 0 (1)"},
		{good[:6] + "\x01\x02" + good[8:], "path 1 (2)"},
		{good[:47] + "\x09" + good[48:], "path 0 (0) of the connection of call 9"},
		{strings.Replace(good, "\x01b", "\x00", 1), "lacks a name"},
		{strings.Replace(good, "\x07", "\x00", 1), "lacks a name or a number"},
		{good[:len(good)-1], "EOF"},
		{"", "EOF"},
	} {
		_, err := Read(strings.NewReader(c.text))
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want that it says %q", c.text, err, c.says)
		}
		if v := new(VersionError); errors.As(err, &v) != strings.Contains(c.says, "version") {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// FuzzGreeting: what is read as a greeting is written as the same bytes, and all
// else is malformed.
func FuzzGreeting(f *testing.F) {
	f.Add(valid.Append(nil))
	f.Add((&Greeting{Class: 1, From: "b", Incarnation: 5, To: "a", Known: 6, Call: 8, Path: 8, First: true, Joins: 7}).Append(nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		g, err := Read(in)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%v is no ErrMalformed", err)
			}
			return
		}
		if took := b[:len(b)-in.Len()]; !bytes.Equal(g.Append(nil), took) || len(took) > MaxSize {
			t.Errorf("%q is read as %+v, which is %q", took, g, g.Append(nil))
		}
	})
}

// FuzzAnswer: the same for answers.
func FuzzAnswer(f *testing.F) {
	for code := range codes {
		f.Add((&Answer{code, 7, "no"}).Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		a, err := ReadAnswer(in)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("%v is no ErrMalformed", err)
			}
			return
		}
		if took := b[:len(b)-in.Len()]; !bytes.Equal(a.Append(nil), took) {
			t.Errorf("%q is read as %+v, which is %q", took, a, a.Append(nil))
		}
	})
}
