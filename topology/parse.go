package topology

import (
	"errors"
	"fmt"
	"strings"
)

// ErrSpec is wrapped by every error of Parse.
var ErrSpec = errors.New("invalid fabric specification")

// Specs tells, a line each, what Parse understands: for the help of a command.
const Specs = `fat-tree:K                          fat-tree of K-port switches (K even)
leaf-spine:HOSTS,LEAVES,SPINES      HOSTS hosts on each leaf
four-switches[:HOSTS]               four switches, HOSTS hosts on each (18)`

// Parse generates the fabric that a specification names: "fat-tree:4",
// "leaf-spine:4,2,2" (hosts a leaf, leaves, spines), "four-switches".
func Parse(spec string) (*Graph, error) { return DefaultEquipment().Parse(spec) }

// Parse is the function Parse with this equipment.
func (e Equipment) Parse(spec string) (*Graph, error) {
	name, list, hasArguments := strings.Cut(spec, ":")
	var arguments []int
	if hasArguments {
		for _, field := range strings.Split(list, ",") {
			n, ok := decimal(field, 1<<30)
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
	switch {
	case name == "fat-tree" && len(arguments) == 1:
		return e.FatTree(arguments[0])
	case name == "leaf-spine" && len(arguments) == 3:
		return e.LeafSpine(arguments[0], arguments[1], arguments[2])
	case name == "four-switches" && len(arguments) == 0:
		return e.FourSwitches(FourSwitchesHosts)
	case name == "four-switches" && len(arguments) == 1:
		return e.FourSwitches(arguments[0])
	}
	return nil, errors.New("not one of fat-tree:K, leaf-spine:HOSTS,LEAVES,SPINES, four-switches[:HOSTS]")
}

// isSpec reports whether s begins like a specification rather than a path.
func isSpec(s string) bool {
	name, _, _ := strings.Cut(s, ":")
	return name == "fat-tree" || name == "leaf-spine" || name == "four-switches"
}

// Open returns the fabric of a command's argument: a specification as in Parse,
// or else the path of a file as in ReadFile.
func Open(argument string) (*Graph, error) {
	if isSpec(argument) {
		return Parse(argument)
	}
	return ReadFile(argument)
}
