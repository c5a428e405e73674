package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/offload-manager/view"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/topology"
	"github.com/tributary-fabric/tributary/topology/importer"
)

// changeFlags are those of commands that change the topology.
type changeFlags struct {
	client  *client
	agents  []string
	version uint64
	dryRun  bool
	format  *string
}

func addChange(cmd *cobra.Command) *changeFlags {
	f := &changeFlags{client: addClient(cmd)}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.agents, "agent", nil, "address of a switch's agent, as `SWITCH=HOST:PORT`; SWITCH= for none; may be repeated")
	flags.Uint64Var(&f.version, "version", 0, "fail if the operator's part is not this `version` any more")
	flags.BoolVar(&f.dryRun, "dry-run", false, "report what would change, and change nothing")
	f.format = formatFlag(cmd)
	return f
}

// file returns what the flags say beside the content.
func (f *changeFlags) file(name string, content []byte) (rpc.TopologyFile, error) {
	file := rpc.TopologyFile{Name: name, Content: content, Agents: map[string]string{}, Version: f.version, DryRun: f.dryRun}
	for _, text := range f.agents {
		name, address, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return file, fmt.Errorf("%w --agent %q: it is written SWITCH=HOST:PORT", errUsage, text)
		}
		file.Agents[name] = address
	}
	return file, nil
}

// run makes a call with a file, and reports what has changed.
func (f *changeFlags) run(cmd *cobra.Command, file rpc.TopologyFile, title string, call func(*rpc.ManagerClient, context.Context, rpc.TopologyFile) (rpc.TopologyDifference, error)) error {
	return f.client.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
		d, err := call(m, ctx, file)
		if err != nil {
			return err
		}
		v := view.NewDifference(d)
		if *f.format == "json" {
			return view.JSON(cmd.OutOrStdout(), v)
		}
		return v.Text(cmd.OutOrStdout(), title)
	})
}

func (f *changeFlags) title() string {
	if f.dryRun {
		return "Would change"
	}
	return "Changed"
}

func newTopologySet() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set FILE",
		Short: "Replace the operator's part of the topology",
		Long: `set replaces the operator's part of the topology by a file, a specification or
FORMAT:FILE to import, while the manager runs. Nodes of the same name, and links
between the same ports, stay what they are, and trees on them run on; trees on
anything else are replaced. The manager stores it, and uses it after a restart, unless
its configuration has another topology by then.`,
		Example: "  offload-manager topology set fabric.yaml --dry-run\n  offload-manager topology set fabric.yaml --agent spine-2=10.0.0.9:7410",
		Args:    cobra.ExactArgs(1),
	}
	f := addChange(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		content, err := fabricFile(cmd, args[0])
		if err != nil {
			return err
		}
		file, err := f.file(args[0], content)
		if err != nil {
			return err
		}
		return f.run(cmd, file, f.title(), (*rpc.ManagerClient).SetTopology)
	}
	return cmd
}

// fabricFile returns the fabric of an argument in the file format.
func fabricFile(cmd *cobra.Command, argument string) ([]byte, error) {
	g, report, err := importer.Open(argument)
	if report != nil {
		if err := report.Text(cmd.ErrOrStderr()); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = topology.WriteYAML(&b, g)
	return b.Bytes(), err
}

// editFlags are the edits of topology edit.
type editFlags struct {
	patch                   patchDocument // but for these, which are written otherwise:
	switches, links, rename []string
}

func newTopologyEdit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit [PATCH]",
		Short: "Change the operator's part of the topology",
		Long: `edit changes the operator's part of the topology, while the manager runs: by flags, or
by a patch, a file as docs/topology.md describes; - is standard input. What the edit
does not name stays as it is. Without any of these, at a terminal, it opens the whole
part in VISUAL, EDITOR or vi, and sets what is saved.`,
		Example: `  offload-manager topology edit
  offload-manager topology edit --add-host h9 --add-link h9:1,leaf-0:9
  offload-manager topology edit --remove-link h3:1 --add-link h3:1,leaf-2:4
  offload-manager topology edit --down leaf-0:3--spine-1:1
  offload-manager topology edit patch.yaml --dry-run`,
		Args: cobra.MaximumNArgs(1),
	}
	f, e := addChange(cmd), editFlags{}
	flags := cmd.Flags()
	list := func(to *[]string, name, help string) { flags.StringArrayVar(to, name, nil, help+"; may be repeated") }
	list(&e.patch.Hosts, "add-host", "add a host of this `name`")
	list(&e.switches, "add-switch", "add a switch of this `name`")
	list(&e.links, "add-link", "add a link, as `NODE:PORT,NODE:PORT`; without a port the lowest that is free")
	list(&e.patch.Remove.Hosts, "remove-host", "remove a `host` and its links")
	list(&e.patch.Remove.Switches, "remove-switch", "remove a `switch` and its links")
	list(&e.patch.Remove.Links, "remove-link", "remove a `link`, as NODE:PORT--NODE:PORT, or by an end, as NODE:PORT")
	list(&e.rename, "rename", "rename a node, as `OLD=NEW`")
	list(&e.patch.Down, "down", "take a node or `link` out of use")
	list(&e.patch.Up, "up", "put a node or `link` back into use")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, content, given, err := e.read(cmd.InOrStdin(), args)
		if err != nil {
			return err
		}
		if !given && len(f.agents) == 0 {
			if !terminal.Is(cmd.InOrStdin()) {
				return fmt.Errorf("%w: no patch and no edits; without them standard input has to be a terminal, for an editor", errUsage)
			}
			return f.edit(cmd)
		}
		file, err := f.file(name, content)
		if err != nil {
			return err
		}
		return f.run(cmd, file, f.title(), (*rpc.ManagerClient).EditTopology)
	}
	return cmd
}

