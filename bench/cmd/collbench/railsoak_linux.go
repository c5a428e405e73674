package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/rails"
	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

// newRails returns the command of the soak.
func newRails() *cobra.Command {
	var c rails.SoakConfig
	var rates, largest, prefix string
	var last []string
	cmd := &cobra.Command{
		Use:   "rails",
		Short: "Cut rails at random under collectives, and check that nothing is lost or doubled (as root)",
		Long: `rails builds hosts of network namespaces that several rails join, with a process on
each, and has links fail and recover at random: one rail at a time, at one host, some
or all of them, in both directions or one, with the carrier or without, its interface
deleted, or slow; and all rails at once for too short a time for anybody to notice.
Meanwhile all hosts run allreduces, server collectives with bulk data, messages and
membership at once, and check all results. The first thing that is wrong ends it: a wrong result,
an error, a broadcast that is lost or runs twice, a host that membership takes for
dead, or no progress within --limit. The progress goes to standard error, the sum, as
JSON, to standard output.`,
		Example: `  collbench rails --soak 10m --tls
  collbench rails --soak 60s --hosts 3 --rails 200mbit,200mbit,100mbit --seed 7
  collbench rails --last down,unplug,disable,delete,out,in --tls`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			c.Program, c.Log, c.Fabric.Prefix = []string{program}, cmd.ErrOrStderr(), prefix
			if c.Fabric.Rates, err = netlab.ParseRates(rates); err != nil {
				return fmt.Errorf("%w --rails: %w", errUsage, err)
			}
			if c.Largest, err = process.ParseSize(largest); err != nil {
				return fmt.Errorf("%w --largest: %w", errUsage, err)
			}
			if len(last) > 0 {
				faults, err := parseFaults(last)
				if err != nil {
					return err
				}
				rows, err := rails.RunLast(cmd.Context(), c, faults)
				return errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(rows))
			}
			c.Chaos.Hosts, c.Chaos.Rates = c.Fabric.Hosts, c.Fabric.Rates
			sum, err := rails.RunSoak(cmd.Context(), c)
			if err != nil {
				return err
			}
			fmt.Fprintln(c.Log, &sum)
			return json.NewEncoder(cmd.OutOrStdout()).Encode(&sum)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.DurationVar(&c.Chaos.Lasting, "soak", 10*time.Minute, "`time` that it takes")
	flags.IntVar(&c.Fabric.Hosts, "hosts", 4, "`hosts`")
	flags.StringVar(&rates, "rails", "200mbit,200mbit", "`rates` of the rails, each such as 200mbit or unshaped")
	flags.StringSliceVar(&c.Kinds, "kind", []string{"tcp"}, "`kind` of the rails, tcp or udp: one, or one each")
	flags.BoolVar(&c.TLS, "tls", false, "use certificates and TLS")
	flags.StringVar(&largest, "largest", "1MiB", "`size` of the longest vectors and bulk data")
	flags.Uint64Var(&c.Chaos.Seed, "seed", 1, "`seed` of the faults")
	flags.DurationVar(&c.Chaos.Least, "fault-least", 100*time.Millisecond, "least `time` of a fault")
	flags.DurationVar(&c.Chaos.Longest, "fault-longest", 3*time.Second, "longest `time` of a fault")
	flags.DurationVar(&c.Chaos.Pause, "fault-pause", 2500*time.Millisecond, "least `time` between faults")
	flags.DurationVar(&c.Chaos.Blink, "blink", 150*time.Millisecond, "longest `time` for which all rails fail at once; 0: never")
	flags.DurationVar(&c.Grace, "grace", 0, "`time` for which membership probes a silent host; 0: its default")
	flags.StringSliceVar(&last, "last", nil, "instead, have all rails between two hosts fail in each of these `ways`: all messages under way must report that, and messages pass again afterwards")
	flags.BoolVar(&c.NoCuts, "no-cuts", false, "let nothing fail")
	flags.DurationVar(&c.Every, "every", 10*time.Second, "`time` between reports of the progress")
	flags.DurationVar(&c.Limit, "limit", 30*time.Second, "`time` without progress that is an error")
	flags.StringVar(&prefix, "prefix", "cbs", "`prefix` of the namespaces' names")
	return cmd
}

// parseFaults reads the words for ways in which rails fail.
func parseFaults(words []string) (all []netlab.Fault, err error) {
	for _, word := range words {
		f, err := netlab.ParseFault(word)
		if err != nil || f == netlab.Works {
			return nil, errors.Join(fmt.Errorf("%w --last %q", errUsage, word), err)
		}
		all = append(all, f)
	}
	return all, nil
}

// newNodeRailSoak returns the command that is a host of a soak.
func newNodeRailSoak() *cobra.Command {
	var c rails.SoakNode
	var addresses []string
	cmd := &cobra.Command{
		Use: "rail-soak", Short: "Be a host of a soak", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, all := range addresses {
				c.Addresses = append(c.Addresses, strings.Split(all, "+"))
			}
			if c.Host < 0 || c.Host >= len(c.Addresses) {
				return fmt.Errorf("%w: host %d of %d with --addresses", errUsage, c.Host, len(c.Addresses))
			}
			return rails.Soak(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), c)
		},
	}
	cmd.Flags().IntVar(&c.Host, "host", 0, "`number` of this host")
	cmd.Flags().StringArrayVar(&addresses, "addresses", nil, "`addresses` of a host's rails, joined by +; once for each host")
	cmd.Flags().StringSliceVar(&c.Kinds, "kind", nil, "`kinds` of the rails")
	cmd.Flags().StringVar(&c.Trust, "trust", "", "`directory` of certificates")
	cmd.Flags().DurationVar(&c.Grace, "grace", 0, "`time` for which membership probes a silent host")
	cmd.Flags().IntVar(&c.Largest, "largest", 1<<20, "`bytes` of the longest vectors and bulk data")
	return cmd
}
