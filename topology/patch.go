package topology

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/document"
)

// Patch is a change of a topology, as somebody has written it: see docs/topology.md.
type Patch struct {
	Graph    *Graph            // the topology with the change
	Agents   map[string]string // "host:port" of agents, by the switch's name; empty: it has none any more
	Down, Up []string          // names of nodes, and of links as LinkName writes them
	Renamed  map[string]string // nodes' new names by those in the topology before
}

// Patched reads a change in the format of docs/topology.md, in YAML or JSON, and makes
// it to g. Agents, and what is down and up, may be of nodes and links beyond g that are
// known; known may be nil. Its errors are those of Read.
func (g *Graph) Patched(data []byte, name string, known func(name string) bool) (*Patch, error) {
	top, syntax := document.Parse(data, document.Options{})
	if syntax != nil {
		return nil, &FileError{File: name, Line: syntax.Line, Err: fmt.Errorf("%w: %w", ErrSyntax, syntax)}
	}
	d := &documentReader{file: name, equipment: DefaultEquipment()}
	p := &patcher{documentReader: d, sketch: sketchOf(g), known: known, patch: &Patch{Agents: map[string]string{}, Renamed: map[string]string{}}}
	p.read(top)
	if len(d.errs) > 0 {
		if d.more > 0 {
			d.errs = append(d.errs, fmt.Errorf("%s: and %d more", name, d.more))
		}
		return nil, errors.Join(d.errs...)
	}
	return p.patch, nil
}

// sketch is a graph that can be changed.
type sketch struct {
	fabric   string
	hosts    []string
	switches []string
	speeds   map[string]Speed // of hosts
	caps     map[string]Capability
	layers   map[string]int // that are not what follows from the links
	cables   []sketchLink
}

type sketchLink struct {
	ends      [2]string
	ports     [2]Port
	spec      LinkSpec
	addresses [2]netip.Addr
	at        *document.Value // where the patch has it; nil: as it was
}

func (l *sketchLink) end(i int) string {
	return fmt.Sprintf("%s:%d", l.ends[i], l.ports[i])
}

func sketchOf(g *Graph) *sketch {
	s := &sketch{fabric: g.fabric, speeds: map[string]Speed{}, caps: map[string]Capability{}, layers: map[string]int{}}
	natural := g.layersFromHosts()
	for n := range NodeID(g.Nodes()) {
		name := g.Name(n)
		if g.IsHost(n) {
			s.hosts, s.speeds[name] = append(s.hosts, name), g.Speed(n)
			continue
		}
		s.switches, s.caps[name] = append(s.switches, name), g.Capability(n)
		if natural[n] != g.layers[n] {
			s.layers[name] = g.Layer(n)
		}
	}
	for l, link := range g.AllLinks() {
		x := sketchLink{spec: link.LinkSpec}
		for i, end := range link.Ends {
			x.ends[i], x.ports[i], x.addresses[i] = g.Name(end.Node), end.Port, g.AddressAt(l, end.Node)
		}
		s.cables = append(s.cables, x)
	}
	return s
}

// patcher makes a patch.
type patcher struct {
	*documentReader
	*sketch
	known func(name string) bool // beyond the sketch; may be nil
	patch *Patch
}

func (p *patcher) read(top *document.Value) {
	f := p.object(top, "version", "name", "defaults", "rename", "remove", "hosts", "switches", "links", "agents", "down", "up")
	if f == nil {
		return
	}
	p.version(f["version"])
	into(f["name"], p.fabricName, &p.fabric)
	p.defaults(f["defaults"])
	p.pairs(f["rename"], p.rename)
	if v := f["remove"]; v != nil {
		gone := p.object(v, "hosts", "switches", "links")
		p.each(gone["links"], p.removeLink)
		p.each(gone["hosts"], func(v *document.Value) { p.removeNode(v, &p.hosts) })
		p.each(gone["switches"], func(v *document.Value) { p.removeNode(v, &p.switches) })
	}
	p.each(f["hosts"], p.host)
	p.each(f["switches"], p.addSwitch)
	p.each(f["links"], p.link)
	p.patch.Graph = p.build()
	p.pairs(f["agents"], p.agent)
	p.each(f["down"], func(v *document.Value) { p.patch.Down = p.state(v, p.patch.Down) })
	p.each(f["up"], func(v *document.Value) { p.patch.Up = p.state(v, p.patch.Up) })
}

// pairs calls do for the fields of an object whose keys are free; v may be nil.
func (p *patcher) pairs(v *document.Value, do func(v *document.Value, text string)) {
	if v == nil {
		return
	}
	if v.Kind != document.Object {
		p.fail(v, fmt.Errorf("must be an object with names as its fields, not %s: %w", v.Kind, ErrField))
		return
	}
	for _, item := range v.Items {
		if text, ok := p.text(item); ok {
			do(item, text)
		}
	}
}

