package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/topology"
)

// clabReader reads a containerlab file.
type clabReader struct {
	*draft
	defaults, kinds, groups *document.Value
	outside                 map[string]bool // nodes that are no part of the lab's fabric
}

// What containerlab's node kinds are in a fabric; all others are switches.
var (
	clabHosts   = []string{"linux", "ext-container"}
	clabBridges = []string{"bridge", "ovs-bridge"}
	// Images of Linux nodes that forward.
	clabRouters = regexp.MustCompile(`(?i)frr|bird|quagga|gobgp|vyos|openvswitch|bmv2|p4c|sonic`)
	// Types of links that join two nodes; a link without one is of the first.
	clabCables = []string{"veth", "veth-stitch"}
	// Ends of links that lead out of the lab.
	clabOutside = []string{"host", "mgmt-net", "macvlan", "dummy"}
	lastNumber  = regexp.MustCompile(`(\d+)\D*$`)
)

func readContainerlab(d *draft, data []byte) {
	top, syntax := document.Parse(data, document.Options{Aliases: true})
	if syntax != nil {
		d.fail(syntax.Line, fmt.Errorf("%w: %w", ErrSyntax, syntax))
		return
	}
	t := top.Field("topology")
	if t == nil || t.Kind != document.Object {
		d.fail(top.Line, fmt.Errorf("no topology with nodes and links in it: %w", ErrFormat))
		return
	}
	if name := top.Field("name"); name != nil && d.report.Fabric == "" {
		d.report.Fabric = fabricName(name.Text)
	}
	r := &clabReader{draft: d, defaults: t.Field("defaults"), kinds: t.Field("kinds"), groups: t.Field("groups"), outside: map[string]bool{}}
	for _, name := range clabOutside {
		r.outside[name] = true
	}
	if nodes := t.Field("nodes"); nodes != nil {
		r.eachField(nodes, r.node)
	}
	if links := t.Field("links"); links != nil {
		d.assume(links.Line, NoSpeed)
		d.assume(links.Line, NoLatency)
		for _, l := range links.Items {
			r.link(l)
		}
	}
}

// eachField calls f for the fields of an object, those that it merges (<<)
// included.
func (r *clabReader) eachField(v *document.Value, f func(*document.Value)) {
	for _, field := range v.Items {
		if field.Key == "<<" {
			r.eachField(field, f)
			continue
		}
		f(field)
	}
}

// field returns a node's field: its own, that of what it merges, of its group,
// or of the defaults. Kinds say nothing of what is asked here.
func (r *clabReader) field(v *document.Value, name string) string {
	for _, at := range []*document.Value{v, v.Field("<<"), r.group(v), r.defaults} {
		if at != nil {
			if f := at.Field(name); f != nil {
				return f.Text
			}
		}
	}
	return ""
}

func (r *clabReader) group(v *document.Value) *document.Value {
	if name := v.Field("group"); name != nil && r.groups != nil {
		return r.groups.Field(name.Text)
	}
	return nil
}

func (r *clabReader) node(v *document.Value) {
	kind := r.field(v, "kind")
	image := r.field(v, "image")
	if k := v.Field("image"); k == nil && r.kinds != nil {
		if of := r.kinds.Field(kind); of != nil && of.Field("image") != nil {
			image = of.Field("image").Text
		}
	}
	n := node{id: v.Key, label: v.Key, line: v.Line, kind: topology.Switch}
	switch {
	case kind == "host":
		r.outside[v.Key] = true
		r.note(v.Line, Skipped, "node "+v.Key, NotOfFabric, "")
		return
	case slices.Contains(clabBridges, kind):
		n.plain = true
		r.note(v.Line, Changed, kind+" "+v.Key, CannotReduce, "a switch that only forwards")
	case slices.Contains(clabHosts, kind) && !clabRouters.MatchString(image):
		n.kind, n.guess = topology.Host, true
	}
	r.add(n)
}

// link reads a link in either form: endpoints as "node:interface", or as objects
// with node and interface beneath a type.
func (r *clabReader) link(v *document.Value) {
	kind := ""
	if f := v.Field("type"); f != nil {
		kind = f.Text
	}
	if kind != "" && !slices.Contains(clabCables, kind) {
		r.note(v.Line, Skipped, "link of type "+short(kind), NotOfFabric, "")
		return
	}
	ends := v.Field("endpoints")
	if ends == nil || len(ends.Items) != 2 {
		r.fail(v.Line, fmt.Errorf("a link without two endpoints: write endpoints: [\"a:eth1\", \"b:eth1\"]: %w", ErrSyntax))
		return
	}
	l := link{spec: r.cfg.Equipment.Link, line: v.Line}
	for end, e := range ends.Items {
		name, port := e.Text, ""
		if e.Kind == document.Object {
			name, port = textOf(e.Field("node")), textOf(e.Field("interface"))
		} else {
			name, port, _ = strings.Cut(name, ":")
		}
		at, ok := r.byID[name]
		switch {
		case !ok && r.outside[name]:
			r.note(v.Line, Skipped, "link to "+name, NotOfFabric, "")
			return
		case !ok:
			r.fail(e.Line, fmt.Errorf("a link to %q, which is not among the nodes: add it there, or remove the link: %w", short(name), ErrReference))
			return
		}
		l.ends[end], l.ports[end] = at, portOf(port)
	}
	r.links = append(r.links, l)
}

// textOf returns the text of a value that may be absent.
func textOf(v *document.Value) string {
	if v == nil {
		return ""
	}
	return v.Text
}

// portOf returns the last number in an interface's name, or 0.
func portOf(name string) int {
	m := lastNumber.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}
