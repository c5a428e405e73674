package session

import (
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, those of
// trial, and below ---- all that the session does.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		trial := newTrial()
		return transcript.Blocks(text, func(commands string) string {
			if out := trial.do(transcript.Lines(commands)...); out != "" {
				return out
			}
			return "nothing\n"
		})
	})
}
