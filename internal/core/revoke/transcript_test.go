package revoke

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

// TestTranscripts runs every file in testdata: blocks of commands, and below ---- what members send
// and deliver.
//
//	group N         a new one of N members, which are being formed
//	form A          member A is formed, or all are: "all"
//	revoke A        it revokes
//	kill A          it dies; its notices on their way are lost
//	dead A B        member A finds out that B is dead
//	cut A B         their connection breaks; what is on it is lost
//	connect A B     there is a new one
//	deliver         one notice after the other, until there is none
//	deliver K       the first K
//	state           of all that live
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		var s *scene
		return transcript.BlockLines(text, func(line string) string {
			var b strings.Builder
			if strings.HasPrefix(line, "group") {
				s = newScene(1)
			}
			s.trace = func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
			if err := s.do(line); err != nil {
				t.Error(err)
			}
			return b.String()
		})
	})
}

func (s *scene) do(line string) error {
	var word string
	var a, b uint32
	n, _ := fmt.Sscan(line, &word, &a, &b)
	switch word {
	case "group":
		fresh := newScene(int(a))
		fresh.trace = s.trace
		*s = *fresh
	case "form":
		for rank := range s.members {
			if uint32(rank) == a && n > 1 || strings.HasSuffix(line, "all") {
				if err := s.step(uint32(rank), Input{Kind: Formed, Life: life}); err != nil {
					return err
				}
			}
		}
	case "revoke":
		return s.step(a, Input{Kind: Revoke, From: a, Reason: 5})
	case "kill":
		s.kill(a, func() bool { return false })
	case "dead":
		return s.step(a, Input{Kind: Dead, From: b})
	case "cut":
		s.cut(a, b)
	case "connect":
		return s.connect(a, b)
	case "deliver":
		for k := uint32(0); len(s.flight) > 0 && (n < 2 || k < a); k++ {
			if err := s.deliver(0); err != nil {
				return err
			}
		}
	case "state":
		for rank, c := range s.members {
			if !s.isDead[rank] {
				s.trace("%d: %s\n", rank, c)
			}
		}
	default:
		return fmt.Errorf("what is %q?", line)
	}
	return nil
}
