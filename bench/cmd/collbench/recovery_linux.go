package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/recovery"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// newRevoke returns the command that measures revokes, agreements and recoveries.
func newRevoke() *cobra.Command {
	c := recovery.Config{Field: field.Config{Lab: netlab.Config{Spines: 2}}}
	var format, what string
	var sizes []string
	cmd := &cobra.Command{
		Use:   "revoke",
		Short: "Measure revokes, agreements, and recoveries from kill -9 (as root)",
		Long: `revoke builds a fabric of network namespaces, as the command fabric does, with a manager,
an agent for every switch, and members as processes on every host.

plans: plan A loops a collective on a duplicate of B, which a member revokes in place of
its next operation; plan B then loops it on B. It reports the time from Revoke until the
operation on A has failed at the last member, and the operations on B against those of
rounds without a revoke, which take turns with them: the time of the slowest member, which
may have waited for one that was interrupted later, and that from when the last one began.

agree: agreements of all members against allreduces of 8 bytes, in turns, on a
communicator that is on hosts.

kill: members of a zone run allreduces over switches; one is killed as kill -9 does; the
others revoke and shrink the communicator, and go on over switches. The parts follow each
other: detection to the first error, revoke to the last one, agree on who lives, form the
links, tree of switches, settle that all have it, first operation. The member that was killed is started
again before the next kill.

Times are medians and, in brackets, the worst.`,
		Example: `  collbench revoke --hosts-per-leaf 8 --processes 4
  collbench revoke --measure agree --hosts-per-leaf 8 --processes 4
  collbench revoke --measure kill --rounds 10 --kill=-1,0 --processes 4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c.Bytes = nil
			for _, s := range sizes {
				n, err := process.ParseSize(s)
				if err != nil {
					return fmt.Errorf("%w --bytes: %w", errUsage, err)
				}
				c.Bytes = append(c.Bytes, n)
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			if what != "kill" {
				c.Dead = nil
			}
			out, log := cmd.OutOrStdout(), cmd.ErrOrStderr()
			c.Field.Program, c.Field.Log = []string{program}, log
			switch what {
			case "kill":
				rows, err := recovery.Kills(cmd.Context(), c, log)
				return errors.Join(err, writeAll(out, format, rows, recovery.WriteKills))
			case "agree":
				rows, err := recovery.Agreements(cmd.Context(), c, log)
				return errors.Join(err, writeAll(out, format, rows, recovery.WriteAgreements))
			default:
				rows, err := recovery.Plans(cmd.Context(), c, log)
				return errors.Join(err, writeAll(out, format, rows, recovery.WritePlans))
			}
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	process.OneOf(cmd, &what, "measure", "`what` to measure: plans, agree or kill", "plans", "agree", "kill")
	flags.IntVar(&c.Rounds, "rounds", 20, "`number` of kills of each rank, or of revokes of each operation")
	flags.StringSliceVar(&c.Collectives, "collectives", []string{"allreduce", "barrier", "broadcast"}, "`collectives` of plans: allreduce, barrier or broadcast")
	flags.StringSliceVar(&sizes, "bytes", []string{"8", "1KiB", "64KiB"}, "`sizes` of their vectors")
	process.OneOf(cmd, &c.Way, "way", "`way` of the communicators of plans: chosen, switches, tree-of-hosts or hosts", "chosen", "switches", "tree-of-hosts", "hosts")
	flags.IntSliceVar(&c.Dead, "kill", []int{-1, 0}, "`ranks` to kill; negative: from the last one")
	flags.IntVar(&c.Field.Lab.HostsPerLeaf, "hosts-per-leaf", 4, "`hosts` at each leaf")
	flags.IntVar(&c.Field.Lab.Leaves, "leaves", 2, "`leaves`")
	flags.IntVar(&c.Field.Processes, "processes", 1, "`processes` of each host")
	flags.StringVar(&c.Field.Lab.Prefix, "prefix", "cbv", "`prefix` of the namespaces' names")
	flags.DurationVar(&c.Limit, "limit", 30*time.Second, "`time` after which a request has failed")
	flags.BoolVar(&c.Field.Verbose, "verbose", false, "log the activity of all parts of the fabric")
	process.OneOf(cmd, &format, "format", "output `format`: text or json", "text", "json")
	return cmd
}

// writeAll writes rows in a format, if there are any.
func writeAll[R any](w io.Writer, format string, rows []R, text func(io.Writer, []R) error) error {
	if len(rows) == 0 {
		return nil
	}
	if format == "json" {
		return json.NewEncoder(w).Encode(rows)
	}
	return text(w, rows)
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
