package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/cmd/internal/process"
	"github.com/tributary-fabric/tributary/internal/agentd"
	"github.com/tributary-fabric/tributary/internal/settings"
)

// errUsage is wrapped by errors about flags.
var errUsage = errors.New("invalid flag")

// newRoot returns the command with all its subcommands.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "switch-agent",
		Short:         "Serve collection trees on one switch",
		SilenceUsage:  true,
		SilenceErrors: true, // main writes them
	}
	root.AddCommand(newRun(), newCheck())
	return root
}

func newRun() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the agent of a switch",
		Long: `run runs the agent that a configuration file describes, until it is told to end
by SIGINT or SIGTERM; a second signal ends it at once. Trees on the switch end
with it, and their groups change to others, or to their hosts: drain the switch
first ("offload-manager switch drain").

The agent waits for managers to call; they may start before it or after. The
flags below override the file, which docs/examples/agent.yaml explains.`,
		Example: "  switch-agent run --config agent.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := settings.ReadAgentFile(path)
			if err != nil {
				return err
			}
			if err := override(cmd, a); err != nil {
				return err
			}
			return run(cmd.Context(), a, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&path, "config", "", "configuration `file`")
	flags.String("listen", "", "`address` (host:port) where managers reach the agent")
	flags.String("log-level", "", "debug, info, warn or error")
	flags.String("log-format", "", "text or json")
	_ = cmd.MarkFlagRequired("config") // its only error is that there is no such flag
	return cmd
}

// override sets what was given as a flag.
func override(cmd *cobra.Command, a *settings.Agent) error {
	for name, to := range map[string]*string{"listen": &a.Listen, "log-level": &a.Log.Level, "log-format": &a.Log.Format} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			*to = f.Value.String()
		}
	}
	if err := settings.CheckAddress(a.Listen); err != nil {
		return fmt.Errorf("%w --listen: %w", errUsage, err)
	}
	if a.Log.Format != "text" && a.Log.Format != "json" {
		return fmt.Errorf("%w --log-format %q: text and json are possible", errUsage, a.Log.Format)
	}
	return nil
}

// run runs an agent until ctx ends.
func run(ctx context.Context, a *settings.Agent, stderr io.Writer) error {
	log, err := a.Log.Logger(stderr)
	if err != nil {
		return err
	}
	c := a.Config()
	c.Log = log
	if c.Trust, err = process.Trust(a.TLS, log); err != nil {
		return err
	}
	d, err := agentd.Start(c)
	if err != nil {
		return err
	}
	log.Info("waiting for a manager to call", slog.String("switch", a.Switch), slog.String("address", d.Addr()))
	return process.Serve(ctx, d, a.Admin, log)
}

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check an agent's configuration file",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := settings.ReadAgentFile(args[0])
			if err == nil {
				_, err = process.Trust(a.TLS, slog.New(slog.DiscardHandler))
			}
			return process.Check(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], err, func() string {
				return fmt.Sprintf("switch %s, %d slots, %d children: sound", a.Switch, a.Capability.Slots, a.Capability.Children)
			})
		},
	}
}
