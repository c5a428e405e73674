package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-fabric/tributary/bench/broadcast"
	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/hostlib"
	"github.com/tributary-fabric/tributary/hostlib/scoll"
	"github.com/tributary-fabric/tributary/internal/whole/embedded"
	"github.com/tributary-fabric/tributary/topology"
)

// scollFunction is the --function that measures server collectives.
const scollFunction = "scoll-broadcast"

// scollFlags say what of server collectives is measured.
type scollFlags struct {
	trees   []string
	atOnce  []int
	payload int
	rates   []string
	lasting time.Duration
	json    bool
}

func (f *scollFlags) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.trees, "trees", []string{"binomial", "4-nomial", "4-ary", "flat", "fabric", "offload"}, "with --function "+scollFunction+": `trees` to measure")
	flags.IntSliceVar(&f.atOnce, "at-once", []int{1, 8, 64}, "with it: `broadcasts` under way at once, one begun when another ends; the last is the bound of --per-second, too")
	flags.IntVar(&f.payload, "payload", 16, "with it: `bytes` of a request's payload, at most about 4000")
	flags.StringSliceVar(&f.rates, "per-second", []string{"10000"}, "with it: broadcasts that are begun a `second`; most is reported in any case")
	flags.DurationVar(&f.lasting, "lasting", 3*time.Second, "with it: `time` of a measurement")
}

func (f *scollFlags) arguments() []string {
	return []string{
		"--trees", strings.Join(f.trees, ","), "--at-once", commas(f.atOnce), "--payload", strconv.Itoa(f.payload),
		"--per-second", strings.Join(f.rates, ","), "--lasting", f.lasting.String(),
	}
}

// plans returns what is measured over the nodes: of each tree so many broadcasts
// at once, where it is one with the last receipt, and so many a second.
func (f *scollFlags) plans(nodes []string) ([]broadcast.Plan, error) {
	var all []broadcast.Plan
	for _, name := range f.trees {
		kind, err := broadcast.ParseTree(name)
		if err != nil {
			return nil, fmt.Errorf("%w --trees: %w", errUsage, err)
		}
		p := broadcast.Plan{Tree: name, Kind: kind, Nodes: nodes, Payload: f.payload, Warm: 200, Lasting: f.lasting}
		for _, p.Concurrency = range f.atOnce {
			p.Timed = p.Concurrency == 1
			all = append(all, p)
		}
		p.Timed = false
		for _, text := range f.rates {
			if p.Rate, err = strconv.ParseFloat(text, 64); err != nil || p.Rate <= 0 {
				return nil, fmt.Errorf("%w --per-second %q: it must be a positive number", errUsage, text)
			}
			all = append(all, p)
		}
	}
	for i := range all {
		if err := all[i].Validate(); err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
	}
	return all, nil
}

// measureAll runs the plans from a root, and writes the rows.
func (f *scollFlags) measureAll(ctx context.Context, root *broadcast.Member, plans []broadcast.Plan, out io.Writer) error {
	t := report.Rows[broadcast.Row]{Out: out, JSON: f.json}
	for _, p := range plans {
		row, err := root.Measure(ctx, p)
		if err != nil {
			return errors.Join(fmt.Errorf("%s, %d at once: %w", p.Tree, p.Concurrency, err), writeRows(&t))
		}
		if err := t.Add(row); err != nil {
			return err
		}
	}
	return writeRows(&t)
}

// writeRows ends the rows, as a table if they are not written yet.
func writeRows(t *report.Rows[broadcast.Row]) error {
	if t.JSON {
		return nil
	}
	return broadcast.WriteText(t.Out, t.All)
}

// most returns the most broadcasts at once.
func (f *scollFlags) most() int { return slices.Max(append([]int{1}, f.atOnce...)) }

// needFabric reports whether a tree is measured that takes one.
func (f *scollFlags) needFabric() bool {
	return slices.Contains(f.trees, broadcast.AlongFabric) || slices.Contains(f.trees, broadcast.InSwitches)
}

// directory is where members find each other, by name.
type directory struct{ at sync.Map }

func (d *directory) enter(name, address string) { d.at.Store(name, address) }

func (d *directory) resolve(_ context.Context, name string) (string, error) {
	if address, ok := d.at.Load(name); ok {
		return address.(string), nil
	}
	return "", fmt.Errorf("%s is not in the list of members", name)
}

// scollMember makes a member on a host.
func scollMember(host *hostlib.Host) (*broadcast.Member, error) {
	return broadcast.On(host, scoll.Config{RoundTrip: time.Second})
}

// leave closes a host, for which it has a moment.
func leave(h *hostlib.Host) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return h.Close(ctx)
}

func names(members []hostlib.Member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Host)
	}
	return all
}

