package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/store"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Look into the file that keeps a manager's state"}
	return family(cmd, &cobra.Command{
		Use:   "check FILE",
		Short: "Check a store that no manager has open",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return checkStore(cmd.OutOrStdout(), args[0]) },
	})
}

// checkStore tells what is in a store.
func checkStore(out io.Writer, path string) (err error) {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("store: %w", err) // Open would make it
	}
	s, err := store.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	records, err := s.Load()
	if err != nil {
		return err
	}
	groups, trees, last := 0, 0, uint32(0)
	for _, r := range records {
		switch {
		case r.Kind == manager.SpecRecord:
			groups++
		case r.Trees != nil:
			trees += len(r.Trees.Live)
		case r.Fleet != nil:
			last = r.Fleet.LastGroup
		}
	}
	_, err = fmt.Fprintf(out, "%s: version %d, %d records: %d groups with %d trees, the last number given is %d: sound\n",
		path, store.Version, len(records), groups, trees, last)
	return err
}
