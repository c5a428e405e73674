package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tributary-fabric/tributary/bench/field"
)

// mergeProfiles writes one profile a side of what its processes did, by the
// size of the vectors.
func mergeProfiles(dir string, size int, files map[field.Side][]string) error {
	for side, paths := range files {
		merged, err := mergedProfile(paths)
		if err != nil {
			return fmt.Errorf("the profile of the %s: %w", side, err)
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%d.pprof", side, size)))
		if err != nil {
			return err
		}
		if err := errors.Join(merged.Write(f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}
