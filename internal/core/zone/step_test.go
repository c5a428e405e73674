package zone_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/wire/attributes"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// pair is a zone.Core and a member.Core that is given the same.
type pair struct {
	t        *testing.T
	zone     *zone.Core
	alone    *member.Core
	dir      *member.Directory
	nodes    []member.Index
	accept   member.Link
	now      core.Time
	reported []member.Index // the monitors that the second knows
}

func newPair(t *testing.T, others int) *pair {
	p := &pair{t: t, dir: member.NewDirectory(), accept: 1}
	for i := range others {
		n := p.dir.Add(gossip.ID(fmt.Sprintf("n%d@10.0.0.%d:1", i, i+2)))
		p.dir.Hold(n)
		p.nodes = append(p.nodes, n)
	}
	cfg := zone.DefaultConfig("self@10.0.0.1:1", 1)
	cfg.Member.Discovery = member.Discovery{First: time.Hour, Share: 1, Last: time.Hour}
	var err error
	if p.zone, err = zone.New(cfg, p.dir, 0); err != nil {
		t.Fatal(err)
	}
	if p.alone, err = member.New(cfg.Member, p.dir, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// step steps both, and fails unless they want the same and the attributes have
// the neighbours that the members have.
func (p *pair) step(in ...member.Input) member.Output {
	p.t.Helper()
	var got, want member.Output
	batch := in
	if monitors := p.zone.Monitors(); !slices.Equal(monitors, p.reported) {
		p.reported = monitors
		batch = append([]member.Input{{Kind: member.SetMonitors, Nodes: monitors}}, in...)
	}
	p.zone.Step(p.now, in, &got)
	p.alone.Step(p.now, batch, &want)
	members := got
	members.Attached = nil
	if !reflect.DeepEqual(members, want) {
		p.t.Errorf("at %d the zone wants\n\t%+v\nand its members' core\n\t%+v", p.now, members, want)
	}
	if d := p.zone.Members().Deadline(); d != p.alone.Deadline() {
		p.t.Errorf("at %d the deadline is %d, of the members' core alone %d", p.now, d, p.alone.Deadline())
	}
	if got.Stopped {
		return got
	}
	var lives []attributes.Life
	for _, n := range p.zone.Members().Neighbours(nil) {
		lives = append(lives, p.zone.Life(n.Node))
	}
	known := slices.Clone(p.zone.Attributes().Neighbours())
	slices.Sort(lives)
	slices.Sort(known)
	if !slices.Equal(known, lives) {
		p.t.Errorf("at %d the attributes have neighbours %x, the members %x", p.now, known, lives)
	}
	return got
}

// connect has a node join and become a neighbour.
func (p *pair) connect(n member.Index) member.Link {
	link := p.accept
	p.accept += 2
	from := member.Entry{Node: n, Version: gossip.Version{Incarnation: 1, Minor: 1}}
	p.step(
		member.Input{Kind: member.Accepted, Link: link},
		member.Input{Kind: member.Received, Link: link, Message: &member.Message{
			Type: gossip.Hello, From: from, Target: p.dir.Key(p.zone.Members().Self().Node), Need: gossip.Ring | gossip.Random, Tag: uint32(link),
		}})
	return link
}

// declare is what a neighbour sends that has become a monitor, or no longer is
// one.
func (p *pair) declare(n member.Index, link member.Link, version uint64, gone bool) member.Input {
	e := attributes.Entry{Version: version, Key: zone.MonitorKey, Deleted: gone}
	s := attributes.Section{Life: p.zone.Life(n), Version: version, Entries: []attributes.Entry{e}}
	return member.Input{Kind: member.Attached, Link: link, Payload: &attributes.Reply{Sections: []attributes.Section{s}}}
}

// TestStepIsOneOfTheMembers: news of monitors, also together with the loss of
// neighbours, has the members' core do nothing that is not reported to the attributes
// of: it is stepped once, and knows the monitors before the next step's inputs.
func TestStepIsOneOfTheMembers(t *testing.T) {
	p := newPair(t, 6)
	var links []member.Link
	for _, n := range p.nodes {
		links = append(links, p.connect(n))
	}
	for k := range 3 {
		p.now = p.now.Add(300 * time.Millisecond)
		p.step(
			p.declare(p.nodes[k], links[k], uint64(1), false),
			member.Input{Kind: member.Received, Link: links[5-k], Message: &member.Message{Type: gossip.Goodbye}})
		if got := len(p.zone.Monitors()); got != k+1 {
			t.Fatalf("it knows %d monitors, want %d", got, k+1)
		}
	}
	p.step(p.declare(p.nodes[0], links[0], 2, true))
	if got := len(p.zone.Monitors()); got != 2 {
		t.Errorf("it knows %d monitors after one is none any more, want 2", got)
	}
	out := p.step(member.Input{Kind: member.Depart})
	reported := map[member.Index]bool{}
	for _, packet := range out.Packets {
		reported[packet.To] = true
	}
	if reported[p.nodes[0]] || !reported[p.nodes[1]] || !reported[p.nodes[2]] || !out.Stopped {
		t.Errorf("of the departure are reported %v, want the monitors %v", reported, p.nodes[1:3])
	}
}
