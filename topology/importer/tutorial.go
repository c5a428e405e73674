package importer

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/topology"
)

// tutorialReader reads the topology.json of the P4 tutorials: hosts and
// switches by name, and links as lists of two ends, a latency (a number of
// milliseconds, or a text with a unit) and a bandwidth in Mbit/s, of which the
// last two may be absent.
type tutorialReader struct{ *draft }

// tutorialEnd is a switch with a port, such as s1-p3 or s1-eth3.
var tutorialEnd = regexp.MustCompile(`^(.+)-(?:p|eth)(\d+)$`)

func readTutorial(d *draft, data []byte) {
	top, syntax := document.Parse(data, document.Options{})
	if syntax != nil {
		d.fail(syntax.Line, fmt.Errorf("%w: %w", ErrSyntax, syntax))
		return
	}
	r := tutorialReader{d}
	r.nodes(top.Field("hosts"), topology.Host)
	r.nodes(top.Field("switches"), topology.Switch)
	links := top.Field("links")
	if links == nil || links.Kind != document.List {
		d.fail(top.Line, fmt.Errorf("no list of links: %w", ErrSyntax))
		return
	}
	for _, l := range links.Items {
		r.link(l)
	}
}

// nodes adds those of an object by name, or of a list of names.
func (r tutorialReader) nodes(v *document.Value, kind topology.Kind) {
	if v == nil {
		return
	}
	for _, item := range v.Items {
		name := item.Key
		if v.Kind == document.List {
			name = item.Text
		}
		r.add(node{id: name, label: name, line: item.Line, kind: kind})
	}
}

func (r tutorialReader) link(v *document.Value) {
	if v.Kind != document.List || len(v.Items) < 2 {
		r.fail(v.Line, fmt.Errorf("a link is a list of two ends, a latency and a bandwidth, and not %s: %w", v.Kind, ErrSyntax))
		return
	}
	l := link{spec: r.cfg.Equipment.Link, line: v.Line}
	for end := range l.ends {
		at, port, ok := r.end(v.Items[end])
		if !ok {
			return
		}
		l.ends[end], l.ports[end] = at, port
	}
	ok := true
	if len(v.Items) > 2 && v.Items[2].Kind != document.Null {
		l.spec.Latency, ok = r.latency(v.Items[2])
	} else {
		r.assume(v.Line, NoLatency)
	}
	if len(v.Items) > 3 && v.Items[3].Kind != document.Null {
		var fine bool
		l.spec.Bandwidth, fine = r.megabits(v.Items[3])
		ok = ok && fine
	} else {
		r.assume(v.Line, NoSpeed)
	}
	if ok {
		r.links = append(r.links, l)
	}
}

// end returns the node and port of an end; a name that is a node's counts
// before one with a port.
func (r tutorialReader) end(v *document.Value) (at, port int, ok bool) {
	if at, ok = r.byID[v.Text]; ok {
		return at, 0, true
	}
	if m := tutorialEnd.FindStringSubmatch(v.Text); m != nil {
		if at, ok = r.byID[m[1]]; ok {
			return at, portOf(m[2]), true
		}
	}
	r.fail(v.Line, fmt.Errorf("a link to %q, which is neither a host nor a port of a switch: add it there, or remove the link: %w", short(v.Text), ErrReference))
	return 0, 0, false
}

func (r tutorialReader) latency(v *document.Value) (time.Duration, bool) {
	x, err := time.ParseDuration(v.Text)
	if ms, noUnit := strconv.ParseFloat(v.Text, 64); noUnit == nil {
		x, err = time.Duration(ms*float64(time.Millisecond)), nil
		if ms < 0 || ms > float64(time.Hour/time.Millisecond) {
			err = ErrValue
		}
	}
	if err == nil {
		err = topology.LinkSpec{Bandwidth: 1, Latency: x}.Validate()
	}
	if err != nil {
		r.fail(v.Line, fmt.Errorf("latency %q: it is a number of milliseconds, or a text such as 10ms, from 0 to an hour: %w", short(v.Text), ErrValue))
		return 0, false
	}
	return x, true
}

func (r tutorialReader) megabits(v *document.Value) (int64, bool) {
	x, err := strconv.ParseFloat(v.Text, 64)
	if err != nil {
		r.fail(v.Line, fmt.Errorf("bandwidth %q is no number of Mbit/s: %w", short(v.Text), ErrValue))
		return 0, false
	}
	return r.bandwidth(v.Line, x*1e6)
}
