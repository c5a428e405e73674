package main

import (
	"bytes"
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
	format             importer.Format // empty: by what the file has
	as, report, output string
	config             importer.Config
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
	process.Parsed(flags, &f.format, "format", "auto", "`format` of the file: auto, "+formats, parseFormat)
	process.OneOf(cmd, &f.as, "as", "output format: yaml or json", "yaml", "json")
	process.OneOf(cmd, &f.report, "report", "format of the report: text or json", "text", "json")
	flags.StringVar(&f.output, "output", "", "`file` to write (default: standard output)")
	flags.StringVar(&f.config.Fabric, "name", "", "name of the fabric (default: the one in the file)")
	process.Parsed(flags, &f.config.Hosts, "hosts", "", "nodes whose names match this `expression` are hosts", parsePattern)
	process.Parsed(flags, &f.config.Switches, "switches", "", "nodes whose names match this `expression` are switches", parsePattern)
	flags.IntVar(&f.config.HostsPerSwitch, "hosts-per-switch", f.config.HostsPerSwitch, "`hosts` on each switch, if the file has none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) }
	return cmd
}

func (f *importFlags) run(cmd *cobra.Command, path string) (err error) {
	var g *topology.Graph
	var report *importer.Report
	if path == "-" {
		g, report, err = importer.Import(cmd.InOrStdin(), "standard input", f.format, f.config)
	} else {
		g, report, err = importer.ImportFile(path, f.format, f.config)
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

func parseFormat(name string) (importer.Format, error) {
	if name == "auto" {
		return "", nil
	}
	return importer.ParseFormat(name)
}

func parsePattern(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	return regexp.Compile(text)
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
