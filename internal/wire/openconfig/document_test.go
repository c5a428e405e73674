package openconfig_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/wire/openconfig"
)

// TestDocument: docs/telemetry.md lists the paths of the table.
func TestDocument(t *testing.T) {
	const page, begin, end = "../../../docs/telemetry.md", "<!-- paths -->\n", "<!-- end of paths -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("the page has no place for the paths")
	}
	var b strings.Builder
	b.WriteString("| path | value | |\n|---|---|---|\n")
	for l := range openconfig.Schema() {
		if l.Alias {
			continue
		}
		reported := "event"
		switch {
		case l.Counter:
			reported = "counter"
		case l.Config:
			reported = "event, set"
		}
		value := strings.TrimPrefix(described(l), "config ")
		if l.Identity != "" {
			value = "identity of " + l.Identity
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", template(l.Path), value, reported)
	}
	transcript.File(t, page, before+begin+b.String()+end+after)
}
