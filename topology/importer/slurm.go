package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
)

// slurmReader reads Slurm's topology.conf of topology/tree.
type slurmReader struct {
	*draft
	below []slurmChild
}

// slurmChild is a switch that stands below another, named before it is known to
// be there.
type slurmChild struct {
	parent int
	name   string
	line   int
}

func readSlurm(d *draft, data []byte) {
	r := &slurmReader{draft: d}
	held, from := "", 0
	d.lines(data, func(number int, line string) {
		if d.full() {
			return
		}
		line, _, _ = strings.Cut(line, "#")
		if held == "" {
			from = number
		}
		// Slurm joins lines as they stand: what goes on at the next line's begin
		// may be the middle of a list.
		if more, goesOn := strings.CutSuffix(strings.TrimRight(line, " \t"), `\`); goesOn && len(held) < MaxLine {
			held += more
			return
		}
		r.line(from, held+line)
		held = ""
	})
	r.line(from, held)
	r.hang()
	r.findCycles()
	d.note(0, Assumed, "cables", OneLink, "one link between a switch and each of what is below it")
	d.assume(0, NoSpeed)
	d.assume(0, NoLatency)
}

// slurmField is one Key=Value of a line.
type slurmField struct{ key, value string }

// line reads what one line says, such as
// SwitchName=s0 Nodes=tux[0-15] LinkSpeed=40. Keys are of either case.
func (r *slurmReader) line(number int, text string) {
	var fields []slurmField
	name := ""
	for _, word := range strings.Fields(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			r.fail(number, fmt.Errorf("%q is not written Key=Value: %w", short(word), ErrSyntax))
			return
		}
		f := slurmField{strings.ToLower(key), strings.Trim(value, `"`)}
		for _, other := range fields {
			if other.key == f.key {
				r.fail(number, fmt.Errorf("%s is there twice on one line: %w", short(key), ErrDuplicate))
				return
			}
		}
		if f.key == "switchname" {
			name = f.value
		}
		fields = append(fields, f)
	}
	switch {
	case name != "":
		r.addSwitch(number, name, fields)
	case len(fields) > 0:
		r.note(number, Skipped, "line of "+strconv.Quote(short(fields[0].key)), Unknown, "")
	}
}

func (r *slurmReader) addSwitch(number int, name string, fields []slurmField) {
	at, ok := r.add(node{id: name, label: name, line: number, kind: topology.Switch})
	if !ok {
		return
	}
	for _, f := range fields {
		switch f.key {
		case "switchname":
		case "nodes":
			for _, host := range r.names(number, f.value) {
				r.host(number, at, host)
			}
		case "switches":
			for _, child := range r.names(number, f.value) {
				r.below = append(r.below, slurmChild{parent: at, name: child, line: number})
			}
		case "linkspeed": // of no unit
			r.note(number, Skipped, "LinkSpeed", Unused, "")
		default:
			r.note(number, Skipped, "key "+strconv.Quote(short(f.key)), Unknown, "")
		}
	}
}

// names returns those of a hostlist, each once.
func (r *slurmReader) names(number int, text string) []string {
	names, err := hostlist(text)
	if err != nil {
		r.fail(number, err)
	}
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		if seen[name] {
			r.note(number, Skipped, strconv.Quote(name), Repeated, "")
			return true
		}
		seen[name] = true
		return false
	})
}

// host adds a link from a switch to a host, which other lines may have named.
// Its ID begins with a blank, which no name in the file can.
func (r *slurmReader) host(number, at int, name string) {
	host, ok := r.byID[" "+name]
	if !ok {
		if host, ok = r.add(node{id: " " + name, label: name, line: number, kind: topology.Host}); !ok {
			return
		}
	}
	r.links = append(r.links, link{ends: [2]int{host, at}, spec: r.cfg.Equipment.Link, line: number})
}

// hang links every switch to those that it stands below.
func (r *slurmReader) hang() {
	for _, c := range r.below {
		child, ok := r.byID[c.name]
		if !ok {
			r.fail(c.line, fmt.Errorf("%s stands above %q, which no line describes: add a line SwitchName=%s, or take it out of Switches: %w",
				r.nodes[c.parent].id, c.name, c.name, ErrReference))
			continue
		}
		r.links = append(r.links, link{ends: [2]int{child, c.parent}, spec: r.cfg.Equipment.Link, line: c.line})
	}
	for i, n := range r.nodes {
		if at, ok := r.byID[strings.TrimPrefix(n.id, " ")]; ok && at != i {
			r.fail(n.line, fmt.Errorf("%q is a host here and a switch on line %d: rename one of them: %w", n.label, r.nodes[at].line, ErrDuplicate))
		}
	}
}

// findCycles fails for a switch that stands below itself: it takes away those
// that stand above none, until no more can be.
func (r *slurmReader) findCycles() {
	children, above := make([]int, len(r.nodes)), make([][]int, len(r.nodes))
	for _, c := range r.below {
		if child, ok := r.byID[c.name]; ok {
			children[c.parent]++
			above[child] = append(above[child], c.parent)
		}
	}
	var free []int
	for i := range r.nodes {
		if children[i] == 0 {
			free = append(free, i)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, parent := range above[free[0]] {
			if children[parent]--; children[parent] == 0 {
				free = append(free, parent)
			}
		}
	}
	for _, c := range r.below {
		if child, ok := r.byID[c.name]; ok && children[c.parent] > 0 && children[child] > 0 {
			r.fail(c.line, fmt.Errorf("%s stands above %q and, by other lines, below it: take one out of Switches: %w",
				r.nodes[c.parent].id, c.name, ErrCycle))
			return
		}
	}
}
