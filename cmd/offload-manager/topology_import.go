package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/topology"
	"github.com/tributary-fabric/tributary/topology/importer"
)

// importFlags are those of topology import.
type importFlags struct {
	format, as, report, output string
	hosts, switches            string
	config                     importer.Config
}

func newTopologyImport() *cobra.Command {
	f := importFlags{config: importer.DefaultConfig()}
	names := make([]string, len(importer.Formats()))
	for i, name := range importer.Formats() {
		names[i] = string(name)
	}
	formats := strings.Join(names, ", ")
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Convert another program's file to a topology file: " + formats,
		Long: `import converts another program's file to a topology file, and reports on standard
error what was skipped, changed or assumed. Formats are ` + formats + `.
FILE may be - for standard input.`,
		Args: cobra.ExactArgs(1),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", "auto", "`format` of the file: auto, "+formats)
	flags.StringVar(&f.as, "as", "yaml", "output format: yaml or json")
	flags.StringVar(&f.report, "report", "text", "format of the report: text or json")
	flags.StringVar(&f.output, "output", "", "`file` to write (default: standard output)")
	flags.StringVar(&f.config.Fabric, "name", "", "name of the fabric (default: the one in the file)")
	flags.StringVar(&f.hosts, "hosts", "", "nodes whose names match this `expression` are hosts")
	flags.StringVar(&f.switches, "switches", "", "nodes whose names match this `expression` are switches")
	flags.IntVar(&f.config.HostsPerSwitch, "hosts-per-switch", f.config.HostsPerSwitch, "`hosts` on each switch, if the file has none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) }
	return cmd
}

func (f *importFlags) run(cmd *cobra.Command, path string) error {
	format, err := f.check()
	if err != nil {
		return err
	}
	var g *topology.Graph
	var report *importer.Report
	if path == "-" {
		g, report, err = importer.Import(cmd.InOrStdin(), "standard input", format, f.config)
	} else {
		g, report, err = importer.ImportFile(path, format, f.config)
	}
	if err != nil {
		return process.Check(nil, cmd.ErrOrStderr(), path, err, nil)
	}
	if f.report == "json" {
		err = view.JSON(cmd.ErrOrStderr(), report)
	} else {
		err = report.Text(cmd.ErrOrStderr())
	}
	if err != nil {
		return err
	}
	return f.write(cmd.OutOrStdout(), g)
}

// check reads the flags that are texts.
func (f *importFlags) check() (format importer.Format, err error) {
	if f.format != "auto" {
		if format, err = importer.ParseFormat(f.format); err != nil {
			return "", fmt.Errorf("%w --format: %w", errUsage, err)
		}
	}
	if f.as != "yaml" && f.as != "json" {
		return "", fmt.Errorf("%w --as %q: possible are yaml, json", errUsage, f.as)
	}
	if f.report != "text" && f.report != "json" {
		return "", fmt.Errorf("%w --report %q: possible are text, json", errUsage, f.report)
	}
	for _, pattern := range []struct {
		flag, text string
		to         **regexp.Regexp
	}{{"--hosts", f.hosts, &f.config.Hosts}, {"--switches", f.switches, &f.config.Switches}} {
		if pattern.text == "" {
			continue
		}
		if *pattern.to, err = regexp.Compile(pattern.text); err != nil {
			return "", fmt.Errorf("%w %s: %w", errUsage, pattern.flag, err)
		}
	}
	return format, nil
}

// write writes the fabric whole, or leaves a file as it was.
func (f *importFlags) write(out io.Writer, g *topology.Graph) error {
	var b bytes.Buffer
	as := topology.WriteYAML
	if f.as == "json" {
		as = topology.WriteJSON
	}
	if err := as(&b, g); err != nil {
		return err
	}
	if f.output != "" {
		return process.WriteFile(f.output, b.Bytes())
	}
	_, err := out.Write(b.Bytes())
	return err
}
