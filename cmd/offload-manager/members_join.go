package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
	"github.com/tributary-fabric/tributary/membership"
)

func newMembersJoin() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Run a node of a zone for this host",
		Long: `join runs a node of a zone until SIGINT or SIGTERM, then leaves in order. The zone
learns within a second of the host's failure, even without a service on it.
"offload-manager members --node" queries the node at its admin address.

A configuration file has the fields of "membership" in docs/examples/manager.yaml,
and admin and log; docs/examples/node.yaml explains them. Flags override it. All
nodes of a zone can share one file: by default the name is the host's, and the
node listens at the address that the others reach.`,
		Example: "  offload-manager members join --bootstrap 10.0.0.1:7946,10.0.0.2:7946\n" +
			"  offload-manager members join --config node.yaml --name h3 --zone 2",
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&path, "config", "", "configuration `file`")
	name := flags.String("name", "", "the node's `name` (default: the host's)")
	listen := flags.String("listen", "", "`address` (host:port) for UDP and TCP (default: a free port at the address that others reach)")
	bootstrap := flags.StringSlice("bootstrap", nil, "`addresses` of nodes to query first")
	zone := flags.Uint32("zone", 0, "`number` of the zone")
	state := flags.String("state", "", "`file` for the incarnation of the last start")
	admin := flags.String("admin", "", "`address` (host:port) of metrics and for \"members --node\"")
	process.LogFlags(cmd)
	read := func() (*settings.Node, error) {
		n := &settings.Node{Log: settings.Log{Level: "info", Format: "text"}}
		if path != "" {
			var err error
			if n, err = settings.ReadNodeFile(path); err != nil {
				return nil, err
			}
		}
		m := &n.Membership
		to := map[string]*string{"name": &m.Name, "listen": &m.Listen, "state": &m.State, "admin": &n.Admin.Listen}
		for flag, value := range map[string]*string{"name": name, "listen": listen, "state": state, "admin": admin} {
			if cmd.Flags().Changed(flag) {
				*to[flag] = *value
			}
		}
		if cmd.Flags().Changed("bootstrap") {
			m.Bootstrap = *bootstrap
		}
		if cmd.Flags().Changed("zone") {
			m.Zone = *zone
		}
		if err := process.Override(cmd, map[string]*string{}, &n.Log); err != nil {
			return nil, err
		}
		return n, nameNode(n)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		n, err := read()
		if err != nil {
			return err
		}
		again := func() error {
			n, err := read()
			if err != nil {
				return err
			}
			return checkNode(cmd.Context(), n)
		}
		return runNode(cmd.Context(), n, again, cmd.ErrOrStderr())
	}
	return cmd
}

func newMembersCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a node's configuration file",
		Long: `check reports what join would refuse; run it on the node's machine. It resolves
the configuration's names, and listens briefly on its addresses, at free ports; a
running node is not disturbed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := settings.ReadNodeFile(args[0])
			if err == nil {
				err = errors.Join(nameNode(n), checkNode(cmd.Context(), n))
			}
			return process.Check(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], err, func() string {
				return fmt.Sprintf("node %s, zone %d, %d nodes to ask first: valid", n.Membership.Name, n.Membership.Zone, len(n.Membership.Bootstrap))
			})
		},
	}
}

// nameNode gives a node without a name that of its host.
func nameNode(n *settings.Node) error {
	if n.Membership.Name != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("%w --name is needed: %w", errUsage, err)
	}
	n.Membership.Name = host
	return nil
}

// checkNode returns what would keep a node from starting.
func checkNode(ctx context.Context, n *settings.Node) error {
	c, err := n.Membership.Config()
	if err != nil {
		return err
	}
	return errors.Join(c.Check(ctx), process.CheckAdmin(n.Admin))
}

// runNode is a node until ctx ends.
func runNode(ctx context.Context, n *settings.Node, check func() error, stderr io.Writer) error {
	log, err := n.Log.Logger(stderr)
	if err != nil {
		return err
	}
	c, err := n.Membership.Config()
	if err != nil {
		return err
	}
	c.Log = log
	node, err := membership.Join(ctx, c)
	if err != nil {
		return err
	}
	return process.Serve(ctx, &memberDaemon{node, log}, n.Admin, check, log)
}

// memberDaemon is a node as a process.Daemon.
type memberDaemon struct {
	node *membership.Node
	log  *slog.Logger
}

// leaveWithin bounds how long it takes to notify others that the node leaves.
const leaveWithin = 2 * time.Second

func (d *memberDaemon) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	if err := d.node.Leave(ctx, 0); err != nil {
		d.log.Warn("leaving the zone", slog.Any("error", err))
	}
}

func (d *memberDaemon) Kill()                                  { _ = d.node.Close(context.Background()) }
func (d *memberDaemon) Done() <-chan struct{}                  { return d.node.Done() }
func (d *memberDaemon) Err() error                             { return d.node.Err() }
func (d *memberDaemon) Collector() prometheus.Collector        { return d.node.Collector() }
func (d *memberDaemon) ZoneCollectors() []prometheus.Collector { return nil }
func (d *memberDaemon) Pages() map[string]http.Handler {
	return map[string]http.Handler{membership.StatusPage: d.node}
}
