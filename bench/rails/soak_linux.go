package rails

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// SoakConfig says what a soak is like.
type SoakConfig struct {
	Fabric  netlab.RailsConfig
	Program []string // the command that is collbench
	Kinds   []string // of the rails: one for all, or one each
	TLS     bool
	Largest int // bytes of vectors and of bulk data
	Chaos   Chaos
	Grace   time.Duration // of membership; 0: its default
	NoCuts  bool          // nothing fails
	Every   time.Duration // between reports of the progress
	Limit   time.Duration // without progress, and for the end
	Log     io.Writer
}

// Validate reports what is wrong with c.
func (c *SoakConfig) Validate() error {
	if c.Chaos.Lasting <= 0 || c.Largest < 8 || c.Every <= 0 || c.Limit <= 0 {
		return fmt.Errorf("%w: a soak of %v, with vectors of %d bytes, reports every %v, a limit of %v", ErrConfig, c.Chaos.Lasting, c.Largest, c.Every, c.Limit)
	}
	if !c.NoCuts {
		if err := c.Chaos.Validate(); err != nil {
			return err
		}
	}
	return c.Fabric.Validate()
}

// RunSoak builds a fabric, has a process on each host, and links that fail and recover at
// random. It fails with the first thing that is wrong at any host, and when the end shows
// that something was lost or doubled. What it does is reported to c.Log.
func RunSoak(ctx context.Context, c SoakConfig) (sum SoakSum, err error) {
	if err := c.Validate(); err != nil {
		return sum, err
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &soakRun{cfg: c, log: &shared{to: c.Log}, reports: make(chan SoakReport)}
	if c.TLS {
		r.trust = dir + "/trust"
		ids := make([]pki.Identity, c.Fabric.Hosts)
		for host := range ids {
			ids[host] = identity(host)
		}
		if _, err := pki.Init(r.trust, ids...); err != nil {
			return sum, err
		}
	}
	if r.fabric, err = netlab.BuildRails(c.Fabric); err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, r.fabric.Close()) }()
	return r.run(ctx)
}

type soakRun struct {
	cfg     SoakConfig
	fabric  *netlab.Rails
	trust   string
	log     io.Writer
	ends    []*end
	reports chan SoakReport
}

// command returns the process of a host.
func (r *soakRun) command(host int) *exec.Cmd {
	args := append(slices.Clone(r.cfg.Program[1:]), "node", "rail-soak", "--host", fmt.Sprint(host), "--trust", r.trust,
		"--kind", strings.Join(r.cfg.Kinds, ","), "--largest", fmt.Sprint(r.cfg.Largest), "--grace", r.cfg.Grace.String())
	for h := range r.fabric.Hosts() {
		var all []string
		for rail := range r.fabric.Rails() {
			all = append(all, r.fabric.Addr(h, rail).String())
		}
		args = append(args, "--addresses", strings.Join(all, "+"))
	}
	cmd := exec.Command(r.cfg.Program[0], args...)
	cmd.Stderr = r.log
	return cmd
}

func (r *soakRun) run(ctx context.Context) (sum SoakSum, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var reading sync.WaitGroup
	defer func() {
		cancel(nil)
		for _, e := range r.ends {
			e.end()
		}
		reading.Wait()
	}()
	for host := range r.fabric.Hosts() {
		e := &end{cmd: r.command(host)}
		if err := e.start(ctx, r.fabric, host); err != nil {
			return sum, err
		}
		r.ends = append(r.ends, e)
	}
	for host, e := range r.ends {
		if _, err := io.WriteString(e.in, "go\n"); err != nil {
			return sum, fmt.Errorf("%s: %w", netlab.RailHost(host), err)
		}
		reading.Go(func() { r.read(ctx, host, e) })
	}
	var schedule Schedule
	if !r.cfg.NoCuts {
		schedule = r.cfg.Chaos.Random()
	}
	sum.Events = len(schedule)
	start := time.Now()
	changed := make(chan error, 1)
	go func() { changed <- apply(ctx, r.fabric, schedule, start, r.log) }()
	latest, err := r.watch(ctx, start)
	cancel(err)
	if err = errors.Join(err, <-changed); err != nil {
		return sum, err
	}
	sum.Seconds = time.Since(start).Seconds()
	return sum, r.add(&sum, latest)
}

// read hands on what a host reports.
func (r *soakRun) read(ctx context.Context, host int, e *end) {
	for isDone := false; !isDone; {
		line, err := e.answers.ReadBytes('\n')
		report := SoakReport{Host: host}
		if err == nil {
			err = json.Unmarshal(line, &report)
		}
		if err != nil {
			report.Error = "its process has ended: " + err.Error()
		}
		isDone = report.Done || report.Error != ""
		select {
		case r.reports <- report:
		case <-ctx.Done():
			return
		}
	}
}

// watch takes reports until all hosts are done, whom it stops in time.
func (r *soakRun) watch(ctx context.Context, start time.Time) (latest []SoakReport, err error) {
	latest = make([]SoakReport, r.fabric.Hosts())
	over := time.NewTimer(r.cfg.Chaos.Lasting)
	defer over.Stop()
	progress := time.NewTicker(r.cfg.Every)
	defer progress.Stop()
	stalled := time.NewTimer(r.cfg.Limit)
	defer stalled.Stop()
	for left := len(latest); left > 0; {
		select {
		case one := <-r.reports:
			if one.Error != "" {
				return nil, fmt.Errorf("%s after %v: %s", netlab.RailHost(one.Host), time.Since(start).Round(time.Millisecond), one.Error)
			}
			if one.Allreduces > latest[one.Host].Allreduces {
				stalled.Reset(r.cfg.Limit)
			}
			latest[one.Host] = one
			if one.Done {
				left--
			}
		case <-over.C:
			for _, e := range r.ends {
				_ = e.in.Close() // which asks the host to finish
			}
		case <-progress.C:
			var sum SoakSum
			sum.Seconds = time.Since(start).Seconds()
			sum.count(latest)
			fmt.Fprintln(r.log, &sum)
		case <-stalled.C:
			return nil, fmt.Errorf("%w: no allreduce has ended within %v", ErrWrong, r.cfg.Limit)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return latest, nil
}

// add completes the sum.
func (r *soakRun) add(sum *SoakSum, all []SoakReport) error {
	sum.count(all)
	sum.Carried = make([]int64, r.fabric.Rails())
	for rail := range sum.Carried {
		for host := range r.fabric.Hosts() {
			sent, _, err := r.fabric.Counts(host, rail)
			if err != nil {
				return err
			}
			sum.Carried[rail] += int64(sent.Bytes)
		}
	}
	return agree(all)
}
