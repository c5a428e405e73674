package agree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, and below ---- what members send
// and decide.
//
//	group N         a new one of N members
//	start A [F]     member A gives its flags, or all do: "all"
//	open A          member A takes part
//	kill A          it dies; its messages on their way are lost
//	dead A B        member A finds out that B is dead
//	deliver         one message after the other, until there is none
//	deliver K       the first K
//	state           of all that live
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		var s scene
		return transcript.BlockLines(text, func(line string) string {
			s.text.Reset()
			s.do(line)
			return s.text.String()
		})
	})
}

type scene struct {
	members []*Core
	isDead  []bool
	flight  []flying
	text    strings.Builder
}

func (s *scene) do(line string) {
	var word string
	var a, b, flags int
	n, _ := fmt.Sscan(line, &word, &a, &b)
	switch word {
	case "group":
		*s = scene{isDead: make([]bool, a)}
		for rank := range a {
			c, err := New(Config{Rank: uint32(rank), Size: a})
			if err != nil {
				panic(err)
			}
			s.members = append(s.members, c)
		}
	case "start":
		if flags = 0xff; n == 3 {
			flags = b
		}
		for rank := range s.members {
			if rank == a || strings.HasSuffix(line, "all") {
				s.step(rank, Input{Kind: Start, Flags: uint64(flags)})
			}
		}
	case "open":
		s.step(a, Input{Kind: Open})
	case "kill":
		s.isDead[a] = true
		s.flight = slices.DeleteFunc(s.flight, func(f flying) bool { return int(f.from) == a || int(f.to) == a })
	case "dead":
		s.step(a, Input{Kind: Dead, Rank: uint32(b)})
	case "deliver":
		for k := 0; len(s.flight) > 0 && (n < 2 || k < a); k++ {
			f := s.flight[0]
			s.flight = s.flight[1:]
			s.step(int(f.to), Input{Kind: Message, Rank: f.from, Bytes: f.bytes})
		}
	case "state":
		for rank, c := range s.members {
			if !s.isDead[rank] {
				fmt.Fprintf(&s.text, "%d: %s\n", rank, c)
			}
		}
	default:
		panic(line)
	}
}

func (s *scene) step(rank int, in Input) {
	if s.isDead[rank] {
		return
	}
	var out Output
	s.members[rank].Step(0, []Input{in}, &out)
	for _, x := range out.Sends {
		m, err := read(x.Bytes, len(s.members))
		if err != nil {
			panic(err)
		}
		lost := ""
		if s.isDead[x.To] {
			lost = ", which is dead"
		} else {
			s.flight = append(s.flight, flying{uint32(rank), x.To, x.Bytes})
		}
		fmt.Fprintf(&s.text, "%d > %d: %v %d wave %d.%d without %v", rank, x.To, m.kind, m.number, m.ballot, m.wave, m.failed)
		switch {
		case m.kind == Lock || m.kind == Commit:
			fmt.Fprintf(&s.text, " value %x %v", m.lock.value.Flags, m.lock.value.Failed)
		case m.kind == Ack:
			fmt.Fprintf(&s.text, " flags %x", m.flags)
			if m.lock.is {
				fmt.Fprintf(&s.text, " locked %x %v", m.lock.value.Flags, m.lock.value.Failed)
			}
		}
		s.text.WriteString(lost + "\n")
	}
	for _, d := range out.Decided {
		fmt.Fprintf(&s.text, "%d decides %d: flags %x, failed %v\n", rank, d.Number, d.Flags, d.Failed)
	}
	if len(out.Watch) > 0 {
		fmt.Fprintf(&s.text, "%d watches %v\n", rank, out.Watch)
	}
	if out.Disturbed {
		fmt.Fprintf(&s.text, "%d is disturbed\n", rank)
	}
}
