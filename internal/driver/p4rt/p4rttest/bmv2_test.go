package p4rttest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestApart has two builds of bmv2: one knows the option, one prints its usage and
// ends if it is given.
func TestApart(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string][]string{
		"  -i [ --interface ] arg  [<port-num>@]<interface-name>\n  --notifications-addr arg  Nanomsg address\n": {"--notifications-addr", "ipc://" + dir + "/n"},
		"  -i [ --interface ] arg  [<port-num>@]<interface-name>\n":                                              nil,
	} {
		program := filepath.Join(dir, "simple_switch_grpc")
		script := "#!/bin/sh\ncat <<'END'\n" + text + "END\nexit 1\n"
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := Apart(program, dir); err != nil || !slices.Equal(got, want) {
			t.Errorf("of %q: %q, %v, want %q", text, got, err, want)
		}
		t.Setenv(BMv2Variable, program)
		if path, lack := BMv2(); lack == "" && path != program || lack != "" && os.Geteuid() == 0 {
			t.Errorf("%s is not honoured: %q, %s", BMv2Variable, path, lack)
		}
	}
}
