// Package peers holds the programs that measure what users have today, Open
// MPI, MPICH and Gloo, beside Tributary: small sources of C and C++, which
// `collbench peers` compiles where it runs.
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
	MPI  = "allreduce_mpi.c"
	Gloo = "allreduce_gloo.cc"
)

// Write writes all sources into a directory.
func Write(dir string) error {
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
