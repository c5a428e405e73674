package rails

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
	"github.com/tributary-fabric/tributary/bench/report"
)

// Measure builds the fabric, measures what c asks for, and hands on each row. What it
// does is reported to c.Log. Its errors are those of the configuration, of the fabric and
// of take, and, when all is measured, ErrWrong. A contestant that fails is left out.
func Measure(ctx context.Context, c Config, take func(Row) error) (err error) {
	if err := c.Validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := &measurement{ctx: ctx, cfg: c, running: map[string]contestant{}, left: map[string]string{}}
	m.site = site{program: c.Program, kinds: c.Kinds, dir: dir, log: &shared{to: c.Log}}
	if c.TLS {
		m.site.trust = dir + "/trust"
		if err := Issue(m.site.trust); err != nil {
			return err
		}
	}
	c.Log = m.log
	fmt.Fprintf(c.Log, "building %d hosts with %d rails\n", c.Fabric.Hosts, len(c.Fabric.Rates))
	if m.fabric, err = netlab.BuildRails(c.Fabric); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.fabric.Close()) }()
	defer func() {
		for _, one := range m.running {
			one.close()
		}
	}()
	for _, bytes := range c.Sizes {
		rows, err := m.size(bytes)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if err := take(row); err != nil {
				return err
			}
		}
	}
	if m.wrong > 0 {
		return fmt.Errorf("%w: in %d turns", ErrWrong, m.wrong)
	}
	return nil
}

type measurement struct {
	site
	ctx     context.Context
	cfg     Config
	running map[string]contestant
	left    map[string]string // why a contestant is left out
	wrong   int
}

// size measures one size of messages: all contestants in turns.
func (m *measurement) size(bytes int) ([]Row, error) {
	rows := make([]Row, len(m.cfg.Contestants))
	values := make([][]float64, len(rows))
	tails := make([][]float64, len(rows))
	for i, name := range m.cfg.Contestants {
		rows[i] = Row{Measure: m.cfg.Measure, Contestant: name, Rates: m.cfg.Fabric.Rates, Kind: joined(m.cfg.Kinds, "+", func(s string) string { return s }), TLS: m.cfg.TLS, Bytes: bytes}
	}
	carried := make([][]float64, len(rows))
	for round := range m.cfg.Rounds {
		for turn := range rows {
			i := (turn + round) % len(rows)
			if m.ctx.Err() != nil {
				return nil, context.Cause(m.ctx)
			}
			m.turn(&rows[i], &values[i], &tails[i], &carried[i], round)
		}
	}
	for i := range rows {
		rows[i].combine(values[i], tails[i], carried[i])
		if base := &rows[0]; base.Median > 0 && rows[i].Cut == nil {
			rows[i].Ratio = rows[i].Median / base.Median
		}
	}
	return rows, nil
}

// combine sets what the rounds have come to.
func (r *Row) combine(values, tails, carried []float64) {
	if len(values) > 0 {
		slices.Sort(values)
		r.Rounds, r.Median, r.Least, r.Most = len(values), values[len(values)/2], values[0], values[len(values)-1]
	}
	if len(tails) > 0 {
		slices.Sort(tails)
		r.P99 = tails[len(tails)/2]
	}
	sum := 0.0
	for _, bytes := range carried {
		sum += bytes
	}
	for _, bytes := range carried {
		r.Shares = append(r.Shares, bytes/max(1, sum))
	}
}

// turn has one contestant play, if it is still there. Carried are the bytes by rail.
func (m *measurement) turn(row *Row, values, tails, carried *[]float64, round int) {
	name := row.Contestant
	if row.Left = m.left[name]; row.Left != "" {
		return
	}
	before, err := m.sent()
	if err == nil {
		err = m.play(row, values, tails)
	}
	after, e := m.sent()
	if err = errors.Join(err, e); err != nil {
		fmt.Fprintf(m.log, "left out: %s: %v\n", name, err)
		row.Left = report.SizeName(row.Bytes) + ": " + err.Error()
		if errors.Is(err, ErrWrong) {
			m.wrong++
		}
		if one := m.running[name]; one != nil {
			one.close()
			delete(m.running, name)
		}
		if row.Cut == nil { // after a cut that it did not survive it may start again
			m.left[name] = row.Left
		}
		return
	}
	if *carried == nil {
		*carried = make([]float64, len(after))
	}
	for rail := range after {
		(*carried)[rail] += float64(after[rail] - before[rail])
	}
	if row.Cut == nil {
		fmt.Fprintf(m.log, "%s, round %d of %d: %-12s %s\n", report.SizeName(row.Bytes), round+1, m.cfg.Rounds, name, number3((*values)[len(*values)-1]))
	}
}

