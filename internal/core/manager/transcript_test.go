package manager

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// TestTranscripts runs the commands in testdata/*.txt and compares all that
// the manager says with what stands beneath them. Run with -update to rewrite;
// read the diff.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(text string) string {
		s := script{}
		s.fabric(1000)
		got := transcript.Commands(text, s.command)
		if strings.Contains(got, "BROKEN") {
			t.Error("an invariant is broken")
		}
		return got
	})
}

// script is a world that reports what the manager puts out.
type script struct {
	*world
	purpose  pathsel.Purpose // of groups to come
	bundle   Bundle          // the same
	reported strings.Builder
}

func (s *script) fabric(slots int) { s.on(smallFabric(), slots) }

func (s *script) on(g *topology.Graph, slots int) {
	s.world = newWorld(g, Config{MinWindow: 2}, slots)
	s.watcher = s.notify
}

// command runs one line and returns what came of it.
func (s *script) command(line string) string {
	s.reported.Reset()
	if !s.execute(strings.Fields(line)) {
		return "unknown command\n"
	}
	if s.fault != nil {
		fmt.Fprintf(&s.reported, "BROKEN: %v\n", s.fault)
	}
	if s.reported.Len() == 0 {
		return "nothing\n"
	}
	return s.reported.String()
}

func (s *script) execute(words []string) bool {
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	num := func(i int) uint32 {
		n, _ := strconv.ParseUint(arg(i), 10, 32)
		return uint32(n)
	}
	switches := s.switches(arg(1))
	switch words[0] {
	case "fabric":
		s.fabric(int(num(1)))
	case "detour":
		s.on(detour(), int(num(1)))
	case "purpose":
		bytes, _ := strconv.ParseInt(arg(2), 10, 64)
		s.purpose = pathsel.Purpose{Collective: must(pathsel.ParseCollective(arg(1))), Bytes: bytes, Criterion: must(pathsel.ParseCriterion(arg(3)))}
	case "bundle":
		kinds := map[string]BundleKind{"stripes": Stripes, "parts": Parts}
		s.bundle = Bundle{Name: arg(1), Kind: kinds[arg(2)], Index: int(num(3)), Count: int(num(4))}
	case "connect":
		for _, i := range switches {
			s.connect(i)
		}
	case "crash":
		for _, i := range switches {
			s.crash(i)
		}
	case "restart":
		s.killManager()
	case "create":
		var hosts []int
		for i := 3; i < len(words); i++ {
			hosts = append(hosts, int(num(i)))
		}
		s.createIn(s.bundle, s.purpose, arg(1), num(2), hosts...)
	case "watch":
		s.watchRanks(num(1), arg(2))
	case "unwatch":
		s.unwatch(num(1), num(2), arg(3) == "over")
	case "plan":
		s.plan()
	case "store":
		s.store()
	case "agents": // one request, one socket and one answer each
		for i := range s.agents {
			s.deliver(i, 0)
			s.bind(i)
			s.answer(i)
		}
	case "settle":
		s.settle()
	case "wait", "run":
		d, err := time.ParseDuration(arg(1))
		if err != nil {
			return false
		}
		if words[0] == "wait" {
			s.wait(d)
		} else {
			s.run(d)
		}
	case "enter":
		for rank := range s.core.groups[num(1)].members {
			if arg(2) == "all" || num(2) == uint32(rank) {
				s.enter(num(1), uint32(rank), num(3))
			}
		}
	case "demand":
		s.demand(num(1), num(2))
	case "lost":
		s.step(Report{Group: num(1), Rank: num(2), Lost: num(3), Silent: arg(4) == "silent"})
	case "drain", "undrain":
		for _, i := range switches {
			s.ask(Drain{Switch: s.agents[i].name, On: words[0] == "drain"})
		}
	case "node":
		s.setNode(s.node(arg(1)), arg(2) == "up")
	case "busy": // a switch's CPU, in percent
		s.overlay = must(s.overlay.With(topology.NodeUtilization(s.node(arg(1)), float64(num(2))/100)))
		s.step(TopologyChanged{View: s.overlay.View()})
	case "speed": // a switch's own, in MB/s
		c := s.core.view.Capability(s.node(arg(1)))
		c.Speed.Bytes = int64(num(2)) * 1e6
		s.overlay = must(s.overlay.With(topology.SwitchCapability(s.node(arg(1)), c)))
		s.step(TopologyChanged{View: s.overlay.View()})
	case "link":
		s.overlay = must(s.overlay.With(topology.LinkState(topology.LinkID(num(1)), arg(2) == "up")))
		s.step(TopologyChanged{View: s.overlay.View()})
	case "redraw": // without NAME, with NAME, spines NUMBER, move HOST, turn NUMBER
		s.redraw(words[1:])
	case "release":
		s.ask(Release{Group: num(1)})
	case "explain":
		s.explain(num(1))
	default:
		return false
	}
	return true
}

// redraw has somebody change smallFabric.
func (s *script) redraw(words []string) {
	d := &s.shape
	if d.without == nil {
		d.without, d.moved = map[string]bool{}, map[int]int{}
	}
	for i := 0; i+1 < len(words); i += 2 {
		n, _ := strconv.Atoi(words[i+1])
		switch words[i] {
		case "without", "with":
			d.without[words[i+1]] = words[i] == "without"
		case "spines":
			d.spines = n
		case "move":
			d.moved[n] = 1
		case "turn":
			d.turn = n
		}
	}
	g := d.graph()
	s.overlay = must(topology.NewMapping(s.graph, g).Overlay(s.overlay))
	grown := g.Links() > s.graph.Links()
	s.graph = g
	s.seat()
	s.step(Redrawn{View: s.overlay.View(), Grown: grown, Cause: strings.Join(words, " ")})
}

