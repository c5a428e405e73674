package process_test

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "7": 7, "7B": 7, "64KiB": 64 << 10, "4MiB": 4 << 20, "2 GiB": 2 << 30, "4194304": 4 << 20} {
		var s process.Size
		if err := s.Set(text); err != nil || int(s) != want {
			t.Errorf("%s: %d, %v; want %d", text, s, err, want)
		}
		var again process.Size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%s is written as %s, which is %d, %v", text, s.String(), again, err)
		}
	}
	for _, text := range []string{"", "KiB", "-1", "1.5MiB", "1kb", "0x10", "9999999999GiB", "99999999999999999999"} {
		var s process.Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken as %d", text, s)
		}
	}
}
