package discovery

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/topology"
)

// trial is a core, and what it has put out.
type trial struct {
	c     *Core
	now   core.Time
	out   Output
	dials map[string]bool
}

// fataler is a test, also one of rapid.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func newTrial(t fataler, cfg Config) *trial {
	t.Helper()
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &trial{c: c, dials: map[string]bool{}}
}

func (t *trial) step(in ...Input) {
	t.out.Reset()
	t.c.Step(t.now, in, &t.out)
	for _, a := range t.out.Dial {
		t.dials[a] = true
	}
	for _, a := range t.out.Drop {
		delete(t.dials, a)
	}
}

// wait lets time pass, with a step at each deadline.
func (t *trial) wait(d time.Duration, each func()) {
	end := t.now.Add(d)
	for at := t.c.Deadline(); at <= end; at = t.c.Deadline() {
		t.now = max(t.now, at)
		t.step()
		each()
	}
	t.now = end
}

// String writes what was put out, a line each.
func (o *Output) String() string {
	var b strings.Builder
	for _, a := range o.Dial {
		fmt.Fprintf(&b, "dial %s\n", a)
	}
	for _, a := range o.Retry {
		fmt.Fprintf(&b, "retry %s\n", a)
	}
	for _, a := range o.Drop {
		fmt.Fprintf(&b, "drop %s\n", a)
	}
	for _, x := range o.Changes {
		fmt.Fprintf(&b, "%v\n", x)
	}
	for _, a := range o.Alarms {
		state := "over"
		if a.Raised {
			state = "ALARM"
		}
		fmt.Fprintf(&b, "%s %v\n", state, a.Alarm)
	}
	return b.String()
}

// TestTranscripts runs every file in testdata. Commands are
//
//	connect ADDRESS [CERTIFIED-NAME]
//	report ADDRESS NAME [OPTION ...] | PORT STATE [> NEIGHBOUR ...] | ...
//	lose ADDRESS, fail ADDRESS
//	file LINK ..., with links such as h0:1--leaf-0:3; hosts begin with h
//	wait DURATION
//	map
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		tr := newTrial(t, Config{
			Seeds: []string{"10.0.0.1:74"}, Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")},
			Flaps: 3, MaxNeighbors: 3,
		})
		return transcript.BlockLines(text, tr.command)
	})
}

func (t *trial) command(line string) string {
	word := strings.Fields(line)
	switch word[0] {
	case "start":
		t.step()
	case "connect":
		t.step(Input{Kind: Connected, Target: word[1], Name: strings.Join(word[2:], "")})
	case "report":
		t.step(Input{Kind: Reported, Target: word[1], Facts: parseFacts(strings.TrimPrefix(line, "report "+word[1]))})
	case "lose":
		t.step(Input{Kind: Lost, Target: word[1], Why: "connection reset"})
	case "fail":
		t.step(Input{Kind: Failed, Target: word[1], Why: "connection refused"})
	case "file":
		t.step(Input{Kind: Operator, Graph: parseFile(word[1:])})
	case "wait":
		d, err := time.ParseDuration(word[1])
		if err != nil {
			return err.Error() + "\n"
		}
		var b strings.Builder
		t.wait(d, func() { b.WriteString(t.out.String()) })
		return b.String()
	case "map":
		return t.drawn()
	default:
		return "unknown command\n"
	}
	return t.out.String()
}

