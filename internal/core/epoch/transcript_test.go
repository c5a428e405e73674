package epoch

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, those of
// trial, and below ---- all that the agreement does.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		trial := newTrial()
		return transcript.Blocks(text, func(commands string) string {
			return trial.do(transcript.Lines(commands)...) + trial.c.String() + "\n"
		})
	})
}