// switches returns those of a name, or all.
func (s *script) switches(name string) []int {
	var found []int
	for i, a := range s.agents {
		if name == "all" || a.name == name {
			found = append(found, i)
		}
	}
	return found
}

func (s *script) watchRanks(group uint32, ranks string) {
	if ranks == "all" {
		s.watchAll(group)
		return
	}
	rank, _ := strconv.ParseUint(ranks, 10, 32)
	s.watch(group, uint32(rank))
}

// notify writes an output down.
func (s *script) notify(out *Output) {
	f := func(format string, args ...any) { fmt.Fprintf(&s.reported, format+"\n", args...) }
	name := func(n topology.NodeID) string { return s.graph.Name(n) }
	for _, r := range out.Persist {
		f("persist %d: %s", r.Seq, describeRecord(r))
	}
	if out.Anew {
		f("begin anew: %d hosts, %d switches, %d links", s.graph.Hosts(), s.graph.Switches(), s.graph.Links())
	}
	for _, t := range out.Loads {
		f("load root %s", name(t.Root()))
	}
	for _, t := range out.Unloads {
		f("unload root %s", name(t.Root()))
	}
	for _, p := range out.Plans {
		f("plan %d for group %d: %d slots, without %v%s", p.Plan, p.Group, p.Request.Slots, s.namesOf(p.Request), s.describe(p))
	}
	for _, m := range out.Prepares {
		f("-> %s: prepare group %d epoch %d: %d children, window %d", m.Switch, m.Group, m.Epoch, m.Children, m.Window)
	}
	for _, m := range out.Commits {
		var lowest []uint32
		for _, child := range m.Config.Children {
			lowest = append(lowest, child.Lowest)
		}
		above := "the root"
		if m.Config.Parent.IsValid() {
			above = fmt.Sprintf("child %d of %v", m.Config.Index, m.Config.Parent)
		}
		f("-> %s: commit group %d epoch %d: children from ranks %v, %s", m.Switch, m.Config.Group, m.Config.Epoch, lowest, above)
	}
	for _, m := range out.Removes {
		f("-> %s: remove group %d epoch %d", m.Switch, m.Group, m.Epoch)
	}
	for _, o := range out.Offers {
		f("offer to rank %d of group %d: epoch %d, window %d, parent %v, index %d", o.Rank, o.Group, o.Epoch, o.Window, o.Parent, o.Index)
	}
	for _, o := range out.Withdrawals {
		f("withdraw from rank %d of group %d: epoch %d: %s", o.Rank, o.Group, o.Epoch, o.Why)
	}
	for _, l := range out.Links {
		f("links of group %d: %v, of %d", l.Group, l.Links, l.Leaf)
	}
	for _, n := range out.Notices {
		f("notice to rank %d of group %d: %v, end %v", n.Rank, n.Group, n.Err, n.End)
	}
	for _, r := range out.Replies {
		f("reply %d: group %d, found %v, error %v", r.Req, r.Group, r.Found, r.Err)
	}
}

// describe says what a plan is for, and in place of what.
func (s *script) describe(p PlanRequest) (text string) {
	if p.Request.Purpose != (pathsel.Purpose{}) {
		text = "; for " + p.Request.Words()
	}
	for i, t := range p.Request.Avoid {
		text += []string{"; apart from root ", ", "}[min(i, 1)] + s.graph.Name(t.Root())
	}
	if len(p.Request.Old.Vertices) > 0 {
		text += "; in place of root " + s.graph.Name(p.Request.Old.Root())
	}
	return text
}

func (s *script) namesOf(r pathsel.Request) []string {
	names := []string{}
	for _, n := range r.Exclude {
		names = append(names, s.graph.Name(n))
	}
	return names
}

func describeRecord(r Record) string {
	switch {
	case r.Delete && r.Kind == SpecRecord:
		return fmt.Sprintf("forget group %d", r.Group)
	case r.Delete:
		return fmt.Sprintf("forget the trees of group %d", r.Group)
	case r.Spec != nil:
		text := fmt.Sprintf("group %d is %q of %v", r.Group, r.Spec.Name, r.Spec.Members)
		if r.Spec.Bundle.Kind != NoBundle {
			text += ", " + r.Spec.Bundle.String()
		}
		return text
	case r.Trees != nil:
		var live []uint32
		for _, t := range r.Trees.Live {
			live = append(live, t.Epoch)
		}
		return fmt.Sprintf("group %d is at epoch %d, live %v, ended %v", r.Group, r.Trees.Epoch, live, r.Trees.Ended)
	}
	return fmt.Sprintf("last group %d, drained %v", r.Fleet.LastGroup, r.Fleet.Drained)
}

func (s *script) explain(group uint32) {
	e, ok := s.core.Group(group)
	if !ok {
		s.reported.WriteString("no such group\n")
		return
	}
	f := func(format string, args ...any) { fmt.Fprintf(&s.reported, format+"\n", args...) }
	f("group %d %q: %v, epoch %d, %d of %d watch, missing %v, %d offload, %d on hosts", e.Group, e.Name, e.State, e.Epoch, e.Watching, e.Members, e.Missing, e.Offload, e.Hosts)
	for _, sister := range e.Sisters {
		f("beside %v: group %d, %v, epoch %d", sister.Bundle, sister.Group, sister.State, sister.Epoch)
	}
	if e.Refusal != nil {
		f("refusal: %v", e.Refusal)
	}
	for _, t := range e.Trees {
		f("epoch %d %v, window %d: %s", t.Epoch, t.Stage, t.Window, t.Plan.Reason)
	}
	for _, change := range e.History {
		f("%v: %s", time.Duration(change.At), change.What)
	}
}