// read returns the patch of a file, or of the flags, and whether there is any.
func (e *editFlags) read(stdin io.Reader, args []string) (name string, content []byte, given bool, err error) {
	content, err = e.document()
	given = string(content) != "{}"
	switch {
	case err != nil:
		return "", nil, false, err
	case len(args) == 0:
		return "the flags", content, given, nil
	case given:
		return "", nil, false, fmt.Errorf("%w: edits are given by a patch or by flags, not by both", errUsage)
	case args[0] == "-":
		content, err = io.ReadAll(stdin)
		return "standard input", content, true, err
	}
	content, err = os.ReadFile(args[0])
	return args[0], content, true, err
}

// document returns the flags as a patch.
func (e *editFlags) document() ([]byte, error) {
	p := e.patch
	for _, name := range e.switches {
		p.Switches = append(p.Switches, map[string]string{"name": name})
	}
	for _, text := range e.rename {
		was, is, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%w --rename %q: it is written OLD=NEW", errUsage, text)
		}
		if p.Rename == nil {
			p.Rename = map[string]string{}
		}
		p.Rename[was] = is
	}
	for _, text := range e.links {
		l, ok := linkOf(text)
		if !ok {
			return nil, fmt.Errorf("%w --add-link %q: it is written NODE:PORT,NODE:PORT, both with a port or none", errUsage, text)
		}
		p.Links = append(p.Links, l)
	}
	return json.Marshal(p)
}

// patchDocument is a patch as encoding/json writes it.
type patchDocument struct {
	Rename map[string]string `json:"rename,omitempty"`
	Remove struct {
		Hosts    []string `json:"hosts,omitempty"`
		Switches []string `json:"switches,omitempty"`
		Links    []string `json:"links,omitempty"`
	} `json:"remove,omitzero"`
	Hosts    []string            `json:"hosts,omitempty"`
	Switches []map[string]string `json:"switches,omitempty"`
	Links    []patchLink         `json:"links,omitempty"`
	Down     []string            `json:"down,omitempty"`
	Up       []string            `json:"up,omitempty"`
}

type patchLink struct {
	Between [2]string `json:"between"`
	Ports   []int     `json:"ports,omitempty"`
}

// linkOf reads a link as NODE:PORT,NODE:PORT, or without ports.
func linkOf(text string) (l patchLink, ok bool) {
	a, b, ok := strings.Cut(text, ",")
	for i, end := range []string{a, b} {
		name, port, hasPort := strings.Cut(end, ":")
		l.Between[i] = name
		if hasPort {
			n, err := strconv.Atoi(port)
			if err != nil {
				return l, false
			}
			l.Ports = append(l.Ports, n)
		}
	}
	return l, ok && len(l.Ports) != 1
}

func newTopologyDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff [FILE]",
		Short: "Compare the map in effect with a file, or with the operator's part",
		Long: `diff reports what a topology file, specification or FORMAT:FILE has other than the map
in effect: what "topology set" would change where nothing is discovered. Without FILE
it reports what the map has other than the operator's part: what was discovered.`,
		Args: cobra.MaximumNArgs(1),
	}
	f := changeFlags{client: addClient(cmd), format: formatFlag(cmd)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		file, title := rpc.TopologyFile{}, "The map, against the operator's part"
		if len(args) > 0 {
			content, err := fabricFile(cmd, args[0])
			if err != nil {
				return err
			}
			file, title = rpc.TopologyFile{Name: args[0], Content: content}, args[0]+", against the map"
		}
		return f.run(cmd, file, title, (*rpc.ManagerClient).DiffTopology)
	}
	return cmd
}

func newTopologyHistory() *cobra.Command {
	cmd := &cobra.Command{Use: "history", Short: "Show the last changes of the map, with their causes", Args: cobra.NoArgs}
	c, format := addClient(cmd), formatFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
			all, err := m.TopologyHistory(ctx)
			if err != nil {
				return err
			}
			v := view.NewMapChanges(all)
			if *format == "json" {
				return view.JSON(cmd.OutOrStdout(), v)
			}
			return view.MapChangesText(cmd.OutOrStdout(), v)
		})
	}
	return cmd
}

func newTopologyGet() *cobra.Command {
	var inEffect bool
	var output string
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Write the operator's part of the topology, or the map, as a topology file",
		Long: `get writes the operator's part of the topology as a topology file, to be changed and
given to "topology set"; its version, on standard error, is for --version there.`,
		Args: cobra.NoArgs,
	}
	c := addClient(cmd)
	cmd.Flags().BoolVar(&inEffect, "map", false, "the map in effect, with what was discovered")
	cmd.Flags().StringVar(&output, "output", "", "`file` to write (default: standard output)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return c.call(cmd.Context(), func(ctx context.Context, m *rpc.ManagerClient) error {
			f, err := m.TopologyFile(ctx, inEffect)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "version %d of the operator's part\n", f.Version); err != nil {
				return err
			}
			if output == "" {
				_, err = cmd.OutOrStdout().Write(f.Content)
				return err
			}
			return process.WriteFile(output, f.Content)
		})
	}
	return cmd
}
