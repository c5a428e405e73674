package setting

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/ranktree"
)

// TestTranscripts runs every file in testdata: blocks of commands, and below ---- what members are
// asked, send and decide.
//
//	group N         a new one of N members, in a binomial tree, with the setting 0
//	wish V          the lowest rank wishes the setting V
//	promise A P     member A promises the position P
//	cut A           the connection of A and its parent breaks; what is on it is lost
//	connect A       there is a new one
//	deliver         one message after the other, until there is none
//	deliver K       the first K
//	frame A B S R P V   A gets from B the step S (ask, promise, decide) of round R, with position P and setting V
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

type flying struct {
	from, to uint32
	message  wire.Setting
}

type scene struct {
	members []*Core
	parents []int
	isCut   []bool // from its parent
	flight  []flying
	text    strings.Builder
}

var steps = map[uint8]string{wire.SettingAsk: "ask", wire.SettingPromise: "promise", wire.SettingDecide: "decide"}

func (s *scene) do(line string) {
	words := strings.Fields(line)
	var n [6]int
	for i, w := range words[1:] {
		_, _ = fmt.Sscan(w, &n[i]) // a step's name stays 0
	}
	a := uint32(n[0])
	switch words[0] {
	case "group":
		*s = scene{isCut: make([]bool, a)}
		tree := ranktree.KNomial(n[0], 2)
		for rank := range n[0] {
			parent, hasParent := tree.Parent(rank)
			if !hasParent {
				parent = NoParent
			}
			s.parents = append(s.parents, parent)
			s.members = append(s.members, New(parent, tree.Children(rank), []byte{0}))
		}
	case "wish":
		s.step(0, Input{Kind: Wish, Value: []byte{byte(a)}})
	case "promise":
		s.step(a, Input{Kind: Promise, Position: uint32(n[1])})
	case "cut":
		s.isCut[a] = true
		s.flight = slices.DeleteFunc(s.flight, func(f flying) bool { return s.edge(f.from, f.to) == a })
	case "connect":
		s.isCut[a] = false
		s.step(a, Input{Kind: Connected, From: uint32(s.parents[a])})
		s.step(uint32(s.parents[a]), Input{Kind: Connected, From: a})
	case "deliver":
		for k := 0; len(s.flight) > 0 && (len(words) < 2 || k < n[0]); k++ {
			f := s.flight[0]
			s.flight = s.flight[1:]
			s.step(f.to, Input{Kind: Frame, From: f.from, Message: &f.message})
		}
	case "frame":
		m := wire.Setting{Round: uint32(n[3]), Position: uint32(n[4]), Value: []byte{byte(n[5])}}
		for step, name := range steps {
			if name == words[3] {
				m.Step = step
			}
		}
		s.step(a, Input{Kind: Frame, From: uint32(n[1]), Message: &m})
	default:
		panic(line)
	}
}

// edge returns the lower member of a connection.
func (s *scene) edge(a, b uint32) uint32 {
	if s.parents[a] == int(b) {
		return a
	}
	return b
}

func (s *scene) step(rank uint32, in Input) {
	var out Output
	s.members[rank].Step([]Input{in}, &out)
	if out.Asked {
		fmt.Fprintf(&s.text, "%d is asked for a promise\n", rank)
	}
	for _, d := range out.Decided {
		fmt.Fprintf(&s.text, "%d decides %d from %d on\n", rank, d.Value[0], d.Position)
	}
	for _, x := range out.Sends {
		read, err := wire.ReadFrame(x.Frame)
		if err != nil {
			panic(err)
		}
		m := *read.(*wire.Setting)
		lost := ""
		if s.isCut[s.edge(rank, x.To)] {
			lost = ", which is lost"
		} else {
			s.flight = append(s.flight, flying{rank, x.To, m})
		}
		fmt.Fprintf(&s.text, "%d > %d: %s %d", rank, x.To, steps[m.Step], m.Round)
		switch m.Step {
		case wire.SettingPromise:
			fmt.Fprintf(&s.text, " not before %d", m.Position)
		case wire.SettingDecide:
			fmt.Fprintf(&s.text, " %d from %d on", m.Value[0], m.Position)
		}
		s.text.WriteString(lost + "\n")
	}
}
