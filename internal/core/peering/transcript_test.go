package peering

import (
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, those of trial,
// and below ---- all that the core asks for. A first line "# certified" makes the
// names those of certificates.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		trial := newTrial(func(c *Config) {
			c.Certified = strings.HasPrefix(text, "# certified")
			c.Pending, c.PendingOfSource = 4, 3
		})
		return transcript.Blocks(text, func(commands string) string {
			return trial.do(transcript.Lines(commands)...)
		})
	})
}
