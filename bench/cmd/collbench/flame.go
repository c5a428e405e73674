package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/flame"
)

func newFlame() *cobra.Command {
	var title string
	cmd := &cobra.Command{
		Use:   "flame PROFILE...",
		Short: "Draw profiles of the processor as a flame graph (SVG)",
		Long: `flame draws what several profiles tell together, such as those that the command
fabric writes by --cpuprofile. Time in the kernel shows as the system call that it
was spent in; of those with --kernel as the kernel's functions, so marked.`,
		Example: "  collbench flame profiles/hosts-16777216.pprof > hosts.svg",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			p, err := mergedProfile(files)
			if err != nil {
				return err
			}
			root, err := flame.TreeOf(p, "all")
			if err != nil {
				return err
			}
			return flame.Draw(cmd.OutOrStdout(), root, title)
		},
	}
	cmd.Flags().StringVar(&title, "title", "Processor time", "`text` above the drawing")
	return cmd
}

// mergedProfile returns what several files tell together.
func mergedProfile(files []string) (*profile.Profile, error) {
	var all []*profile.Profile
	for _, name := range files {
		p, err := readProfile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return profile.Merge(all)
}

func readProfile(path string) (*profile.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := profile.Parse(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}