// drawn writes the map.
func (t *trial) drawn() string {
	var b strings.Builder
	state := map[bool]string{true: "up", false: "down"}
	for _, n := range t.c.Map().Nodes {
		fmt.Fprintf(&b, "%v %s %s, by %v, agent %q\n", n.Kind, n.Name, state[n.Up], n.From, n.Agent)
	}
	for _, l := range t.c.Map().Links {
		fmt.Fprintf(&b, "%v %s, by %v, %d Gbit/s, %v", l.Ends, state[l.Up], l.From, l.Bandwidth/1e9, l.Latency)
		if l.Addresses[0].IsValid() {
			fmt.Fprintf(&b, ", %v", l.Addresses)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// parseFacts reads NAME [OPTION ...] | PORT STATE [> NEIGHBOUR ...] | ..., where options
// are chassis=TEXT, no-agent and mute, and of ports number=N, speed=GBIT, mtu=N, mac=MAC,
// latency=D and addr=PREFIX.
func parseFacts(text string) *Facts {
	parts := strings.Split(text, "|")
	words := strings.Fields(parts[0])
	f := &Facts{Hostname: words[0], Chassis: NameID("c-" + words[0]), Speaks: true, Agent: &Agent{Switch: words[0]}}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "chassis":
			f.Chassis = NameID(value)
		case "says":
			f.Agent.Switch = value
		case "no-agent":
			f.Agent = nil
		case "mute":
			f.Speaks = false
		case "chassis-unknown":
			f.Chassis = ID{}
		}
	}
	for _, part := range parts[1:] {
		own, heard, _ := strings.Cut(part, ">")
		words := strings.Fields(own)
		p := Port{Interface: words[0], Up: words[1] == "up"}
		for _, w := range words[2:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "number":
				p.Number = uint32(number(value))
			case "speed":
				p.Speed = int64(number(value)) * 1e9
			case "mtu":
				p.MTU = number(value)
			case "mac":
				p.MAC = MACID(value)
			case "latency":
				p.Latency, _ = time.ParseDuration(value)
			case "addr":
				p.Addresses = append(p.Addresses, netip.MustParsePrefix(value))
			}
		}
		for _, w := range strings.Fields(heard) {
			p.Neighbors = append(p.Neighbors, parseNeighbor(w))
		}
		f.Ports = append(f.Ports, p)
	}
	return f
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// parseNeighbor reads NAME/PORT[,OPTION ...], where options are chassis=TEXT, mac=MAC of
// the port, at=ADDRESS:PORT, at=ADDRESS, switch, number=N, about=TEXT and plain: without
// Tributary's TLV.
func parseNeighbor(text string) Neighbor {
	words := strings.Split(text, ",")
	name, port, _ := strings.Cut(words[0], "/")
	n := Neighbor{
		Name: name, Node: name, Chassis: NameID("c-" + name), Port: NameID(port),
		Switch: !strings.HasPrefix(name, "h"),
	}
	for _, w := range words[1:] {
		option, value, _ := strings.Cut(w, "=")
		switch option {
		case "chassis":
			n.Chassis = NameID(value)
		case "mac":
			n.Port = MACID(value)
		case "at":
			if at, err := netip.ParseAddrPort(value); err == nil {
				n.AgentPort, n.Management = at.Port(), append(n.Management, at.Addr())
			} else {
				n.Management = append(n.Management, netip.MustParseAddr(value))
			}
		case "number":
			n.Number = uint32(number(value))
		case "about":
			n.Description = value
		case "plain":
			n.Node = ""
		case "nameless":
			n.Node, n.Name = "", ""
		}
	}
	return n
}

// parseFile reads links; hosts begin with h. LINK=GBIT gives a speed.
func parseFile(links []string) *topology.Graph {
	if len(links) == 0 {
		return nil
	}
	b := &topology.Builder{}
	node := func(name string) topology.Ref {
		r, ok := b.Find(name)
		if ok {
			return r
		}
		var err error
		if strings.HasPrefix(name, "h") {
			r, err = b.AddHost(name)
		} else {
			r, err = b.AddSwitch(name, topology.DefaultCapability())
		}
		if err != nil {
			panic(err)
		}
		return r
	}
	for _, l := range links {
		l, speed, isSpeed := strings.Cut(l, "=")
		spec := topology.DefaultLink()
		if isSpeed {
			spec.Bandwidth = int64(number(speed)) * 1e9
		}
		var refs [2]topology.Ref
		var ports [2]topology.Port
		x, y, _ := strings.Cut(l, "--")
		for i, end := range []string{x, y} {
			name, port, _ := strings.Cut(end, ":")
			refs[i], ports[i] = node(name), topology.Port(number(port))
		}
		if _, err := b.Connect(refs[0], ports[0], refs[1], ports[1], spec); err != nil {
			panic(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}
