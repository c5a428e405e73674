package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/bench/field"
	"github.com/tributary-fabric/tributary/bench/report"
	"github.com/tributary-fabric/tributary/bench/timing"
	"github.com/tributary-fabric/tributary/bench/turn"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/pathsel"
)

// Compare builds a fabric for each rate of the rows, has all contestants take
// turns on it, and hands on what each row has come to. What it does is reported to
// fc.Log. Args are flags of the command run, for Tributary's members.
//
// Its errors are those of the configuration, ErrMissing, those of a fabric, of
// take and of Tributary, and, when all is measured, ErrWrong. A peer that fails
// is left out.
func Compare(ctx context.Context, c Config, fc field.Config, args []string, take func(*report.Comparison) error) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	chosen, err := choose(c, fc.Log)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	programs, err := compileAll(chosen, dir, fc.Log)
	if err != nil {
		return err
	}
	wrong := 0
	for _, rows := range fabrics(c.Rows) {
		k := &contest{ctx: ctx, cfg: c, log: fc.Log, args: args, dir: dir, programs: programs}
		if err := k.on(fc, rows, chosen, take); err != nil {
			return err
		}
		wrong += k.wrong
	}
	if wrong > 0 {
		return fmt.Errorf("%w: in %d turns", ErrWrong, wrong)
	}
	return nil
}

// choose returns the peers that are here.
func choose(c Config, log io.Writer) (here []*peer, err error) {
	wanted, err := find(c.Peers)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, p := range wanted {
		switch err := p.missing(installed); {
		case err == nil:
			here = append(here, p)
		case c.SkipMissing:
			fmt.Fprintf(log, "left out: %v\n", err)
		default:
			errs = append(errs, err)
		}
	}
	return here, errors.Join(errs...)
}

func compileAll(chosen []*peer, dir string, log io.Writer) (map[*peer]string, error) {
	if err := writeSources(dir); err != nil {
		return nil, err
	}
	programs := map[*peer]string{}
	for _, p := range chosen {
		fmt.Fprintf(log, "compiling the program of %s\n", p.name)
		program, err := p.compile(dir)
		if err != nil {
			return nil, err
		}
		programs[p] = program
	}
	return programs, nil
}

// contest is a comparison on one fabric.
type contest struct {
	ctx      context.Context
	cfg      Config
	log      io.Writer
	args     []string
	dir      string
	programs map[*peer]string

	fabric *field.Fabric
	kernel *field.Fabric // whose switches reduce in their kernels; nil: there is none
	all    []*contestant
	wrong  int // turns with wrong results
}

// contestant is a variant of a job.
type contestant struct {
	name, variant string
	crew          *crew // nil: it is left out
	left          string
	algorithm     schedule.Algorithm // of a way; Auto: none
	isTree        bool               // it is a way by a tree
	onKernel      bool               // it is on the fabric whose switches reduce in their kernels

	// Of the row that is under way:
	iterations, warmup int // of a turn; 0: not known yet
	tally              tally
}

// isOwn reports that it is Tributary.
func (c *contestant) isOwn() bool { return strings.HasPrefix(c.name, timing.Implementation) }

// plays reports whether it is measured in a row: of others than allreduce, the default of MPI.
func (c *contestant) plays(row Row, ranks int) bool {
	if c.algorithm != schedule.Auto || c.isTree {
		return c.isWay(row, ranks)
	}
	return row.collective() == timing.Allreduce || c.isOwn() || c.name == openMPI+"-default" || c.name == mpich
}

// word returns the variant of its turns in a row.
func (c *contestant) word(row Row) string {
	switch of := row.collective(); {
	case of == timing.Allreduce:
		return c.variant
	case c.isOwn():
		return c.variant + ":" + string(of)
	default:
		return string(of)
	}
}

