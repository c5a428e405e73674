package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func newLLDP() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lldp",
		Short: "Announce this host on its links, so that it is discovered",
		Long: `lldp announces this host by LLDP on its network interfaces until SIGINT or SIGTERM,
each with its own addresses, and logs the neighbours that it hears. Agents report
the host to the manager, which finds its links by that (docs/lldp.md).

It takes the capability CAP_NET_RAW. A service with hostlib.Config.LLDP that has it
announces its host by itself; of the processes of a machine one does.`,
		Example: "  offload-manager lldp --name h0\n  offload-manager lldp --name h0 --interface 'eth*' --exclude eth0",
		Args:    cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	name := flags.String("name", "", "the host's `name` in the fabric (default: the machine's)")
	include := flags.StringSlice("interface", nil, "`pattern` of interfaces (default: all Ethernet ports)")
	exclude := flags.StringSlice("exclude", nil, "`pattern` of interfaces to leave out")
	interval := flags.Duration("interval", 0, "`time` between two announcements (default 500ms)")
	process.LogFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		l := settings.Log{Level: "info", Format: "text"}
		if err := process.Override(cmd, map[string]*string{}, &l); err != nil {
			return err
		}
		log, err := l.Logger(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if *name == "" {
			if *name, err = os.Hostname(); err != nil {
				return fmt.Errorf("%w --name is needed: %w", errUsage, err)
			}
		}
		c := lldp.OfHost(*name, nil, log)
		c.Include, c.Exclude, c.Interval = *include, *exclude, *interval
		s, err := lldp.Start(c)
		if err != nil {
			return err
		}
		return process.Run(cmd.Context(), s, c.Validate, log)
	}
	return cmd
}
