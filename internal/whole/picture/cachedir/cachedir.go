// Package cachedir moves the cache of go-graphviz out of reach of other users.
//
// When a program that imports go-graphviz starts, that package compiles its
// WebAssembly module and keeps the native code in "go-graphviz" under the
// temporary directory: on a machine with several users the second one cannot
// open it, and the program panics; worse, one user could leave code for
// another there. There is no setting for it, and no call comes before it.
//
// So this package, which imports os alone, points TMPDIR to a directory of the
// user's own while packages are initialised; internal/whole/picture, which is
// initialised after go-graphviz, calls Restore. That it is initialised before
// go-graphviz follows from Go's order (of the packages whose imports are
// ready, the first by path): go-graphviz waits for packages of the standard
// library, such as strings and path/filepath, that come after this one. A test
// of internal/whole/picture sees to it that this stays so.
package cachedir

import "os"

var (
	dir       string // of the cache; empty: TMPDIR was left alone
	passing   bool   // dir is for this process alone
	before    string // TMPDIR, and
	hadBefore bool   // whether there was one
)

func init() {
	before, hadBefore = os.LookupEnv("TMPDIR")
	if own, err := os.UserCacheDir(); err == nil {
		own += string(os.PathSeparator) + "tributary"
		if os.MkdirAll(own, 0o700) == nil && writable(own) {
			use(own)
			return
		}
	}
	if once, err := os.MkdirTemp("", "tributary-"); err == nil {
		passing = true
		use(once)
	}
}

func use(d string) {
	dir = d
	_ = os.Setenv("TMPDIR", d) // the name is valid
}

// writable reports whether this process may make files in d.
func writable(d string) bool {
	probe, err := os.MkdirTemp(d, "probe-")
	return err == nil && os.Remove(probe) == nil
}

// Dir returns the directory that stands in for the temporary one.
func Dir() string { return dir }

// Restore gives TMPDIR its value back, and removes a directory that was for
// this process alone.
func Restore() {
	if dir == "" {
		return
	}
	if hadBefore {
		_ = os.Setenv("TMPDIR", before)
	} else {
		_ = os.Unsetenv("TMPDIR")
	}
	if passing {
		_ = os.RemoveAll(dir) // what is left is empty of meaning
	}
}