// on builds a fabric, and measures rows on it.
func (k *contest) on(fc field.Config, rows []Row, chosen []*peer, take func(*report.Comparison) error) (err error) {
	fc.Lab.Rate = rows[0].Rate
	fmt.Fprintf(k.log, "building a fabric, links %s\n", report.RateName(fc.Lab.Rate))
	if k.fabric, err = field.Start(fc); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.fabric.Close()) }()
	if k.cfg.Kernel {
		second := fc
		second.Kernel, second.Lab.Prefix = true, fc.Lab.Prefix+"k"
		if k.kernel, err = field.Start(second); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, k.kernel.Close()) }()
	}
	dir, err := os.MkdirTemp(k.dir, "")
	if err != nil {
		return err
	}
	defer k.dismiss()
	if err := k.inviteKernel(fc); err != nil {
		return err
	}
	if err := k.invite(&site{fabric: k.fabric, prefix: fc.Lab.Prefix, dir: dir, node: fc.Program}, chosen); err != nil {
		return err
	}
	for _, row := range rows {
		c, err := k.row(row)
		if err != nil {
			return err
		}
		if err := take(c); err != nil {
			return err
		}
	}
	return nil
}

// invite starts all contestants.
func (k *contest) invite(s *site, chosen []*peer) error {
	limited, cancel := context.WithTimeoutCause(k.ctx, k.cfg.Limit, fmt.Errorf("not started within %v (--limit)", k.cfg.Limit))
	defer cancel()
	own, err := s.seat(limited, timing.Implementation, s.own(k.args))
	if err != nil {
		return err
	}
	if k.cfg.Ways {
		k.all = ways(own)
		return nil
	}
	k.all = append(k.all, &contestant{name: timing.Implementation, variant: only, crew: own}, &contestant{name: timing.Implementation + "-hosts", variant: timing.Hosts, crew: own})
	var variants []string
	if k.cfg.Protected || k.cfg.Numbers {
		variants = append(variants, timing.Tree)
	}
	if k.cfg.Protected {
		variants = append(variants, timing.Authenticated, timing.Encrypted)
	}
	if k.cfg.Numbers {
		variants = append(variants, timing.Reproducible, timing.BFloat16)
	}
	for _, variant := range variants {
		k.all = append(k.all, &contestant{name: timing.Implementation + "-" + variant, variant: variant, crew: own})
	}
	for _, p := range chosen {
		for i := range p.jobs {
			if err := k.inviteJob(s, p, &p.jobs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// inviteKernel starts Tributary on the second fabric.
func (k *contest) inviteKernel(fc field.Config) error {
	if k.kernel == nil {
		return nil
	}
	dir, err := os.MkdirTemp(k.dir, "")
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(k.ctx, k.cfg.Limit, fmt.Errorf("not started within %v (--limit)", k.cfg.Limit))
	defer cancel()
	s := &site{fabric: k.kernel, prefix: fc.Lab.Prefix + "k", dir: dir, node: fc.Program}
	name := timing.Implementation + "-kernel"
	own, err := s.seat(limited, name, s.own(k.args))
	if err != nil {
		return err
	}
	for _, variant := range []string{timing.Int32, timing.Block32} {
		k.all = append(k.all, &contestant{name: name + "-" + variant, variant: variant, crew: own, onKernel: true})
	}
	return nil
}

// inviteJob starts one job of a peer. One that does not start is left out.
func (k *contest) inviteJob(s *site, p *peer, j *job) error {
	fmt.Fprintf(k.log, "starting %s\n", j.name)
	start, err := s.guests(p, j, k.programs[p])
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(k.ctx, k.cfg.Limit, fmt.Errorf("not started within %v (--limit)", k.cfg.Limit))
	defer cancel()
	crew, err := s.seat(limited, j.name, start)
	if k.ctx.Err() != nil {
		if crew != nil {
			crew.leave()
		}
		return context.Cause(k.ctx)
	}
	left := ""
	if err != nil {
		left = err.Error()
		fmt.Fprintf(k.log, "left out: %v\n", err)
	}
	for _, variant := range j.variants {
		k.all = append(k.all, &contestant{name: j.contestant(variant), variant: variant, crew: crew, left: left})
	}
	return nil
}

// dismiss ends all contestants.
func (k *contest) dismiss() {
	for _, c := range k.all {
		if c.crew != nil {
			k.expel(c.crew, c.left)
		}
	}
}

// expel ends a crew, all variants of it.
func (k *contest) expel(gone *crew, why string) {
	gone.leave()
	for _, c := range k.all {
		if c.crew == gone {
			c.crew, c.left = nil, why
		}
	}
}

// row measures one row.
func (k *contest) row(row Row) (*report.Comparison, error) {
	g := k.fabric.Lab().Topology()
	result := &report.Comparison{
		Kind: report.KindComparison, Taken: time.Now().UTC().Truncate(time.Second), Processors: runtime.NumCPU(),
		Fabric: report.Fabric{Hosts: g.Hosts(), Switches: g.Switches(), Rate: row.Rate, Links: pathsel.LinksOf(g, g.AllHosts()), Processes: k.fabric.Ranks() / g.Hosts()}, Collective: string(row.Collective), Bytes: row.Bytes, Rounds: k.cfg.Rounds,
	}
	for _, c := range k.all {
		c.iterations, c.tally = 0, tally{}
	}
	before, err := k.fabric.Load()
	if err != nil {
		return nil, err
	}
	for round := range k.cfg.Rounds {
		for _, i := range order(len(k.all), round) {
			if err := k.turn(k.all[i], row, round); err != nil {
				return nil, err
			}
		}
	}
	after, err := k.fabric.Load()
	if err != nil {
		return nil, err
	}
	result.Strangers = after.Strangers(before)
	for _, c := range k.all {
		if !c.plays(row, g.Hosts()) {
			continue
		}
		result.Contestants = append(result.Contestants, c.tally.result(c.name, c.left))
	}
	return result, nil
}

// turn has one contestant play, if it is still there; before its first turn in a
// row it finds out how many operations make one. Only what Tributary cannot do
// is an error.
func (k *contest) turn(c *contestant, row Row, round int) error {
	if c.crew == nil || !c.plays(row, k.fabric.Lab().Topology().Hosts()) {
		return nil
	}
	err := k.play(c, row, round)
	if k.ctx.Err() != nil {
		return context.Cause(k.ctx)
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s, %s of %s: %w", c.name, row.collective(), report.SizeName(row.Bytes), err)
	if c.isOwn() {
		return err
	}
	fmt.Fprintf(k.log, "left out: %v\n", err)
	k.expel(c.crew, err.Error())
	return nil
}

func (k *contest) play(c *contestant, row Row, round int) error {
	ctx, cancel := context.WithTimeoutCause(k.ctx, k.cfg.Limit, fmt.Errorf("no answer within %v (--limit)", k.cfg.Limit))
	defer cancel()
	request := turn.Request{Variant: c.word(row), Bytes: row.Bytes, Warmup: 1, Iterations: 1}
	if c.iterations == 0 {
		probe, err := c.crew.play(ctx, request)
		if err != nil {
			return err
		}
		c.iterations, c.warmup = k.cfg.iterations(probe.Times[0])
	}
	request.Warmup, request.Iterations = c.warmup, c.iterations
	read, err := k.look(c)
	if err != nil {
		return err
	}
	o, err := c.crew.play(ctx, request)
	if err != nil {
		return err
	}
	spent, err := read()
	if err != nil {
		return err
	}
	c.tally.add(o, spent, request)
	if !o.Right {
		k.wrong++
	}
	tail := timing.TailOf(micros(o.Times))
	fmt.Fprintf(k.log, "%s of %s at %s, round %d of %d: %-20s %9.0f us, median of %d\n", row.collective(), report.SizeName(row.Bytes), report.RateName(row.Rate),
		round+1, k.cfg.Rounds, c.name, tail.Median, len(o.Times))
	return nil
}

// look returns what reads the switches' processor time from now on, which only
// Tributary takes.
func (k *contest) look(c *contestant) (func() (time.Duration, error), error) {
	if !c.isOwn() {
		return func() (time.Duration, error) { return 0, nil }, nil
	}
	fabric := k.fabric
	if c.onKernel {
		fabric = k.kernel
	}
	shut, err := fabric.LookAtSwitches()
	if err != nil {
		return nil, err
	}
	return func() (time.Duration, error) {
		w, err := shut()
		if err != nil {
			return 0, err
		}
		r := w.Sides[field.Switches]
		return r.Processor(), nil
	}, nil
}
