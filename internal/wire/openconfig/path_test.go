package openconfig_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gnmi "github.com/openconfig/gnmi/proto/gnmi"
	"github.com/openconfig/ygot/ygot"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// plain are values that ygot reads; it is confused by several escapes in one, and refuses
// empty ones.
var plain = rapid.SampledFrom([]string{"eth0", "a/b", "a]b", "a=b", "10.0.0.1/24", "x:y", "*", "[", "é"})

var (
	names  = rapid.StringOfN(rapid.RuneFrom([]rune(`ab-*"é`)), 1, 5, -1)
	values = rapid.StringOfN(rapid.RuneFrom([]rune(`ab-*=[]\/"é`)), 0, 5, -1)
)

// paths have keys with such values.
func paths(values *rapid.Generator[string]) *rapid.Generator[openconfig.Path] {
	return rapid.Custom(func(t *rapid.T) openconfig.Path { return drawPath(t, values) })
}

func drawPath(t *rapid.T, values *rapid.Generator[string]) openconfig.Path {
	var p openconfig.Path
	for range rapid.IntRange(0, 4).Draw(t, "elements") {
		e := openconfig.Elem{Name: names.Draw(t, "name")}
		for _, name := range rapid.SliceOfNDistinct(names, 0, 2, rapid.ID).Draw(t, "keys") {
			e.Keys = append(e.Keys, openconfig.Key{Name: name, Value: values.Draw(t, "value")})
		}
		p = append(p, e)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPathStrings: ygot reads them alike.
func TestPathStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := paths(plain).Draw(t, "path")
		theirs := &gnmi.Path{}
		for _, e := range p {
			x := &gnmi.PathElem{Name: e.Name}
			for _, k := range e.Keys {
				if x.Key == nil {
					x.Key = map[string]string{}
				}
				x.Key[k.Name] = k.Value
			}
			theirs.Elem = append(theirs.Elem, x)
		}
		s := p.String()
		if read, err := ygot.StringToStructuredPath(s); err != nil || !proto.Equal(read, theirs) {
			t.Fatalf("%q: ygot reads %v, %v", s, read, err)
		}
	})
}

func TestPathsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := paths(values).Draw(t, "path")
		back, err := openconfig.ParsePath(p.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatalf("%s: %s", p, diff)
		}
	})
}

func TestMalformedPaths(t *testing.T) {
	for _, s := range []string{
		"", "a", "//", "/a/", "/a[", "/a[k", "/a[k=v", "/a[=v]", "/a[k=v]b", "/a[k=v][k=w]", `/a\`, `/a[k=v\]`,
		strings.Repeat("/a", openconfig.MaxDepth+1), "/" + strings.Repeat("a", openconfig.MaxPath),
	} {
		if p, err := openconfig.ParsePath(s); !errors.Is(err, openconfig.ErrPath) && s != "" {
			t.Errorf("%.40q is %v, %v", s, p, err)
		}
	}
	for s, want := range map[string]string{
		"/":                           "/",
		"/m:a/n:b[k=n:v]":             "/a/b[k=n:v]",
		`/a\/b[k=x/y]`:                `/a\/b[k=x/y]`,
		"/a[z=1][b=2]":                "/a[b=2][z=1]",
		`/interface[name=a\]b]/state`: `/interface[name=a\]b]/state`,
	} {
		p, err := openconfig.ParsePath(s)
		if err != nil || p.String() != want {
			t.Errorf("%s is %v, %v; want %s", s, p, err, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		pattern, path string
		covers        bool
	}{
		{"/", "/a/b", true},
		{"/a", "/a/b", true},
		{"/a/b", "/a", false},
		{"/a[k=1]", "/a[k=1]/b", true},
		{"/a[k=2]", "/a[k=1]/b", false},
		{"/a[k=*]", "/a[k=1]/b", true},
		{"/a", "/a[k=1]/b", true},
		{"/a[j=1]", "/a[j=1][k=2]", true},
		{"/a[j=*]", "/a[k=1]/b", false},
		{"/*/b", "/a[k=1]/b", true},
		{"/*", "/", false},
		{"/...", "/", true},
		{"/.../c", "/a/b/c", true},
		{"/.../c", "/c/d", true},
		{"/.../c", "/a/b", false},
		{"/a/.../b/.../c", "/a/x/b/y/z/c", true},
		{"/a/.../b/.../c", "/a/x/c/y/z/b", false},
	} {
		p, err := openconfig.ParsePath(test.pattern)
		if err != nil {
			t.Fatal(err)
		}
		q, err := openconfig.ParsePath(test.path)
		if err != nil {
			t.Fatal(err)
		}
		if p.Covers(q) != test.covers {
			t.Errorf("%s covers %s: %v", p, q, !test.covers)
		}
	}
}

func TestSelects(t *testing.T) {
	for s, want := range map[string]bool{
		"/":           true,
		"/interfaces": true,
		"/interfaces/interface[name=eth7]/state/oper-status": true,
		"/interfaces/interface/state/*":                      true,
		"/interfaces/interface[name=*]/.../in-octets":        true,
		"/interfaces/interface[index=1]":                     false,
		"/interfaces/interface/state/oper-status/up":         false,
		"/network-instances":                                 false,
		"/.../latency":                                       true,
		"/*/*/*/latency":                                     false,
	} {
		p, err := openconfig.ParsePath(s)
		if err != nil {
			t.Fatal(err)
		}
		if openconfig.Selects(p) != want {
			t.Errorf("%s selects something: %v", s, !want)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add(`/interfaces/interface[name=eth0\]]/state/m:x`)
	f.Add(`/a[k=v][j=\\]/.../*`)
	f.Fuzz(func(t *testing.T, s string) {
		p, err := openconfig.ParsePath(s)
		if err != nil {
			return
		}
		again, err := openconfig.ParsePath(p.String())
		if err != nil && len(p.String()) <= openconfig.MaxPath {
			t.Fatalf("%q is %v: %v", s, p, err)
		}
		if err == nil && !strings.Contains(s, ":") && again.String() != p.String() {
			t.Fatalf("%q is %v, then %v", s, p, again)
		}
		var d openconfig.Device
		if _, err := d.Set(p, openconfig.Number(1)); err != nil && len(d.Interfaces) > 0 {
			t.Fatalf("%s left %v behind", p, d.Interfaces)
		}
		d.Delete(p)
	})
}
