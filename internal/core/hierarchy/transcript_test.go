package hierarchy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// TestTranscripts runs every file in testdata: blocks of commands to a world, and
// below ---- all that the nodes do. Each file begins with
//
//	world zones=1 size=3 supervisors=3 seed=1
//
// which names the supervisors s1 and so on, and then the nodes of the zones, h4
// and so on. Then
//
//	pass 2s
//	kill h4                  also restart
//	start 0                  a node of zone 0; mesh: of the management zone
//	break h4 s1              the link between the two
//	mute h4 s1               what is sent between the two does not arrive any more
//	fetch s3 0               also follow, forget
//	census s3
//
// and table alone, in a block of its own, is the table of transitions.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		script := &script{t: t}
		return transcript.Blocks(text, func(commands string) string {
			if commands == "table\n" {
				return table(t)
			}
			script.log.Reset()
			for _, line := range transcript.Lines(commands) {
				script.do(strings.Fields(line))
			}
			return script.log.String()
		})
	})
}

type script struct {
	t   *testing.T
	w   *world
	log strings.Builder
}

func (s *script) do(words []string) {
	switch words[0] {
	case "world":
		f := map[string]int{"zones": 1, "size": 3, "supervisors": 3, "seed": 1}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			n, err := strconv.Atoi(value)
			if err != nil {
				s.t.Fatal(err)
			}
			f[name] = n
		}
		s.w = newWorld(s.t, uint64(f["seed"]), f["zones"], f["size"], f["supervisors"], DefaultSettings())
		s.w.log = func(format string, args ...any) { fmt.Fprintf(&s.log, format, args...) }
	case "pass":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.w.pass(d)
	case "kill":
		s.w.kill(s.actor(words[1]))
	case "restart":
		s.w.restart(s.actor(words[1]))
	case "start":
		if words[1] == "mesh" {
			s.w.start(s.w.mesh)
		} else {
			s.w.start(s.w.bases[s.zone(words[1])])
		}
	case "break", "mute":
		for _, l := range s.w.between(s.actor(words[1]), s.actor(words[2])) {
			l.muted = words[0] == "mute"
			if !l.muted {
				l.breaks()
			}
		}
	case "fetch", "follow":
		s.actor(words[1]).supervisor.Fetch(s.zone(words[2]), words[0] == "follow")
	case "forget":
		s.actor(words[1]).supervisor.Forget(s.zone(words[2]))
	case "census":
		for _, r := range s.actor(words[1]).supervisor.Census() {
			fmt.Fprintf(&s.log, "zone %d: %d nodes, %d delegates, supervised by", r.Zone, r.Size, r.Delegates)
			for _, id := range r.Supervisors {
				fmt.Fprintf(&s.log, " %s", id.Name())
			}
			s.log.WriteString("\n")
		}
	default:
		s.t.Fatalf("unknown command %q", words[0])
	}
}

func (s *script) zone(word string) wire.Zone {
	n, err := strconv.Atoi(word)
	if err != nil {
		s.t.Fatal(err)
	}
	return wire.Zone(n)
}

// actor returns the node of a name, in its last life.
func (s *script) actor(name string) *actor {
	return s.w.named(name)
}

func (w *world) named(name string) *actor {
	for _, a := range slices.Backward(w.all) {
		if a.id.Name() == name {
			return a
		}
	}
	w.t.Fatalf("there is no %s", name)
	return nil
}

// between returns the links of two nodes.
func (w *world) between(a, b *actor) []*link {
	var all []*link
	for _, l := range w.wires {
		if slices.Contains(l.ends[:], a) && slices.Contains(l.ends[:], b) {
			all = append(all, l)
		}
	}
	return all
}
