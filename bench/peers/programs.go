package peers

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed programs
var programs embed.FS

// Names of the programs' sources.
const (
	mpiSource  = "collectives_mpi.c"
	glooSource = "allreduce_gloo.cc"
)

// writeSources writes the sources into a directory.
func writeSources(dir string) error {
	sources, err := programs.ReadDir("programs")
	if err != nil {
		return err
	}
	for _, s := range sources {
		text, err := fs.ReadFile(programs, "programs/"+s.Name())
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, s.Name()), text, 0o600)); err != nil {
			return fmt.Errorf("writing the peers' programs: %w", err)
		}
	}
	return nil
}
