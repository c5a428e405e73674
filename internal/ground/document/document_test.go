package document

import (
	"fmt"
	"strings"
	"testing"
)

// show writes a value with its lines, on one line.
func show(v *Value) string {
	switch v.Kind {
	case List, Object:
		var items []string
		for _, item := range v.Items {
			items = append(items, item.Key+show(item))
		}
		return fmt.Sprintf("@%d(%s)", v.Line, strings.Join(items, " "))
	}
	return fmt.Sprintf("@%d=%s", v.Line, v.Text)
}

func TestParse(t *testing.T) {
	const yamlText = "a: &x\n  b: 1\n  c: [two, 3]\nd: *x\n"
	const jsonText = "{\n \"a\": {\"b\": 1,\n \"c\": [\"two\", 3]},\n \"d\": null}"
	for _, test := range []struct {
		name, text string
		options    Options
		want       string // or the error
	}{
		{"aliases", yamlText, Options{Aliases: true}, "@1(a@1(b@2=1 c@3(@3=two @3=3)) d@4(b@2=1 c@3(@3=two @3=3)))"},
		{"no aliases", yamlText, Options{}, "4: aliases (*name) are not supported; use defaults"},
		{"JSON", jsonText, Options{}, "@1(a@2(b@2=1 c@3(@3=two @3=3)) d@4=)"},
		{"JSON as YAML", jsonText, Options{YAML: true}, "@1(a@2(b@2=1 c@3(@3=two @3=3)) d@4=null)"},
		{"YAML in braces", "{a: 1}", Options{YAML: true}, "@1(a@1=1)"},
		{"YAML in braces is no JSON", "{a: 1}", Options{}, "1: invalid character"},
		{"an alias of itself", "a: &x [*x]", Options{Aliases: true}, "1: nested too deeply"},
		{"a bomb", bomb(7), Options{Aliases: true}, "1: its aliases make more than"},
		{"empty", "", Options{}, "0: the file is empty"},
		{"not UTF-8", "\xff", Options{}, "1: it is not UTF-8: it has the byte 0xff"},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, err := Parse([]byte(test.text), test.options)
			var got string
			if err != nil {
				got = fmt.Sprintf("%d: %v", err.Line, err)
			} else {
				got = show(v)
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// bomb returns a document in which every anchor holds the one before ten times.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n")
	for i := 1; i < levels; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func TestPath(t *testing.T) {
	v, err := Parse([]byte("links:\n- {between: [a], odd key: 1}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	link := v.Field("links").Items[0]
	for want, at := range map[string]*Value{
		"": v, "links[0].between[0]": link.Field("between").Items[0], `links[0]."odd key"`: link.Field("odd key"),
	} {
		if at.Path() != want {
			t.Errorf("%q, want %q", at.Path(), want)
		}
	}
	if link.Field("absent") != nil || v.Field("links").Field("x") != nil {
		t.Error("a field that is not there was found")
	}
}

// FuzzParse reads anything: it ends, and every value knows its line.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"a: &x {b: 1}\nc: [*x, *x]\n", "{\"a\": [1, {}]}", bomb(3)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, o := range []Options{{}, {Aliases: true}, {YAML: true}} {
			v, err := Parse(text, o)
			if err != nil {
				continue
			}
			for queue := []*Value{v}; len(queue) > 0; queue = queue[1:] {
				if queue[0].Line < 1 {
					t.Fatalf("%s has no line", queue[0].Path())
				}
				queue = append(queue, queue[0].Items...)
			}
		}
	})
}