func (p *patcher) rename(v *document.Value, to string) {
	if !p.check(v, CheckName(to)) {
		return
	}
	list := &p.hosts
	at := slices.Index(*list, v.Key)
	if at < 0 {
		list = &p.switches
		at = slices.Index(*list, v.Key)
	}
	switch {
	case at < 0:
		p.unknown(v, v.Key)
		return
	case slices.Contains(p.hosts, to) || slices.Contains(p.switches, to):
		p.fail(v, fmt.Errorf("%q: %w", to, ErrDuplicateName))
		return
	}
	(*list)[at] = to
	move(p.speeds, v.Key, to)
	move(p.caps, v.Key, to)
	move(p.layers, v.Key, to)
	for i := range p.cables {
		for k, end := range p.cables[i].ends {
			if end == v.Key {
				p.cables[i].ends[k] = to
			}
		}
	}
	first := v.Key
	for was, is := range p.patch.Renamed {
		if is == v.Key {
			first = was
		}
	}
	p.patch.Renamed[first] = to
}

func move[T any](m map[string]T, from, to string) {
	if x, ok := m[from]; ok {
		delete(m, from)
		m[to] = x
	}
}

func (p *patcher) unknown(v *document.Value, name string) {
	p.fail(v, fmt.Errorf("no host or switch is called %q: %w", name, ErrUnknownNode))
}

// removeNode removes a node, and the links at it.
func (p *patcher) removeNode(v *document.Value, from *[]string) {
	name, ok := p.text(v)
	if !ok {
		return
	}
	at := slices.Index(*from, name)
	if at < 0 {
		p.unknown(v, name)
		return
	}
	*from = slices.Delete(*from, at, at+1)
	delete(p.speeds, name)
	delete(p.caps, name)
	delete(p.layers, name)
	p.cables = slices.DeleteFunc(p.cables, func(l sketchLink) bool { return l.ends[0] == name || l.ends[1] == name })
}

// removeLink removes the link of a name, or the one at an end such as "h3:1".
func (p *patcher) removeLink(v *document.Value) {
	name, ok := p.text(v)
	if !ok {
		return
	}
	before := len(p.cables)
	p.cables = slices.DeleteFunc(p.cables, func(l sketchLink) bool {
		a, b := l.end(0), l.end(1)
		return name == a || name == b || name == a+"--"+b || name == b+"--"+a
	})
	if len(p.cables) == before {
		p.fail(v, fmt.Errorf("there is no link %q: %w", name, ErrUnknownNode))
	}
}

func (p *patcher) host(v *document.Value) {
	named, speed, given := p.hostFields(v)
	if named == nil {
		return
	}
	name := named.Text
	if !slices.Contains(p.hosts, name) {
		if !p.fresh(named, name) {
			return
		}
		p.hosts = append(p.hosts, name)
		p.speeds[name] = speed
	} else if given {
		p.speeds[name] = speed
	}
}

// fresh reports whether a node can be called that.
func (p *patcher) fresh(v *document.Value, name string) bool {
	if slices.Contains(p.hosts, name) || slices.Contains(p.switches, name) {
		p.fail(v, fmt.Errorf("%q: %w", name, ErrDuplicateName))
		return false
	}
	return p.check(v, CheckName(name))
}

func (p *patcher) addSwitch(v *document.Value) {
	f := p.object(v, switchFields...)
	named := p.required(v, f, "name")
	if named == nil {
		return
	}
	name, ok := p.text(named)
	if !ok {
		return
	}
	c, known := p.caps[name]
	if !known {
		if !p.fresh(named, name) {
			return
		}
		c = p.equipment.Switch
		p.switches = append(p.switches, name)
	}
	p.capability(f, &c)
	p.caps[name] = c
	if layer := f["layer"]; layer != nil {
		if n, ok := p.within(layer, "layer ", 1, MaxLayer, ErrLayer); ok {
			p.layers[name] = n
		}
	}
}

