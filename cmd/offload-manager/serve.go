package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
	"github.com/tributary-fabric/tributary/internal/driver/audit"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/membership"
)

func newServe() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "serve --config FILE",
		Short: "Run the manager of a fabric",
		Long: `serve runs the manager with a configuration file until SIGINT or SIGTERM; a second
signal ends it at once. Trees of running groups continue without the manager,
because their packets renew them. A changed file takes effect after a restart;
SIGHUP logs whether a restart would succeed, and opens the audit log anew.

Agents, hosts and the manager may start in any order. The log, on standard error,
names the agents for which the manager waits. docs/examples/manager.yaml explains
the file; the flags below override it.`,
		Example: "  offload-manager serve --config manager.yaml\n  offload-manager serve --config manager.yaml --log-level debug",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := settings.ReadManagerFile(path)
			if err != nil {
				return err
			}
			if err := override(cmd, m); err != nil {
				return err
			}
			return serve(cmd.Context(), m, func() error { _, err := readValid(path); return err }, cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&path, "config", "", "configuration `file`")
	flags.String("listen", "", "`address` (host:port) for hosts and operators")
	flags.String("store", "", "`file` that keeps the manager's state over restarts")
	_ = cmd.MarkFlagRequired("config") // its only error is that there is no such flag
	process.LogFlags(cmd)
	return cmd
}

// override sets what was given as a flag.
func override(cmd *cobra.Command, m *settings.Manager) error {
	if err := process.Override(cmd, map[string]*string{"listen": &m.Listen, "store": &m.Store}, &m.Log); err != nil {
		return err
	}
	if err := settings.CheckAddress(m.Listen); err != nil {
		return fmt.Errorf("%w --listen: %w", errUsage, err)
	}
	return nil
}

// serve runs a manager until ctx ends.
func serve(ctx context.Context, m *settings.Manager, check func() error, stderr io.Writer) (err error) {
	log, err := m.Log.Logger(stderr)
	if err != nil {
		return err
	}
	c, err := configOf(m, log)
	if err != nil {
		return err
	}
	if m.Store == "" {
		log.Warn("no store: a restart forgets all groups, and their members make them again")
	} else {
		kept, err := store.Open(m.Store)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, kept.Close()) }()
		if was, exposed := kept.Exposed(); exposed {
			log.Warn("others could read the store, with the secrets of its groups; its mode is 0600 now: release groups whose secrets matter",
				slog.String("file", m.Store), slog.String("mode", was.String()))
		}
		c.Store = kept
	}
	if m.Audit != "" {
		if c.Audit, err = audit.Open(m.Audit); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Audit.Close()) }()
		valid := check
		check = func() error { return errors.Join(c.Audit.Reopen(), valid()) } // at a SIGHUP
	}
	if without := unattended(m); len(without) > 0 && !m.Discovery.Given() {
		log.Warn("switches without an agent are not used", slog.Int("switches", len(without)), slog.String("names", some(without)))
	}
	d, err := managerd.Start(c)
	if err != nil {
		return err
	}
	return process.Serve(ctx, d, m.Admin, check, log)
}

// zoneOf returns the manager's place in its zone. Its incarnation is kept beside
// the store, so that it rises whatever the clock says.
func zoneOf(m *settings.Manager) (membership.Config, error) {
	zone, err := m.Membership.Config()
	if zone.State == "" && m.Store != "" {
		zone.State = m.Store + ".incarnation"
	}
	return zone, err
}

// readValid reads a configuration file, and what it names.
func readValid(path string) (*settings.Manager, error) {
	m, err := settings.ReadManagerFile(path)
	if err != nil {
		return nil, err
	}
	c, err := configOf(m, slog.New(slog.DiscardHandler))
	if err != nil {
		return m, err
	}
	errs := []error{c.Check(), process.CheckAdmin(m.Admin)}
	if m.Store != "" {
		errs = append(errs, store.Check(m.Store))
	}
	return m, errors.Join(errs...)
}

// configOf returns what a configuration file says of the daemon, with the files
// that it names read, and all of it valid.
func configOf(m *settings.Manager, log *slog.Logger) (c managerd.Config, err error) {
	c = m.Config()
	c.Log = log
	if c.Trust, err = process.Trust(m.TLS, log); err != nil {
		return c, err
	}
	if c.Discovery, err = m.Discovery.Config(); err != nil {
		return c, err
	}
	if m.Membership.Given() {
		zone, err := zoneOf(m)
		if err != nil {
			return c, err
		}
		c.Membership = &zone
	}
	return c, c.Validate()
}

// unattended lists the switches without an agent.
func unattended(m *settings.Manager) (names []string) {
	for i := range m.Graph.Switches() {
		if name := m.Graph.Name(m.Graph.Switch(i)); m.Agents[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// some lists the first few of names.
func some(names []string) string {
	const most = 12
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func newCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a manager's configuration file",
		Long: `check reports what serve would refuse; run it on the manager's machine. It reads
the files that the configuration names, and listens briefly on its addresses, at
free ports; a running manager is not disturbed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := readValid(args[0])
			return process.Check(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], err, func() string {
				g := m.Graph
				if m.Discovery.Given() {
					return fmt.Sprintf("discovery from %s, operator's part with %d hosts, %d switches, %d agents: valid",
						printable.Count(len(m.Discovery.Core.Seeds), "seed", "seeds"), g.Hosts(), g.Switches(), len(m.Agents))
				}
				return fmt.Sprintf("fabric %s, %d hosts, %d switches, %d agents: valid", g.Fabric(), g.Hosts(), g.Switches(), len(m.Agents))
			})
		},
	}
}
