package rpc

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPolicyIsThatOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+\\.[A-Za-z]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	coded := map[string]string{}
	for method, roles := range policy {
		name, ours := strings.CutPrefix(method, "/tributary.offload.v1.")
		if !ours {
			name, ours = strings.CutPrefix(method, "/gnmi.")
		}
		if !ours {
			continue
		}
		var names []string
		for _, r := range roles {
			names = append(names, string(r))
		}
		coded[strings.ReplaceAll(name, "/", ".")] = strings.Join(names, ", ")
	}
	if diff := cmp.Diff(coded, documented); diff != "" {
		t.Errorf("the code (-) and docs/trust.md (+) differ:\n%s", diff)
	}
}
