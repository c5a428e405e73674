package attribute

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
)

// A trial is the part of one member, a, driven by lines of text, as the
// transcripts in testdata and the table of transitions use it. Other members
// are letters, too.
//
//	set color red            also delete color; fill 30000: a value of so many bytes in many keys
//	up b                     b becomes a neighbour; also down, join, left
//	from b digest p:5 q:3
//	from b request p:2       also push
//	from b reply p:0..5 color=red@3 -size@5 q:none r:more:7
//	                         sections; one that begins at 0 is a whole map; p:2..5^4: tombstones up to 4 are gone
//	pass 200ms
//
// Lines in one step are parted by ";".
type trial struct {
	c   *Core
	out Output
	now core.Time
	log strings.Builder
}

const period = 200 * time.Millisecond

func newTrial() *trial {
	cfg := DefaultConfig(life("a"))
	cfg.Burst = 1
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return &trial{c: c}
}

func life(name string) attributes.Life { return attributes.Life(name[0]) }

func nameOf(l attributes.Life) string { return string(rune(l)) }

// do runs lines and returns what came of them.
func (t *trial) do(lines ...string) string {
	t.log.Reset()
	for _, line := range lines {
		t.line(line)
	}
	return t.log.String()
}

func (t *trial) line(line string) {
	var in []Input
	for _, one := range strings.Split(line, ";") {
		words := strings.Fields(one)
		switch words[0] {
		case "set":
			t.said(t.c.Set(words[1], []byte(words[2])))
		case "delete":
			t.said(t.c.Delete(words[1]))
		case "fill":
			t.fill(number(words[1]))
		case "pass":
			d, err := time.ParseDuration(words[1])
			if err != nil {
				panic(err)
			}
			t.pass(d)
		default:
			in = append(in, inputOf(words))
		}
	}
	t.step(in...)
}

func (t *trial) said(err error) {
	if err != nil {
		fmt.Fprintln(&t.log, err)
	}
}

// fill writes so many bytes, a value's length at a time.
func (t *trial) fill(bytes int) {
	for i := 0; bytes > 0; i++ {
		n := min(bytes, attributes.MaxValue)
		t.said(t.c.Set("k"+strconv.Itoa(i), make([]byte, n)))
		bytes -= n
	}
}

// pass lets time pass, and steps when the core is due.
func (t *trial) pass(d time.Duration) {
	for end := t.now.Add(d); ; t.step() {
		due := max(t.c.Deadline(), t.now)
		if due > end {
			t.now = end
			return
		}
		t.now = due
	}
}

func (t *trial) step(in ...Input) {
	t.out.Reset()
	t.c.Step(t.now, in, &t.out)
	for _, s := range t.out.Sends {
		fmt.Fprintf(&t.log, "to %s: %s\n", nameOf(s.To), messageText(s.Message))
	}
	for _, n := range t.out.Notices {
		fmt.Fprintf(&t.log, "notice %s %d..%d %s\n", nameOf(n.Life), n.From, n.Version, strings.Join(n.Keys, " "))
	}
}

var kinds = map[string]Kind{"up": NeighbourUp, "down": NeighbourDown, "join": Joined, "left": Left}

