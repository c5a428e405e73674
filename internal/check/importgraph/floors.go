package importgraph

import "strings"

// Module is the path of the module that the rules are about.
const Module = "github.com/tributary-fabric/tributary"

// ownModules are the directories that have a go.mod of their own, and belong to
// the house all the same. Other modules inside are nobody's here.
var ownModules = map[string]bool{"bench": true}

// A Floor is a level of the house.
type Floor int

// The floors, from the ground up.
const (
	Ground Floor = iota
	Decisions
	Cores
	Simulation
	Drivers
	Host
	Services
	Daemons
	Whole
	Commands
	Bench
)

var floorNames = [...]string{"ground", "decisions", "cores", "simulation", "drivers", "host", "services", "daemons", "whole", "cmd", "bench"}

// String returns the floor's name.
func (f Floor) String() string { return floorNames[f] }

// A folder is a directory with all below it, those aside that have a line of
// their own.
type folder struct {
	path  string
	floor Floor
}

// folders stand one upon the other: a package may import from its own folder
// and from those below it in this list.
var folders = []folder{
	{"bench", Bench},
	{"cmd", Commands},
	{"examples", Commands},
	{"internal/whole", Whole},
	{"internal/daemon", Daemons},
	{"hostlib/scoll", Services},
	{"hostlib/conformance", Services},
	{"hostlib/elastic", Services},
	{"hostlib", Host},
	{"membership", Host},
	{"hostlib/rail", Host},
	{"internal/driver", Drivers},
	{"internal/sim", Simulation},
	{"internal/core", Cores},
	{"pathsel", Decisions},
	{"p4", Decisions},
	{"internal/planning", Decisions},
	{"topology", Ground},
	{"internal/wire", Ground},
	{"internal/check", Ground}, // for tests alone
	{"internal/ground", Ground},
	{"ranktree", Ground},
	{"reduce", Ground},
	{"api", Ground},
}

// folderOf returns where in folders the package at path is, which is relative to
// the module; -1 if it is in none.
func folderOf(path string) int {
	found := -1
	for i, f := range folders {
		if place(f.path+"/...").holds(path) && (found < 0 || len(f.path) > len(folders[found].path)) {
			found = i
		}
	}
	return found
}

// FloorOf returns the floor of the package at path, which is relative to the
// module, and whether it has one.
func FloorOf(path string) (Floor, bool) {
	i := folderOf(path)
	if i < 0 {
		return 0, false
	}
	return folders[i].floor, true
}

// A place is one package or, if it ends in "/...", a package and all below it.
type place string

func (p place) holds(path string) bool {
	root, tree := strings.CutSuffix(string(p), "/...")
	return path == root || tree && strings.HasPrefix(path, root+"/")
}
