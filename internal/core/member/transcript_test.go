package member

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// TestTranscripts runs every file in testdata: blocks of commands to a core a,
// and below ---- all that comes of them. The test plays everybody else, who
// answer probes unless they are silent.
//
//	node theta=2 ks=2 bootstrap=b,c    a core; kr=, stealth= likewise
//	report left:b,1.1 alive:c,1.1 suspects:d,c,1.1
//	accept b need=1                    b has connected and said Hello
//	frame 1 TYPE words of report      of a link: base, dispute, needs=1, watchers:a,c, goodbye, welcome:b,1.1
//	connected 2; fail 2                what became of a dial, or of a link
//	silent b                           answers no probes any more
//	monitors m n
//	ask b 1.1 boot                     a discovery request
//	reply b 1.1 boot alive:c,1.1       a discovery reply
//	leave 3
//	pass 200ms
//	view
//	transitions                        every state of a node and every news of it
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		var r *rig
		return transcript.Blocks(text, func(commands string) string {
			var b strings.Builder
			for _, line := range transcript.Lines(commands) {
				words := strings.Fields(line)
				switch words[0] {
				case "transitions":
					b.WriteString(transitions(t))
					continue
				case "node":
					r = newRig(t, func(c *Config) { configure(t, c, words[1:]) })
				default:
					command(t, r, words)
				}
				for _, line := range r.take() {
					b.WriteString(line + "\n")
				}
			}
			return b.String()
		})
	})
}

func configure(t *testing.T, c *Config, words []string) {
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "theta":
			c.Theta = n
		case "ks":
			c.Ks = n
		case "kr":
			c.Kr = n
		case "stealth":
			c.Stealth = n
		case "bootstrap":
			for name := range strings.SplitSeq(value, ",") {
				c.Bootstrap = append(c.Bootstrap, idOf(name))
			}
		default:
			t.Fatalf("node: %q", w)
		}
	}
}

func command(t *testing.T, r *rig, words []string) {
	number := func() Link {
		n, err := strconv.Atoi(words[1])
		if err != nil {
			t.Fatal(err)
		}
		return Link(n)
	}
	switch words[0] {
	case "report":
		r.inform(parse(t, r, words[1:]))
	case "accept":
		r.accept(words[1], parse(t, r, words[2:]).Need)
	case "frame":
		m := parse(t, r, words[2:])
		r.frame(number(), m)
	case "connected":
		r.step(Input{Kind: Connected, Link: number()})
	case "fail":
		r.step(Input{Kind: Failed, Link: number()})
	case "silent":
		r.silence(words[1:]...)
	case "monitors":
		in := Input{Kind: SetMonitors}
		for _, n := range words[1:] {
			in.Nodes = append(in.Nodes, r.index(n))
		}
		r.step(in)
	case "ask", "reply":
		m := parse(t, r, words[3:])
		m.Type = map[string]gossip.Type{"ask": gossip.DiscoveryRequest, "reply": gossip.DiscoveryReply}[words[0]]
		m.From, m.Nonce = Entry{r.index(words[1]), versionOf(t, words[2]), nil}, r.expect(r.index(words[1]))
		r.step(Input{Kind: Datagram, Message: &m})
	case "leave":
		code, _ := strconv.Atoi(words[1])
		r.step(Input{Kind: Depart, Exit: gossip.Exit{Given: true, Code: uint8(code)}})
	case "pass":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		r.pass(d)
	case "view":
		for c := 'a'; c <= 'z'; c++ {
			if i := r.index(string(c)); r.Has(i) {
				r.note("%c %v", c, r.Version(i))
			}
		}
	default:
		t.Fatalf("no command %q", words[0])
	}
}

func versionOf(t *testing.T, s string) Version {
	var v Version
	if _, err := fmt.Sscanf(s, "%d.%d", &v.Incarnation, &v.Minor); err != nil {
		t.Fatalf("version %q: %v", s, err)
	}
	return v
}

// parse reads a message's words, as rig.message writes them.
func parse(t *testing.T, r *rig, words []string) Message {
	m := Message{Type: gossip.Update}
	for _, w := range words {
		key, rest, _ := strings.Cut(w, ":")
		parts := strings.Split(rest, ",")
		switch {
		case key == "alive", key == "dead":
			m.Alives = append(m.Alives, Entry{r.index(parts[0]), versionOf(t, parts[1]), nil})
		case key == "left":
			m.Leaves = append(m.Leaves, Departure{Node: r.index(parts[0]), Version: versionOf(t, parts[1])})
		case key == "suspects":
			m.Suspicions = append(m.Suspicions, suspicion(r, parts[0], parts[1], versionOf(t, parts[2])))
		case key == "base":
			m.Type = gossip.Base
		case key == "dispute":
			m.Type = gossip.Dispute
		case key == "goodbye":
			m.Type = gossip.Goodbye
		case strings.HasPrefix(key, "size="):
			_, value, _ := strings.Cut(key, "=")
			m.Size, _ = strconv.Atoi(value)
		case key == "boot":
			m.Boot = true
		case key == "watchers":
			m.Type = gossip.Watchers
			for _, n := range parts {
				m.Watchers = append(m.Watchers, r.index(n))
			}
		case key == "welcome":
			m.Type, m.From = gossip.Welcome, Entry{r.index(parts[0]), versionOf(t, parts[1]), nil}
		case strings.HasPrefix(key, "need"):
			name, value, _ := strings.Cut(key, "=")
			n, _ := strconv.Atoi(value)
			m.Need = gossip.Need(n)
			if name == "needs" {
				m.Type = gossip.Needs
			}
		default:
			t.Fatalf("no word %q", w)
		}
	}
	return m
}

// transitions returns, for each state of b and all news of it, what comes of it.
func transitions(t *testing.T) string {
	var b strings.Builder
	for _, state := range []struct{ name, how string }{
		{"unknown", ""}, {"alive at 2.2", "alive:b,2.2"}, {"suspected by d at 2.2", "alive:b,2.2 suspects:d,b,2.2"}, {"gone at 2.2", "alive:b,2.1/left:b,2.2"},
	} {
		for _, news := range []string{
			"alive:b,2.1", "alive:b,2.2", "alive:b,2.3", "alive:b,3.1", "left:b,2.1", "left:b,2.2", "left:b,2.3", "left:b,3.1",
			"suspects:c,b,2.1", "suspects:c,b,2.2", "suspects:c,b,2.3", "suspects:d,b,2.2", "suspects:d,b,2.3",
		} {
			r := newRig(t, func(c *Config) { c.Theta, c.Ks = 2, 2 })
			r.join("c", "d", "e", "f")
			for part := range strings.SplitSeq(state.how, "/") {
				r.inform(parse(t, r, strings.Fields(part)))
			}
			r.take()
			r.fresh = fresh{}
			for i := range r.view.nodes {
				r.view.nodes[i].fresh = false
			}
			r.inform(parse(t, r, []string{news}))
			i := r.index("b")
			fmt.Fprintf(&b, "%s, %s: %s", state.name, news, [...]string{"unknown", "alive", "gone"}[r.view.at(r.dir, i).state])
			if v := r.Version(i); v != (Version{}) {
				fmt.Fprintf(&b, " at %v", v)
			}
			fmt.Fprintf(&b, ", %d suspicions", len(r.Suspicions()))
			if !r.fresh.empty() {
				b.WriteString(", reported")
			}
			for _, line := range r.take() {
				b.WriteString("\n    " + line)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
