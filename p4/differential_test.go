package p4_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/p4"
)

var steps = flag.Int("steps", 3000, "packets of the random scenes that are sent through bmv2 and the core")

// play runs the transcript text against a target.
func play(t *testing.T, on target, text string) string {
	s := &scene{target: on}
	on.begin()
	return transcript.Blocks(text, func(commands string) string { return s.run(t, transcript.Lines(commands)) })
}

// TestTranscripts replays the transcripts, which were recorded from bmv2,
// against the core.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string { return play(t, new(oracle), text) })
}

// TestTranscriptsOnBMv2 replays them on bmv2; with -update it records them.
func TestTranscriptsOnBMv2(t *testing.T) {
	if !live(t) {
		return
	}
	p := newPipeline(t)
	transcript.Run(t, func(text string) string {
		p.t, p.handed = t, 0
		got := play(t, p, text)
		if agents := strings.HasPrefix(text, "What the pipeline does not reduce"); agents != (p.handed > 0) {
			t.Errorf("%d packets were handed over", p.handed)
		}
		return got
	})
	if flag.Lookup("update").Value.String() == "true" && !t.Failed() {
		p.must(os.WriteFile(recorded, []byte(digests(t, p4.DeviceConfig(), p4.Info())), 0o644))
	}
}

// TestRandomOnBMv2 sends the same packets through bmv2 and the core, and
// compares what leaves and what is counted after each.
func TestRandomOnBMv2(t *testing.T) {
	if !live(t) {
		return
	}
	const perScene = 300
	p := newPipeline(t)
	outcomes := map[string]int{}
	for seed := range uint64(*steps+perScene-1) / perScene {
		w := newWriter(seed)
		switched, right := &scene{target: p}, &scene{target: new(oracle)}
		switched.target.begin()
		right.target.begin()
		var story []string
		for range perScene {
			line := w.next()
			story = append(story, line)
			want := right.do(t, line)
			got := switched.do(t, line)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: after\n%s\nthe core and bmv2 differ (-core +bmv2):\n%s", seed, strings.Join(story, "\n"), diff)
			}
			outcome, _, _ := strings.Cut(want, "\n")
			outcomes[outcome]++
		}
	}
	t.Logf("outcomes: %v; %d packets were handed over, %d went round", outcomes, p.handed, p.looped)
}
