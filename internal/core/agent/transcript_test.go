package agent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/topology"
)

// TestTranscripts runs the commands in testdata/*.txt and compares all that
// the core says with what stands beneath them. A block is a line of comment, or
// a command, "----", and its output.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		return transcript.Commands(text, newBench(testConfig()).command)
	})
}

// command runs one line and returns what came of it.
func (b *bench) command(line string) string {
	words := strings.Fields(line)
	args := map[string]string{}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		args[key] = value
	}
	num := func(key string, otherwise uint64) uint64 {
		if n, err := strconv.ParseUint(args[key], 10, 64); err == nil {
			return n
		}
		return otherwise
	}
	group, epoch, window := uint32(num("group", 1)), uint32(num("epoch", 2)), uint32(num("window", 8))
	var in Input
	switch words[0] {
	case "config":
		cfg := testConfig()
		cfg.Capability.Slots = int(num("slots", 64))
		*b = *newBench(cfg)
		return "ok\n"
	case "prepare":
		in = Prepare{
			Incarnation: num("incarnation", 7), Group: group, Epoch: epoch, Children: int(num("children", 2)),
			Window: window, ChunkBytes: int(num("chunk", 1024)),
			Functions: topology.AllFunctions(), Types: topology.AllTypes(),
		}
	case "commit":
		in = Commit{Incarnation: num("incarnation", 7), Config: aggregateConfig(group, epoch, window)}
	case "remove":
		in = Remove{Incarnation: num("incarnation", 7), Group: group, Epoch: epoch}
	case "bound":
		in = Bound{Socket: num("socket", 1), Addr: testAddr(num("socket", 1)), Failed: args["failed"]}
	case "expired":
		in = Expired{Socket: num("socket", 1), Epoch: epoch}
	case "drain":
		in = Drain{On: args["on"] == "true"}
	case "wait":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return err.Error() + "\n"
		}
		b.now = b.now.Add(d)
	default:
		return "unknown command\n"
	}
	b.bind(in)
	return describe(b.step(in)) + b.status()
}

func describe(out *Output) string {
	var s strings.Builder
	for _, a := range out.Actions {
		fmt.Fprintf(&s, "%v socket=%d group=%d", a.Kind, a.Socket, a.Group)
		if a.Kind == Install || a.Kind == Retire {
			fmt.Fprintf(&s, " epoch=%d", a.Epoch)
		}
		s.WriteByte('\n')
	}
	for _, e := range out.Ended {
		fmt.Fprintf(&s, "ended group=%d epoch=%d: %v\n", e.Group, e.Epoch, e.Why)
	}
	for _, r := range out.Replies {
		fmt.Fprintf(&s, "reply %d: %v", r.Req, r.Kind)
		switch r.Kind {
		case Prepared:
			fmt.Fprintf(&s, " group=%d epoch=%d addr=%v", r.Group, r.Epoch, r.Addr)
		case Refused:
			fmt.Fprintf(&s, ": %v", r.Refusal)
		}
		s.WriteByte('\n')
	}
	return s.String()
}

// status is what is held, and what is wrong.
func (b *bench) status() string {
	used, all := b.core.Slots()
	s := fmt.Sprintf("slots %d/%d", used, all)
	for _, h := range b.core.Holds() {
		s += fmt.Sprintf(" [group %d epoch %d window %d committed %v]", h.Group, h.Epoch, h.Window, h.Committed)
	}
	if b.fault != nil {
		s += "\nBROKEN: " + b.fault.Error()
	}
	return s + "\n"
}
