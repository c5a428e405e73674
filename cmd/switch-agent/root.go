package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// errUsage is wrapped by errors about flags.
var errUsage = process.ErrUsage

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "switch-agent",
		Short:         "Serve collection trees on one switch",
		SilenceUsage:  true,
		SilenceErrors: true, // main writes them
	}
	root.AddCommand(newRun(), newCheck())
	return process.Root(root)
}

func newRun() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the agent of a switch",
		Long: `run runs the agent with a configuration file until SIGINT or SIGTERM; a second
signal ends it at once. Trees on the switch end with it, and their groups move to
other trees or to hosts: drain the switch first ("offload-manager switch drain").
A changed file takes effect after a restart; SIGHUP logs whether a restart would
succeed.

Agent and manager may start in any order. docs/examples/agent.yaml explains the
file; the flags below override it.

With --pipeline p4 a P4 target reduces; the agent installs its program and tables
by P4Runtime, and the file names the target's ports (docs/p4.md). When
the agent ends, the target completes operations in flight. While the target is not
usable the agent offers nothing, and "offload-manager switch list" shows why.`,
		Example: "  switch-agent run --config agent.yaml\n  switch-agent run --config agent.yaml --pipeline p4 --p4runtime 127.0.0.1:9559",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := settings.ReadAgentFile(path)
			if err != nil {
				return err
			}
			if err := override(cmd, a); err != nil {
				return err
			}
			return run(cmd.Context(), a, func() error {
				_, c, err := readValid(path)
				return errors.Join(err, c.CheckRights())
			}, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&path, "config", "", "configuration `file`")
	flags.String("listen", "", "`address` (host:port) for managers")
	flags.String("pipeline", "", "data plane: soft (in the agent), kernel (in the switch's kernel), auto (kernel where it loads) or p4 (a P4 target)")
	flags.String("p4runtime", "", "`address` (host:port, or unix:/path) of the P4 target's P4Runtime server")
	_ = cmd.MarkFlagRequired("config") // its only error is that there is no such flag
	process.LogFlags(cmd)
	process.Choices(cmd, "pipeline", "auto", "soft", "kernel", "p4")
	return cmd
}

// override sets what was given as a flag.
func override(cmd *cobra.Command, a *settings.Agent) error {
	flags := map[string]*string{"listen": &a.Listen, "pipeline": &a.Pipeline, "p4runtime": &a.Target.Address}
	if err := process.Override(cmd, flags, &a.Log); err != nil {
		return err
	}
	if err := settings.CheckAddress(a.Listen); err != nil {
		return fmt.Errorf("%w --listen: %w", errUsage, err)
	}
	if err := settings.CheckPipeline(a.Pipeline); err != nil {
		return fmt.Errorf("%w --pipeline: %w", errUsage, err)
	}
	if cmd.Flags().Lookup("p4runtime").Changed {
		if err := settings.CheckP4Runtime(a.Target.Address); err != nil {
			return fmt.Errorf("%w --p4runtime: %w", errUsage, err)
		}
	}
	return nil
}

// run runs an agent until ctx ends.
func run(ctx context.Context, a *settings.Agent, check func() error, stderr io.Writer) error {
	log, err := a.Log.Logger(stderr)
	if err != nil {
		return err
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	c.Log, c.Processor = log, processor.Read
	if c.Target == nil { // those of a target's ports are the system's by themselves
		c.Interfaces = nic.System()
	}
	if c.Trust, err = process.Trust(a.TLS, log); err != nil {
		return err
	}
	d, err := agentd.Start(c)
	if err != nil {
		return err
	}
	log.Info("waiting for a manager to call", slog.String("switch", a.Switch), slog.String("address", d.Addr()))
	return process.Serve(ctx, d, a.Admin, check, log)
}

// readValid reads a configuration file, and what it names.
func readValid(path string) (*settings.Agent, agentd.Config, error) {
	a, err := settings.ReadAgentFile(path)
	if err != nil {
		return nil, agentd.Config{}, err
	}
	c, err := a.Config()
	if err != nil {
		return nil, c, fmt.Errorf("%s: %w", path, err)
	}
	if c.Trust, err = process.Trust(a.TLS, slog.New(slog.DiscardHandler)); err != nil {
		return nil, c, err
	}
	return a, c, errors.Join(c.Check(), process.CheckAdmin(a.Admin))
}

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check an agent's configuration file",
		Long: `check reports what run would refuse; run it on the agent's machine. It reads the
files that the configuration names, and listens briefly on its addresses, at free
ports; a running agent is not disturbed. What this user may not do, and the agent's
may, such as LLDP without CAP_NET_RAW, is a warning.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, c, err := readValid(args[0])
			if may := c.CheckRights(); err == nil && may != nil {
				if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s: warning: run as this user would be refused: %v\n", args[0], may); err != nil {
					return err
				}
			}
			return process.Check(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], err, func() string {
				return fmt.Sprintf("switch %s, pipeline %s, %d slots, %d children: valid", a.Switch, a.Pipeline, c.Capability.Slots, c.Capability.Children)
			})
		},
	}
}