func (m *measurement) play(row *Row, values, tails *[]float64) error {
	one, ok := m.running[row.Contestant]
	if !ok {
		limited, cancel := context.WithTimeoutCause(m.ctx, m.cfg.Limit, fmt.Errorf("not started within %v", m.cfg.Limit))
		defer cancel()
		var err error
		if one, err = m.start(limited, row.Contestant); err != nil {
			return err
		}
		m.running[row.Contestant] = one
		// Its connections are made by the first messages: those for messages of this size.
		if p, ok := one.(processes); ok && m.cfg.Measure != Latency {
			if err := (Request{What: stream, Bytes: min(row.Bytes, 1<<16), Iterations: 256, Window: 8, Limit: m.cfg.Limit}).check(limited, p); err != nil {
				return err
			}
		}
	}
	switch m.cfg.Measure {
	case Latency:
		tail, right, err := one.pingpong(m.ctx, m.cfg.pingpong(row.Bytes))
		if err != nil {
			return err
		}
		if !right {
			return ErrWrong
		}
		*values = append(*values, tail.Median)
		if tail.P99 > 0 {
			*tails = append(*tails, tail.P99)
		}
	case Bandwidth:
		rate, err := one.bandwidth(m.ctx, m.cfg.stream(row.Bytes))
		if err != nil {
			return err
		}
		*values = append(*values, rate/1e6)
	default:
		return m.cut(row, one, values)
	}
	return nil
}

// cut runs a stream while links fail by the schedule.
func (m *measurement) cut(row *Row, one contestant, values *[]float64) error {
	p, ok := one.(processes)
	if !ok {
		return fmt.Errorf("%w: %s has no stream to cut", ErrConfig, row.Contestant)
	}
	r := m.cfg.stream(row.Bytes)
	r.Iterations, r.Lasting, r.Start = 0, m.cfg.Lasting, time.Now().UnixNano()
	r.Limit += m.cfg.Lasting
	ctx, cancel := context.WithCancel(m.ctx)
	ran := make(chan error, 1)
	go func() { ran <- apply(ctx, m.fabric, m.cfg.Schedule, time.Unix(0, r.Start), m.log) }()
	f, err := p.flow(m.ctx, r)
	cancel()
	err = errors.Join(err, <-ran, repair(m.fabric))
	row.Cut = cutOf(m.cfg.Schedule, f.Ledger, f.Meter)
	*values = append(*values, f.rate()/1e6)
	if err == nil && !f.Ledger.Exact() {
		err = fmt.Errorf("%w: %v", ErrWrong, f.Ledger)
	}
	return err
}

// sent returns what the first host has sent over each rail.
func (s *site) sent() (all []uint64, err error) {
	for rail := range s.fabric.Rails() {
		sent, _, err := s.fabric.Counts(Asker, rail)
		if err != nil {
			return nil, err
		}
		all = append(all, sent.Bytes)
	}
	return all, nil
}

// apply has links fail and recover by a schedule, until ctx ends.
func apply(ctx context.Context, f *netlab.Rails, s Schedule, start time.Time, log io.Writer) error {
	for _, e := range s {
		due := time.NewTimer(time.Until(start.Add(e.At)))
		select {
		case <-due.C:
		case <-ctx.Done():
			due.Stop()
			return nil
		}
		fmt.Fprintf(log, "%v\n", e)
		if err := set(f, e); err != nil {
			return err
		}
	}
	return nil
}

// set makes an event happen.
func set(f *netlab.Rails, e Event) error {
	hosts := []int{e.Host}
	if e.Host == AllHosts {
		hosts = hosts[:0]
		for host := range f.Hosts() {
			hosts = append(hosts, host)
		}
	}
	rate := f.Rates()[e.Rail]
	if e.Slow > 0 {
		rate = e.Slow
	}
	for _, host := range hosts {
		if err := errors.Join(f.SetRate(host, e.Rail, rate), f.SetFault(host, e.Rail, e.Fault)); err != nil {
			return err
		}
	}
	return nil
}

// repair has all links work as they were built.
func repair(f *netlab.Rails) error {
	for rail := range f.Rails() {
		if err := set(f, Event{Host: AllHosts, Rail: rail}); err != nil {
			return err
		}
	}
	return nil
}

// shared is a writer for several goroutines: also processes write to it.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

func (w *shared) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}
