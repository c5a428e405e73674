package importgraph

import "strings"

// Module is the path of the module that the rules are about.
const Module = "github.com/tributary-fabric/tributary"

// ownModules are the directories that have a go.mod of their own, and belong to
// the house all the same. Other modules inside are nobody's here.
var ownModules = map[string]bool{"bench": true}

// A Floor is a level of the house; a package may import those on its own floor
// and on lower ones.
type Floor int

// The floors, from the ground up.
const (
	Ground Floor = iota
	Decisions
	Cores
	Simulation
	Drivers
	Daemons
	Host
	Services
	Whole
	Commands
	Bench
)

var floorNames = [...]string{"ground", "decisions", "cores", "simulation", "drivers", "daemons", "host", "services", "whole", "cmd", "bench"}

// String returns the floor's name.
func (f Floor) String() string { return floorNames[f] }

// A place is one package or, if it ends in "/...", a package and all below it.
type place string

func (p place) holds(path string) bool {
	root, tree := strings.CutSuffix(string(p), "/...")
	return path == root || tree && strings.HasPrefix(path, root+"/")
}

// house reports the floor of every package, by its path in the module. A place
// that is the package alone counts before those that hold others, too, and a
// longer one of these before a shorter.
var house = map[place]Floor{
	"bench/...":              Bench, // a module of its own
	"cmd/...":                Commands,
	"examples/...":           Commands,
	"internal/command/...":   Commands, // what commands share
	"internal/embedded":      Whole,
	"internal/picture/...":   Whole,
	"hostlib/scoll/...":      Services,
	"hostlib":                Host,
	"internal/managerd":      Daemons,
	"internal/agentd":        Daemons,
	"internal/store":         Daemons,
	"internal/settings":      Daemons,
	"hostlib/membership":     Drivers,
	"hostlib/revoke":         Drivers,
	"hostlib/rail":           Drivers,
	"internal/rpc":           Drivers,
	"internal/gnmi":          Drivers,
	"internal/p4rt/...":      Drivers,
	"internal/dataplane/...": Drivers,
	"internal/transport/...": Drivers,
	"internal/peer":          Drivers,
	"internal/netlab":        Drivers, // for tests and bench
	"internal/loopback":      Drivers,
	"internal/nic":           Drivers,
	"internal/processor":     Drivers,
	"internal/runner":        Drivers,
	"internal/pki":           Drivers,
	"internal/admin":         Drivers,
	"internal/histogram":     Drivers,
	"internal/sim/...":       Simulation,
	"internal/core/...":      Cores,
	"pathsel":                Decisions,
	"pathsel/spread":         Decisions,
	"pathsel/steiner/...":    Decisions,
	"p4/...":                 Decisions,
	"internal/core":          Ground,
	"internal/wire/...":      Ground,
	"internal/version":       Ground,
	"internal/printable":     Ground,
	"internal/document":      Ground,
	"internal/importgraph":   Ground,
	"internal/glossary":      Ground, // for tests alone
	"internal/transcript":    Ground, // for tests alone
	"internal/reducetest":    Ground, // for tests alone
	"topology/...":           Ground,
	"reduce/...":             Ground,
	"hostlib/tree":           Ground,
	"api/...":                Ground,
}

// FloorOf returns the floor of the package at path, which is relative to the
// module, and whether it has one.
func FloorOf(path string) (Floor, bool) {
	if floor, ok := house[place(path)]; ok {
		return floor, true
	}
	for root := path; ; {
		if floor, ok := house[place(root+"/...")]; ok {
			return floor, true
		}
		cut := strings.LastIndexByte(root, '/')
		if cut < 0 {
			return 0, false
		}
		root = root[:cut]
	}
}
