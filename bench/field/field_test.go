package field

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
)

func TestMembers(t *testing.T) {
	want := []hostlib.Member{{Host: "h0", Addr: "10.0.0.1:7102"}, {Host: "h1", Addr: "[fd00::1]:7102"}}
	var b bytes.Buffer
	want = append(want, hostlib.Member{Host: "h9", Process: "2", Addr: "10.0.0.9:3"})
	if err := WriteMembers(&b, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadMembers(strings.NewReader("# rank host\n\n"+b.String()), "f")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, message := range map[string]string{
		"":                    "f: nobody",
		"h0\n":                "f:1: 1 words",
		"h0 a:1\n#\nh1 b 1":   "f:3: 3 words",
		"# nobody but this\n": "f: nobody",
	} {
		if _, err := ReadMembers(strings.NewReader(text), "f"); !errors.Is(err, ErrMembers) || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSeedOf(t *testing.T) {
	if first, again := SeedOf("h0"), SeedOf("h0"); first != again || first == SeedOf("h1") {
		t.Error("seeds do not distinguish nodes, or are not always the same")
	}
}
