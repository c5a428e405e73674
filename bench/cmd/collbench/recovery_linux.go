package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/recovery"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// newRevoke returns the command that measures revokes, agreements and recoveries.
func newRevoke() *cobra.Command {
	var c recovery.Config
	var format string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Measure revokes, agreements, and recoveries from kill -9 (as root)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			c.Field.Program, c.Field.Log = []string{program}, cmd.ErrOrStderr()
			rows, err := recovery.Kills(cmd.Context(), c, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if format == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(rows)
			}
			return recovery.WriteKills(cmd.OutOrStdout(), rows)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntSliceVar(&c.Kills, "kill", nil, "`ranks` to kill; negative: from the last one")
	flags.IntVar(&c.Rounds, "rounds", 20, "`number` of kills of each rank")
	flags.IntVar(&c.Field.Lab.HostsPerLeaf, "hosts-per-leaf", 4, "`hosts` at each leaf")
	flags.IntVar(&c.Field.Lab.Leaves, "leaves", 2, "`leaves`")
	flags.IntVar(&c.Field.Lab.Spines, "spines", 2, "`spines`")
	flags.IntVar(&c.Field.Processes, "processes", 1, "`processes` of each host")
	flags.StringVar(&c.Field.Lab.Prefix, "prefix", "cbv", "`prefix` of the namespaces' names")
	flags.DurationVar(&c.Limit, "limit", 30*time.Second, "`time` after which a request has failed")
	flags.BoolVar(&c.Field.Verbose, "verbose", false, "log the activity of all parts of the fabric")
	process.OneOf(cmd, &format, "format", "output `format`: text or json", "text", "json")
	return cmd
}

// newNodeRecovery returns the command that is a member.
func newNodeRecovery(verbose *bool) *cobra.Command {
	var c recovery.MemberConfig
	var members string
	cmd := &cobra.Command{
		Use: "recovery", Short: "Be a member that is asked to recover", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			file, err := os.Open(members)
			if err != nil {
				return err
			}
			defer file.Close()
			if c.Members, err = field.ReadMembers(file, members); err != nil {
				return err
			}
			if c.Rank < 0 || c.Rank >= len(c.Members) {
				return fmt.Errorf("%w --rank %d: there are %d members", errUsage, c.Rank, len(c.Members))
			}
			c.Log = newLogger(cmd, *verbose)
			return recovery.Member(cmd.Context(), c)
		},
	}
	cmd.Flags().IntVar(&c.Rank, "rank", 0, "its `rank`")
	cmd.Flags().StringVar(&members, "members", "", "`file` of the members")
	cmd.Flags().StringVar(&c.Manager, "manager", "", "`address` of the manager")
	cmd.Flags().StringVar(&c.Socket, "socket", "", "`file` of the socket from which requests come")
	cmd.Flags().BoolVar(&c.Zone, "zone", false, "be in a zone, whose members report deaths")
	cmd.Flags().DurationVar(&c.Limit, "limit", 30*time.Second, "`time` after which a request has failed")
	return cmd
}
