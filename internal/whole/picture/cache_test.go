package picture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/picture/cachedir"
)

// go-graphviz must have been initialised between cachedir and this package:
// then its cache lies in the user's own directory, and TMPDIR is as it was.
func TestCacheIsTheUsersOwn(t *testing.T) {
	if cachedir.Dir() == "" {
		t.Fatal("no directory could be made")
	}
	if strings.HasPrefix(os.TempDir(), cachedir.Dir()) {
		t.Errorf("TMPDIR is still %s", os.TempDir())
	}
	if strings.HasPrefix(cachedir.Dir(), filepath.Join(os.TempDir(), "tributary-")) {
		t.Skip("there is no cache directory for this user (HOME or XDG_CACHE_HOME): the cache was removed again")
	}
	if _, err := os.Stat(filepath.Join(cachedir.Dir(), "go-graphviz")); err != nil {
		t.Errorf("go-graphviz was initialised before cachedir: %v", err)
	}
}
