package topology

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSpec is wrapped by every error of Parse.
var ErrSpec = errors.New("invalid fabric specification")

// generator is a kind of fabric that Parse knows by name.
type generator struct {
	name      string
	arguments string // as the help shows them, with what stands before them
	help      string
	least     int // arguments
	most      int
	make      func(e Equipment, n []int) (*Graph, error)
}

var generators = []generator{
	{"fat-tree", ":K", "fat-tree of K-port switches (K even)", 1, 1,
		func(e Equipment, n []int) (*Graph, error) { return e.FatTree(n[0]) }},
	{"leaf-spine", ":HOSTS,LEAVES,SPINES", "HOSTS hosts on each leaf", 3, 3,
		func(e Equipment, n []int) (*Graph, error) { return e.LeafSpine(n[0], n[1], n[2]) }},
	{"clos", ":HOSTS,LEAVES,AGGS,CORES,PODS", "three tiers: HOSTS a leaf, LEAVES and AGGS a pod, CORES above each agg", 5, 5,
		func(e Equipment, n []int) (*Graph, error) {
			return e.Clos(ClosShape{Hosts: n[0], Leaves: n[1], Aggs: n[2], Cores: n[3], Pods: n[4]})
		}},
	{"rail", ":HOSTS,RAILS,PODS,SPINES", "HOSTS a pod with a port for each rail, a leaf a rail and pod", 4, 4,
		func(e Equipment, n []int) (*Graph, error) {
			return e.Rail(RailShape{Hosts: n[0], Rails: n[1], Pods: n[2], Spines: n[3]})
		}},
	{"dragonfly", ":P,A,H,G", "P hosts and H global ports a switch, A switches a group, G groups", 4, 4,
		func(e Equipment, n []int) (*Graph, error) {
			return e.Dragonfly(DragonflyShape{Hosts: n[0], Switches: n[1], Global: n[2], Groups: n[3]})
		}},
	{"torus", ":HOSTS,SIDE,...", "HOSTS on each switch, SIDE switches along each dimension", 2, 1 + MaxDimensions,
		func(e Equipment, n []int) (*Graph, error) { return e.Torus(GridShape{Hosts: n[0], Sides: n[1:]}) }},
	{"hyperx", ":HOSTS,SIDE,...", "the same, all switches of a row with links to each other", 2, 1 + MaxDimensions,
		func(e Equipment, n []int) (*Graph, error) { return e.HyperX(GridShape{Hosts: n[0], Sides: n[1:]}) }},
	{"four-switches", "[:HOSTS]", "four switches, HOSTS hosts on each (18)", 0, 1,
		func(e Equipment, n []int) (*Graph, error) {
			if len(n) == 0 {
				n = []int{FourSwitchesHosts}
			}
			return e.FourSwitches(n[0])
		}},
}

// Specs reports, a line each, what Parse understands: for the help of a command.
var Specs = func() string {
	lines := make([]string, len(generators))
	for i, g := range generators {
		lines[i] = fmt.Sprintf("%-35s %s", g.name+g.arguments, g.help)
	}
	return strings.Join(lines, "\n")
}()

// Parse generates the fabric that a specification names: "fat-tree:4",
// "leaf-spine:4,2,2" (hosts a leaf, leaves, spines), "four-switches". Specs has
// all of them.
func Parse(spec string) (*Graph, error) { return DefaultEquipment().Parse(spec) }

// largest is the largest number of a specification.
const largest = 1 << 30

// Parse is the function Parse with this equipment.
func (e Equipment) Parse(spec string) (*Graph, error) {
	name, list, hasArguments := strings.Cut(spec, ":")
	var arguments []int
	if hasArguments {
		for _, field := range strings.Split(list, ",") {
			n, ok := decimal(field, largest)
			if !ok && field != "" && strings.Trim(field, "0123456789") == "" {
				return nil, fmt.Errorf("fabric %q: %s is more than %d: %w", spec, field, largest, ErrSpec)
			}
			if !ok {
				return nil, fmt.Errorf("fabric %q: %q is not a number: %w", spec, field, ErrSpec)
			}
			arguments = append(arguments, n)
		}
	}
	g, err := e.generate(name, arguments)
	if err != nil {
		return nil, fmt.Errorf("fabric %q: %w: %w", spec, err, ErrSpec)
	}
	return g, nil
}

func (e Equipment) generate(name string, arguments []int) (*Graph, error) {
	forms := make([]string, len(generators))
	for i, g := range generators {
		forms[i] = g.name + g.arguments
		switch {
		case g.name != name:
		case len(arguments) < g.least || len(arguments) > g.most:
			return nil, fmt.Errorf("%d numbers: it is written %s", len(arguments), forms[i])
		default:
			return g.make(e, arguments)
		}
	}
	return nil, errors.New("not one of " + strings.Join(forms, ", "))
}

// isSpec reports whether s begins like a specification rather than a path.
func isSpec(s string) bool {
	name, _, _ := strings.Cut(s, ":")
	for _, g := range generators {
		if g.name == name {
			return true
		}
	}
	return false
}

// Open returns the fabric of a command's argument: a specification as in Parse,
// or else the path of a file as in ReadFile.
func Open(argument string) (*Graph, error) {
	if isSpec(argument) {
		return Parse(argument)
	}
	return ReadFile(argument)
}