func inputOf(words []string) Input {
	if kind, ok := kinds[words[0]]; ok {
		return Input{Kind: kind, Life: life(words[1])}
	}
	in := Input{Kind: Message, Life: life(words[1])}
	switch words[2] {
	case "digest":
		in.Message = &attributes.Digest{Maps: mapsOf(words[3:])}
	case "request", "push":
		in.Message = &attributes.Request{Push: words[2] == "push", Maps: mapsOf(words[3:])}
	case "reply":
		in.Message = &attributes.Reply{Sections: sectionsOf(words[3:])}
	default:
		panic("unknown message " + words[2])
	}
	return in
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func version(s string) uint64 { return uint64(number(s)) }

func mapsOf(words []string) []attributes.Map {
	var maps []attributes.Map
	for _, w := range words {
		name, v, _ := strings.Cut(w, ":")
		maps = append(maps, attributes.Map{Life: life(name), Version: version(v)})
	}
	return maps
}

func sectionsOf(words []string) []attributes.Section {
	var all []attributes.Section
	for _, w := range words {
		if name, what, head := strings.Cut(w, ":"); head {
			s := attributes.Section{Life: life(name)}
			if from, to, data := strings.Cut(what, ".."); data {
				to, floor, _ := strings.Cut(to, "^")
				s.Base, s.Version = version(from), version(to)
				if floor != "" {
					s.Floor = version(floor)
				}
			} else if rest, more := strings.CutPrefix(what, "more:"); more {
				s.Version = version(rest)
			}
			all = append(all, s)
			continue
		}
		e := attributes.Entry{}
		key, v, _ := strings.Cut(w, "@")
		e.Version = version(v)
		if key, deleted := strings.CutPrefix(key, "-"); deleted {
			e.Key, e.Deleted = key, true
		} else {
			key, value, _ := strings.Cut(key, "=")
			e.Key, e.Value = key, []byte(value)
		}
		s := &all[len(all)-1]
		s.Entries = append(s.Entries, e)
	}
	return all
}

func messageText(m attributes.Message) string {
	switch m := m.(type) {
	case *attributes.Digest:
		return "digest" + mapsText(m.Maps)
	case *attributes.Request:
		if m.Push {
			return "push" + mapsText(m.Maps)
		}
		return "request" + mapsText(m.Maps)
	case *attributes.Reply:
		text := "reply"
		for i := range m.Sections {
			text += sectionText(&m.Sections[i])
		}
		return text
	}
	panic("unknown message")
}

func mapsText(maps []attributes.Map) string {
	text := ""
	for _, m := range maps {
		text += fmt.Sprintf(" %s:%d", nameOf(m.Life), m.Version)
	}
	return text
}

func sectionText(s *attributes.Section) string {
	switch {
	case s.Version == 0:
		return fmt.Sprintf(" %s:none", nameOf(s.Life))
	case len(s.Entries) == 0:
		return fmt.Sprintf(" %s:more:%d", nameOf(s.Life), s.Version)
	}
	text := fmt.Sprintf(" %s:%d..%d", nameOf(s.Life), s.Base, s.Version)
	if s.Floor > 0 {
		text += fmt.Sprintf("^%d", s.Floor)
	}
	for _, e := range s.Entries {
		switch {
		case e.Deleted:
			text += fmt.Sprintf(" -%s@%d", e.Key, e.Version)
		case len(e.Value) > 20:
			text += fmt.Sprintf(" %s=(%d bytes)@%d", e.Key, len(e.Value), e.Version)
		default:
			text += fmt.Sprintf(" %s=%s@%d", e.Key, e.Value, e.Version)
		}
	}
	return text
}

// String returns all of a core's state that its rules depend upon.
func (c *Core) String() string {
	var lines []string
	for l := attributes.Life(1); l <= math.MaxUint8; l++ { // see life
		if !c.Has(l) {
			continue
		}
		text := nameOf(l)
		if r := c.replica(l); r != nil {
			text += ":" + strconv.FormatUint(r.version, 10)
			if r.pending > 0 {
				text += fmt.Sprintf("<%d@%s", r.pending, nameOf(r.target))
			}
			if r.sent < r.version {
				text += "!"
			}
		}
		lines = append(lines, text)
	}
	for l, d := range c.pending.owed {
		if d.version == 0 {
			lines = append(lines, "~"+nameOf(l))
		} else {
			lines = append(lines, fmt.Sprintf("~%s:%d@%s", nameOf(l), d.version, nameOf(d.from)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}

// TestTranscripts runs every file in testdata: blocks of lines, those of trial,
// and below ---- all that the core does, and its state: p:5<7@b! is that version
// 5 is known of p, 7 is pending at b, and 5 is not reported yet; ~p is owed.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		trial := newTrial()
		return transcript.Blocks(text, func(commands string) string {
			if commands == "table\n" {
				return table()
			}
			return trial.do(transcript.Lines(commands)...) + trial.c.String() + "\n"
		})
	})
}