// runScollEmbedded measures nodes in this process, one for each host.
func runScollEmbedded(cmd *cobra.Command, f *benchFlags, s *scollFlags, fabric string) (err error) {
	g, err := topology.Open(fabric)
	if err != nil {
		return err
	}
	hosts := make([]string, g.Hosts())
	for i := range hosts {
		hosts[i] = g.Name(topology.NodeID(i))
	}
	plans, err := s.plans(hosts)
	if err != nil {
		return err
	}
	ctx, cancel := f.within(cmd.Context())
	defer cancel()
	var places []*hostlib.Host
	if s.needFabric() {
		whole, err := embedded.Start(ctx, embedded.Config{Topology: g, OfferWait: offerWaitMust, Log: f.logger(cmd)})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, whole.Close()) }()
		places = whole.Hosts()
	} else {
		var d directory
		for _, name := range hosts {
			host, err := hostlib.Join(ctx, hostlib.Config{Name: name, Resolve: d.resolve})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, leave(host)) }()
			d.enter(name, host.Addr())
			places = append(places, host)
		}
	}
	all := make([]*broadcast.Member, len(places))
	for i, host := range places {
		if all[i], err = scollMember(host); err != nil {
			return err
		}
	}
	if s.needFabric() {
		if err := s.joinAll(ctx, all, places); err != nil {
			return err
		}
	}
	return s.measureAll(ctx, all[0], plans, cmd.OutOrStdout())
}

// joinAll has all members take their places in a fabric.
func (f *scollFlags) joinAll(ctx context.Context, all []*broadcast.Member, hosts []*hostlib.Host) error {
	var places []hostlib.Member
	for _, h := range hosts {
		places = append(places, h.Member())
	}
	errs := make([]error, len(all))
	var joining sync.WaitGroup
	for i, m := range all {
		joining.Go(func() { errs[i] = m.Join(ctx, places, f.trees, f.most()) })
	}
	joining.Wait()
	return errors.Join(errs...)
}

// scollProcess is a member of a measurement in a process of its own.
type scollProcess struct {
	scollFlags
	host, list, manager string
	listen              string // "": this member's address in list
	tls                 *hostlib.TLS
}

// runScollMember measures as one member on a live fabric.
func runScollMember(cmd *cobra.Command, f *runFlags) error {
	p := scollProcess{scollFlags: f.scoll, host: f.host, list: f.members, manager: f.manager, listen: f.listen}
	if f.certificate+f.key+f.authority != "" {
		p.tls = &hostlib.TLS{Cert: f.certificate, Key: f.key, CA: f.authority}
	}
	if p.needFabric() && p.manager == "" {
		return fmt.Errorf("%w --trees %s: fabric and offload take a --manager", errUsage, strings.Join(p.trees, ","))
	}
	ctx, cancel := f.bench.within(cmd.Context())
	defer cancel()
	return p.run(ctx, cmd.OutOrStdout())
}

// newNodeScoll is the command of a scollProcess. The first of the list is the
// root, and writes the rows as JSON and then an empty line.
func newNodeScoll() *cobra.Command {
	var p scollProcess
	cmd := &cobra.Command{
		Use: "scoll", Short: "Be a member of server collectives", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p.json = true
			if err := p.run(cmd.Context(), cmd.OutOrStdout()); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout())
			return err
		},
	}
	cmd.Flags().StringVar(&p.host, "host", "", "`name` of this member")
	cmd.Flags().StringVar(&p.list, "members", "", "`file` with the members")
	cmd.Flags().StringVar(&p.manager, "manager", "", "`address` of the manager")
	p.add(cmd.Flags())
	return cmd
}

func (p *scollProcess) run(ctx context.Context, out io.Writer) (err error) {
	members, listen, err := p.read(p.list)
	if err != nil {
		return err
	}
	plans, err := p.scollFlags.plans(names(members))
	if err != nil {
		return err
	}
	var d directory
	for _, m := range members {
		d.enter(m.Host, m.Addr)
	}
	c := hostlib.Config{
		Name: p.host, Listen: cmp.Or(p.listen, listen), Resolve: d.resolve, TLS: p.tls,
		AllowPlaintext: true, // for networks of one's own, such as namespaces
		OfferWait:      offerWaitMust,
	}
	if p.needFabric() {
		c.Manager = p.manager
	}
	host, err := hostlib.Join(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave(host)) }()
	member, err := scollMember(host)
	if err != nil {
		return err
	}
	if p.needFabric() {
		if err := member.Join(ctx, members, p.trees, p.most()); err != nil {
			return err
		}
	}
	if p.host != members[0].Host {
		select {
		case <-member.Notified():
		case <-ctx.Done():
		}
		return nil
	}
	if err := awaitMembers(ctx, members); err != nil {
		return err
	}
	if err := member.Await(ctx, names(members)); err != nil {
		return err
	}
	return errors.Join(p.measureAll(ctx, member, plans, out), member.End(ctx))
}

// read reads a list of members, and this one's address in it.
func (p *scollProcess) read(list string) (all []hostlib.Member, own string, err error) {
	file, err := os.Open(list)
	if err != nil {
		return nil, "", err
	}
	all, err = field.ReadMembers(file, list)
	for _, m := range all {
		if m.Host == p.host {
			own = m.Addr
		}
	}
	return all, own, errors.Join(err, file.Close())
}

// awaitMembers waits until all members can be reached.
func awaitMembers(ctx context.Context, members []hostlib.Member) error {
	for _, m := range members {
		conn, err := field.DialUntil(ctx, m.Addr)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Host, err)
		}
		conn.Close()
	}
	return nil
}