func (p *patcher) link(v *document.Value) {
	f := p.object(v, linkFields...)
	between := p.required(v, f, "between")
	if between == nil {
		return
	}
	ends, ok := pair(p.documentReader, between, "nodes' names", func(v *document.Value) (string, bool) {
		name, ok := p.text(v)
		if ok && !slices.Contains(p.hosts, name) && !slices.Contains(p.switches, name) {
			p.unknown(v, name)
			ok = false
		}
		return name, ok
	})
	var ports [2]Port
	if !into(f["ports"], p.ports, &ports) || !ok {
		return
	}
	l := &sketchLink{ends: ends, ports: ports, spec: p.equipment.Link}
	at := slices.IndexFunc(p.cables, func(x sketchLink) bool {
		return ports[0] != 0 && ports[1] != 0 && (x.end(0) == l.end(0) && x.end(1) == l.end(1) || x.end(0) == l.end(1) && x.end(1) == l.end(0))
	})
	turned := false
	if at < 0 {
		at = len(p.cables)
		p.cables = append(p.cables, *l)
	} else {
		turned = p.cables[at].ends[0] != ends[0] || p.cables[at].ports[0] != ports[0]
	}
	l = &p.cables[at]
	l.at = v
	p.linkSpec(f, &l.spec)
	if into(f["addresses"], p.addresses, &l.addresses) && f["addresses"] != nil && turned {
		l.addresses[0], l.addresses[1] = l.addresses[1], l.addresses[0]
	}
}

// build makes the graph, and places its errors.
func (p *patcher) build() *Graph {
	if len(p.errs) > 0 {
		return nil
	}
	b := &p.builder
	b.Fabric = p.fabric
	refs := make(map[string]Ref, len(p.hosts)+len(p.switches))
	var errs []error
	for _, name := range p.hosts {
		ref, err := b.AddHost(name)
		refs[name], errs = ref, append(errs, err)
		if p.speeds[name].Known() {
			errs = append(errs, b.SetSpeed(ref, p.speeds[name]))
		}
	}
	for _, name := range p.switches {
		ref, err := b.AddSwitch(name, p.caps[name])
		refs[name], errs = ref, append(errs, err)
		if layer := p.layers[name]; layer > 0 {
			errs = append(errs, b.SetLayer(ref, layer))
		}
	}
	for i := range p.cables {
		l := &p.cables[i]
		id, err := b.Connect(refs[l.ends[0]], l.ports[0], refs[l.ends[1]], l.ports[1], l.spec)
		if err == nil && l.addresses[0].IsValid() {
			err = b.SetAddresses(id, l.addresses[0], l.addresses[1])
		}
		p.linkError(l, err)
	}
	if err := errors.Join(errs...); err != nil {
		p.errs = append(p.errs, &FileError{File: p.file, Err: err})
	}
	if len(p.errs) > 0 {
		return nil
	}
	g, err := b.Build()
	if err == nil {
		return g
	}
	for _, e := range splitErrors(err) {
		var le *LinkError
		if !errors.As(e, &le) {
			p.errs = append(p.errs, &FileError{File: p.file, Err: e})
			continue
		}
		p.linkError(&p.cables[le.Link], le.Err)
	}
	return nil
}

// linkError reports an error about a link where the patch has it. One of two links at a
// port may be none of the patch's: then the other is.
func (p *patcher) linkError(l *sketchLink, err error) {
	if err == nil {
		return
	}
	if l.at == nil {
		for i := range p.cables {
			if x := &p.cables[i]; x.at != nil && (x.end(0) == l.end(0) || x.end(0) == l.end(1) || x.end(1) == l.end(0) || x.end(1) == l.end(1)) {
				l = x
			}
		}
	}
	if l.at == nil {
		p.errs = append(p.errs, &FileError{File: p.file, Err: fmt.Errorf("link %s--%s: %w", l.end(0), l.end(1), err)})
		return
	}
	p.fail(l.at, fmt.Errorf("link %s--%s: %w", l.end(0), l.end(1), err))
}

func (p *patcher) agent(v *document.Value, address string) {
	if !slices.Contains(p.switches, v.Key) && (slices.Contains(p.hosts, v.Key) || !p.isKnown(v.Key)) {
		p.fail(v, fmt.Errorf("no switch is called %q: %w", v.Key, ErrUnknownNode))
		return
	}
	p.patch.Agents[v.Key] = address
}

func (p *patcher) isKnown(name string) bool { return p.known != nil && p.known(name) }

// state reads the name of a node or link.
func (p *patcher) state(v *document.Value, to []string) []string {
	name, ok := p.text(v)
	g := p.patch.Graph
	if !ok || g == nil {
		return to
	}
	if l, found := g.LookupLink(name); found {
		return append(to, g.LinkName(l))
	}
	if _, found := g.Lookup(name); !found && !p.isKnown(name) {
		what := "no host or switch is called"
		if strings.Contains(name, ":") {
			what = "there is no link"
		}
		p.fail(v, fmt.Errorf("%s %q: %w", what, name, ErrUnknownNode))
		return to
	}
	return append(to, name)
}
