package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func newReport() *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use:   "report FILE...",
		Short: "Make tables of the JSON output of fabric and peers",
		Long: `report reads the output of fabric and peers with --format json, and writes the
tables of docs/benchmarks.md. The last record of a row counts, so rows can be
measured again one by one.`,
		Example: "  collbench report --into docs/benchmarks.md peers.json fabric.json",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			var r report.Records
			for _, name := range files {
				if err := readRecords(&r, name); err != nil {
					return err
				}
			}
			if into != "" {
				return insert(into, r.Markdown())
			}
			_, err := io.WriteString(cmd.OutOrStdout(), r.Markdown())
			return err
		},
	}
	cmd.Flags().StringVar(&into, "into", "", "`page` whose tables are replaced")
	return cmd
}

func readRecords(r *report.Records, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(r.Read(f, name), f.Close())
}

func insert(path, tables string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := report.Insert(string(page), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return process.WriteFile(path, []byte(text))
}
