package version

import (
	"runtime/debug"
	"sync"
)

// reported is what the linker was given; empty: nothing.
var reported string

// development is the version of what was built from a tree without a tag.
const development = "(devel)"

// String returns the version of this process, such as v1.2.3.
func String() string {
	if reported != "" {
		return reported
	}
	return built()
}

// built returns what the build recorded.
var built = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return of(info)
})

// of returns the version of a build: the module's, or the revision of the
// source where it has none.
func of(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != development {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return development + " " + s.Value[:min(len(s.Value), 12)]
		}
	}
	return development
}
