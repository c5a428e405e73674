package broadcast

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

// TestTranscripts runs every file in testdata: blocks of commands, and below
// ---- all that happens.
//
//	cluster 16 binomial            nodes n0 to n15; also nomial=4, ary=3, flat
//	group n0                       made at once; "group n0 delayed" with the first broadcast
//	send n0 "hello" patience=5ms   also bulk=100, last
//	settle                         rounds until nothing moves
//	pass 20ms                      time, and rounds
//	mute n5                        what it sends is lost
//	break n5                       its sends fail locally
//	error n5 pre-request why       this callback of it fails
//	hold n5 incoming-request       this callback of it does not return; release n5
//	down n5; up n5 2               all others are notified
//	abort n0                       its last request
//	table                          every phase and what can happen in it
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		s := &script{}
		return transcript.Blocks(text, func(commands string) string {
			for _, line := range transcript.Lines(commands) {
				s.do(line)
			}
			defer s.log.Reset()
			return s.log.String()
		})
	})
}

type script struct {
	*cluster
	last map[broadcastmsg.Node]uint64
}

func (s *script) do(line string) {
	words := strings.Fields(line)
	var n *testNode
	if s.cluster != nil && len(words) > 1 {
		n = s.nodes[broadcastmsg.Node(words[1])]
	}
	switch words[0] {
	case "cluster":
		size, _ := strconv.Atoi(words[1])
		s.cluster = newCluster(size, shapeOf(words[2]))
		s.trace, s.last = true, map[broadcastmsg.Node]uint64{}
	case "group":
		if err := s.create(s.rank(n), len(words) > 2); err != nil {
			fmt.Fprintln(&s.log, err)
		}
	case "send":
		s.send(n, words[2:])
	case "settle":
		s.round = 0
		s.settle()
	case "pass":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			panic(err)
		}
		s.pass(d)
	case "mute":
		n.mute = true
	case "break":
		n.failing = errors.New("the card is on fire")
	case "error":
		n.errs[kindOf(words[2])] = errors.New(strings.Join(words[3:], " "))
	case "hold":
		n.held[kindOf(words[2])] = true
	case "release":
		n.release()
	case "down":
		s.notifyAll(Input{Kind: Down, Node: n.name})
	case "up":
		incarnation, _ := strconv.ParseUint(words[2], 10, 64)
		s.notifyAll(Input{Kind: Up, Node: n.name, Incarnation: incarnation})
	case "abort":
		if err := n.Abort(s.clock, s.last[n.name], &n.out); err != nil {
			n.note("%v", err)
		}
		n.settleOutput()
	case "table":
		if s.cluster == nil {
			s.cluster = newCluster(1, binomial)
		}
		s.log.WriteString(table())
	default:
		panic("unknown command " + line)
	}
}

func (s *script) rank(n *testNode) int {
	for i, name := range s.names {
		if name == n.name {
			return i
		}
	}
	panic("no such node")
}

func (s *script) send(n *testNode, words []string) {
	payload, err := strconv.Unquote(words[0])
	if err != nil {
		panic(err)
	}
	b := Broadcast{Payload: []byte(payload)}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "last":
			b.Last = true
		case "patience":
			b.Patience, err = time.ParseDuration(value)
		case "bulk":
			b.Bulk, err = strconv.ParseUint(value, 10, 64)
		}
		if err != nil {
			panic(err)
		}
	}
	id, err := n.send(b)
	if err != nil {
		n.note("%v", err)
	}
	s.last[n.name] = id
}

func shapeOf(name string) broadcastmsg.Tree {
	kind, value, _ := strings.Cut(name, "=")
	radix, _ := strconv.Atoi(value)
	switch kind {
	case "binomial":
		return binomial
	case "nomial":
		return broadcastmsg.Tree{Kind: broadcastmsg.KNomial, Radix: uint16(radix)}
	case "ary":
		return broadcastmsg.Tree{Kind: broadcastmsg.KAry, Radix: uint16(radix)}
	case "flat":
		return broadcastmsg.Tree{Kind: broadcastmsg.Flat}
	}
	panic("no tree " + name)
}

func kindOf(name string) CallKind {
	for i, n := range callNames {
		if n == name {
			return CallKind(i)
		}
	}
	panic("no callback " + name)
}
