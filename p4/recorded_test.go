package p4_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/p4"
)

// recorded has the digests of the compiled program, of its P4Info, and of the
// transcripts, as they were when bmv2 last played them by that program. What is
// compiled does not say where in the sources it stands: a changed comment asks for no
// new recording.
const recorded = "testdata/recorded.sum"

// digests returns what recorded is to have.
func digests(t *testing.T, program []byte, info string) string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%x  tributary.json\n%x  tributary.p4info.txtpb\n", sha256.Sum256(program), sha256.Sum256([]byte(info)))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), file)
	}
	return b.String()
}

// TestRecorded fails where the program, or a transcript, is another one than bmv2 has
// played: what the core in Go makes of the transcripts says nothing of the program.
func TestRecorded(t *testing.T) {
	have, err := os.ReadFile(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if want := digests(t, p4.DeviceConfig(), p4.Info()); string(have) != want {
		t.Errorf("the transcripts have not been played on bmv2 by this program: go test ./p4 -run TranscriptsOnBMv2 -update\n%s has\n%s, want\n%s", recorded, have, want)
	}
	other := append([]byte(nil), p4.DeviceConfig()...)
	other[len(other)/2]++
	if digests(t, other, p4.Info()) == string(have) || digests(t, p4.DeviceConfig(), p4.Info()+"#") == string(have) {
		t.Error("a changed program goes unnoticed")
	}
	if bytes.Contains(p4.DeviceConfig(), []byte("source_info")) {
		t.Error("the compiled program has its sources' lines: a changed comment would ask for a new recording")
	}
}
