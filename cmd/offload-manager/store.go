package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Inspect and repair a manager's store"}
	return process.Family(cmd, newStoreCheck(), newStoreRemove())
}

func newStoreCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check the store of a manager that does not run",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], func(_ *store.File, records []manager.Record) error {
				return notifyStore(cmd.OutOrStdout(), args[0], records)
			})
		},
	}
}

func newStoreRemove() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove FILE GROUP",
		Short: "Remove a group, by name, unique prefix or number, from the store of a manager that does not run",
		Long: `remove deletes one group from a store, for example one whose hosts have left the
topology for good. Without --yes it only reports what it would remove. The group's number and epochs are not reused. When the
manager runs again, the switches free their state of the group; running members
continue over hosts, and create the group again if they can.`,
		Example: "  offload-manager store remove manager.db job-17/1f2e3d4c5b6a7988 --yes",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withStore(args[0], func(s *store.File, records []manager.Record) error {
				return removeGroup(cmd.OutOrStdout(), s, records, args[1], yes)
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove it")
	return cmd
}

// withStore calls do with a store that is there, and all its records.
func withStore(path string, do func(*store.File, []manager.Record) error) (err error) {
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
	return do(s, records)
}

// notifyStore reports what is in a store.
func notifyStore(out io.Writer, path string, records []manager.Record) error {
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
	_, err := fmt.Fprintf(out, "%s: version %d, %d records: %d groups with %d trees, the last number given is %d: valid\n",
		path, store.Version, len(records), groups, trees, last)
	return err
}

// errNotRemoved: remove was not allowed to.
var errNotRemoved = errors.New("nothing was removed: --yes removes it")

// removeGroup removes the records of a group.
func removeGroup(out io.Writer, s *store.File, records []manager.Record, which string, yes bool) error {
	spec, err := findSpec(records, which)
	if err != nil {
		return fmt.Errorf("%s: %w", s.Path(), err)
	}
	last, trees := uint64(0), 0
	var gone []manager.Record
	for _, r := range records {
		last = max(last, r.Seq)
		if r.Group != spec.Group || r.Kind != manager.SpecRecord && r.Kind != manager.TreesRecord {
			continue
		}
		if r.Trees != nil {
			trees = len(r.Trees.Live)
		}
		gone = append(gone, manager.Record{Kind: r.Kind, Group: r.Group, Delete: true})
	}
	for i := range gone {
		gone[i].Seq = last + 1 + uint64(i)
	}
	what := fmt.Sprintf("Group %d, %s: %d members (%s), %d trees", spec.Group, spec.Spec.Name, len(spec.Spec.Members), some(spec.Spec.Members), trees)
	if !yes {
		return fmt.Errorf("%s: %w", what, errNotRemoved)
	}
	if err := s.Save(gone); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, what+": removed")
	return err
}

func findSpec(records []manager.Record, which string) (*manager.Record, error) {
	specs := map[uint32]*manager.Record{}
	var groups []manager.Summary
	for i := range records {
		if r := &records[i]; r.Kind == manager.SpecRecord {
			specs[r.Group] = r
			groups = append(groups, manager.Summary{Group: r.Group, Name: r.Spec.Name})
		}
	}
	g, err := find(groups, which)
	return specs[g.Group], err
}
