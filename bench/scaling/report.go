package scaling

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Config says what a report has.
type Config struct {
	Costs Costs   // of hosts with kernel sockets
	Hosts []int   // of the fat-tree of Ports: powers of two
	Rates []int64 // bit/s of links
	Bytes []int   // of vectors: multiples of 4, to MaxBytes
	Ports int     // of a switch: a power of two to MaxPorts
	Table []Timed
}

// The most that a report has.
const (
	MaxPorts = 128
	MaxBytes = 256 << 20
	maxFull  = 1024 // hosts, where all are simulated
)

// DefaultConfig returns what docs/scaling.md shows.
func DefaultConfig() Config {
	return Config{
		Costs: Measured(), Hosts: []int{128, 1024, 16384, 65536}, Rates: []int64{100e9, 400e9},
		Bytes: []int{8, 4096, 64 << 10, 1 << 20, 16 << 20}, Ports: 64, Table: NamespaceTable(),
	}
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	if len(c.Hosts) == 0 || len(c.Rates) == 0 || len(c.Bytes) == 0 {
		return fmt.Errorf("%w: no hosts, rates or bytes", ErrModel)
	}
	if c.Ports < 2 || c.Ports > MaxPorts || c.Ports&(c.Ports-1) != 0 {
		return fmt.Errorf("%w: switches of %d ports; possible are powers of two from 2 to %d", ErrModel, c.Ports, MaxPorts)
	}
	for _, hosts := range c.Hosts {
		if most := c.Ports * c.Ports * c.Ports / 4; hosts < 2 || hosts > most || hosts&(hosts-1) != 0 {
			return fmt.Errorf("%w: %d hosts; possible are powers of two from 2 to %d, which switches of %d ports join", ErrModel, hosts, most, c.Ports)
		}
	}
	for _, bytes := range c.Bytes {
		if bytes < 4 || bytes%4 != 0 || bytes > MaxBytes {
			return fmt.Errorf("%w: vectors of %d bytes; possible are multiples of 4 from 4 to %d", ErrModel, bytes, MaxBytes)
		}
	}
	if err := c.Costs.Validate(); err != nil {
		return err
	}
	for _, rate := range c.Rates {
		for _, costs := range []Costs{c.Costs, Bypass()} {
			if err := Hardware(costs, rate, true, socketChunk).Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Timed is a row of the namespace table: 8 hosts, 2 leaves and 2 spines in namespaces.
type Timed struct {
	Bytes  int           `json:"bytes"`
	Rate   int64         `json:"rate"` // bit/s; 0: unshaped
	Median time.Duration `json:"median"`
	Others float64       `json:"others"` // share of the processors that other programs took meanwhile
}

// NamespaceTable returns the medians of docs/benchmarks.md.
func NamespaceTable() []Timed {
	us := time.Microsecond
	return []Timed{
		{8, 200e6, 113 * us, 0}, {64 << 10, 200e6, 2670 * us, 0}, {1 << 20, 200e6, 44200 * us, 0}, {16 << 20, 200e6, 712000 * us, 0},
		{8, 0, 120 * us, 0}, {64 << 10, 0, 332 * us, 0}, {1 << 20, 0, 3590 * us, 0}, {16 << 20, 0, 50800 * us, 0},
	}
}

// Reproduced is a row of the table beside what the model gives.
type Reproduced struct {
	Timed
	Simulated time.Duration `json:"simulated"`
	Off       float64       `json:"off"` // share by which it differs
	Reached   bool          `json:"reached"`
}

// reproduceLimit is how much a row may differ.
const reproduceLimit = 0.15

// The ends of a collective.
const (
	Sockets = "kernel sockets"
	Cards   = "kernel bypass"
)

// Row is an allreduce in a data centre.
type Row struct {
	Ends         string        `json:"ends"`
	Hosts        int           `json:"hosts"`
	Shape        Shape         `json:"shape"`
	Rate         int64         `json:"rate"`
	Bytes        int           `json:"bytes"`
	CutThrough   time.Duration `json:"cut_through"`       // over the tree
	StoreForward time.Duration `json:"store_and_forward"` // likewise
	Share        float64       `json:"share"`             // of a link: the vector's bits in the second of these times
	Algorithm    string        `json:"algorithm"`
	HostTime     time.Duration `json:"host_time"` // by the best algorithm of hosts, cut-through
}

// Published is what others have measured, beside the model with their network.
type Published struct {
	Bytes     int           `json:"bytes"`
	ByHosts   time.Duration `json:"by_hosts"`
	BySharp   time.Duration `json:"by_sharp"`
	ModelHost time.Duration `json:"model_host"`
	ModelTree time.Duration `json:"model_tree"`
}

// What Variants have in the place of hardware.
const (
	softwareSwitches = "switches in software, a processor each"
	softwareCore     = "kernel bypass, the member's core on the host's processor"
)

// Variant is a tree where less is done in hardware than in Rows.
type Variant struct {
	Name  string        `json:"name"`
	Hosts int           `json:"hosts"`
	Rate  int64         `json:"rate"`
	Bytes int           `json:"bytes"`
	Tree  time.Duration `json:"tree"`
	Share float64       `json:"share"`
}

// Report is all of it.
type Report struct {
	Costs        Costs        `json:"costs"`
	Reproduction []Reproduced `json:"reproduction"`
	Rows         []Row        `json:"rows"`
	Published    []Published  `json:"published"`
	Variants     []Variant    `json:"variants"`
}

// Make simulates everything, on all processors.
func Make(ctx context.Context, c Config) (*Report, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	once := func(all []int) []int { return slices.Compact(slices.Sorted(slices.Values(all))) }
	c.Hosts, c.Bytes = once(c.Hosts), once(c.Bytes)
	r := &Report{Costs: c.Costs}
	var jobs []func() error
	r.Reproduction = make([]Reproduced, len(c.Table))
	for i, row := range c.Table {
		jobs = append(jobs, func() (err error) { r.Reproduction[i], err = Reproduce(c.Costs, row); return err })
	}
	shapes := map[int]Shape{}
	for _, hosts := range c.Hosts {
		s, err := Planned(c.Ports, hosts)
		if err != nil {
			return nil, err
		}
		shapes[hosts] = s
	}
	r.Rows = c.rows(shapes)
	trees := map[string]*[2]time.Duration{} // those of one depth take one time
	keyOf := func(row *Row) string { return fmt.Sprint(row.Ends, len(row.Shape), row.Rate, row.Bytes) }
	for i := range r.Rows {
		row := &r.Rows[i]
		if key := keyOf(row); trees[key] == nil {
			t := new([2]time.Duration)
			trees[key] = t
			for k, cut := range []bool{true, false} {
				jobs = append(jobs, func() (err error) { t[k], err = row.simulate(c.Costs, cut); return err })
			}
		}
	}
	r.Published = make([]Published, len(published))
	for i, p := range published {
		jobs = append(jobs, func() (err error) { r.Published[i], err = p.beside(); return err })
	}
	r.Variants = c.variants()
	for i := range r.Variants {
		jobs = append(jobs, func() error { return r.Variants[i].simulate(c.Costs, shapes[r.Variants[i].Hosts]) })
	}
	if err := inParallel(ctx, jobs); err != nil {
		return nil, err
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		t := trees[keyOf(row)]
		row.CutThrough, row.StoreForward = t[0], t[1]
		row.Share = share(row.Bytes, row.StoreForward, row.Rate)
		row.Algorithm, row.HostTime = modelOf(c.Costs, row, true).Best(row.Shape, row.Bytes)
	}
	return r, nil
}

// inParallel runs jobs on all processors until one fails.
func inParallel(ctx context.Context, jobs []func() error) error {
	next := make(chan func() error)
	var mu sync.Mutex
	var failed error
	var w sync.WaitGroup
	for range runtime.NumCPU() {
		w.Go(func() {
			for job := range next {
				if err := errors.Join(ctx.Err(), job()); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	w.Wait()
	return failed
}

// Reproduce simulates a row of the namespace table.
func Reproduce(c Costs, row Timed) (Reproduced, error) {
	r := Reproduced{Timed: row}
	times := 21
	if row.Bytes > 1<<20 {
		times = 1
	} else if row.Bytes > 64<<10 {
		times = 5
	}
	got, err := Run{Model: Namespaces(c, row.Rate), Shape: Shape{4, 2}, Bytes: row.Bytes, Times: times}.Simulate()
	if err != nil {
		return r, fmt.Errorf("%d bytes at %d bit/s in namespaces: %w", row.Bytes, row.Rate, err)
	}
	r.Simulated = got.Median()
	r.Off = float64(r.Simulated)/float64(row.Median) - 1
	r.Reached = r.Off <= reproduceLimit && r.Off >= -reproduceLimit
	return r, nil
}

// rows returns the rows without their figures, in the order of tables.
func (c *Config) rows(shapes map[int]Shape) (all []Row) {
	for _, ends := range []string{Cards, Sockets} {
		for _, bytes := range c.Bytes {
			for _, hosts := range c.Hosts {
				for _, rate := range c.Rates {
					all = append(all, Row{Ends: ends, Hosts: hosts, Shape: shapes[hosts], Rate: rate, Bytes: bytes})
				}
			}
		}
	}
	return all
}

// What hosts put into a packet: as much as fits the MTU of a card, and of Ethernet.
const (
	cardChunk   = 4096
	socketChunk = 1432
)

// modelOf returns the model of a row.
func modelOf(c Costs, r *Row, cutThrough bool) Model {
	if r.Ends == Cards {
		return Hardware(Bypass(), r.Rate, cutThrough, cardChunk)
	}
	return Hardware(c, r.Rate, cutThrough, socketChunk)
}

func (r *Row) simulate(c Costs, cutThrough bool) (time.Duration, error) {
	got, err := Run{Model: modelOf(c, r, cutThrough), Shape: r.Shape, Bytes: r.Bytes, Times: 1, Fold: true}.Simulate()
	if err != nil {
		return 0, fmt.Errorf("%d bytes over %d hosts: %w", r.Bytes, r.Hosts, err)
	}
	return got.Median(), nil
}

// share returns the part of a link's rate at which a vector was reduced.
func share(bytes int, t time.Duration, rate int64) float64 {
	return float64(bytes) * 8 / t.Seconds() / float64(rate)
}

// published are SHARP's figures at 128 hosts: Graham and others, "Scalable Hierarchical Aggregation Protocol
// (SHArP)", COMHPC 2016, on a Switch-IB 2 of 100 Gbit/s.
var published = []Published{
	{Bytes: 8, ByHosts: 6010 * time.Nanosecond, BySharp: 2830 * time.Nanosecond},
	{Bytes: 4096, ByHosts: 46930 * time.Nanosecond, BySharp: 14480 * time.Nanosecond},
}

// SharpBandwidth is the share of the network's bandwidth that an allreduce of long vectors takes by
// streaming aggregation: Graham and others, "SHARP Streaming-Aggregation", ISC 2020, on HDR.
const SharpBandwidth = 0.95

// beside gives the model their network: 90 ns in a switch that forwards, as a Switch-IB 2 is sold with.
func (p Published) beside() (Published, error) {
	m := Hardware(Bypass(), 100e9, true, cardChunk)
	m.Pipeline.Forward = 90 * time.Nanosecond
	s := Shape{32, 4}
	got, err := Run{Model: m, Shape: s, Bytes: p.Bytes, Times: 1, Fold: true}.Simulate()
	if err != nil {
		return p, err
	}
	p.ModelTree = got.Median()
	_, p.ModelHost = m.Best(s, p.Bytes)
	return p, nil
}

// variants returns those of the fewest hosts at the first rate, without their figures.
func (c *Config) variants() (all []Variant) {
	hosts := c.Hosts[0]
	for _, name := range []string{softwareCore, softwareSwitches} {
		for _, bytes := range c.Bytes {
			if name == softwareCore || bytes <= 1<<20 && hosts <= maxFull {
				all = append(all, Variant{Name: name, Hosts: hosts, Rate: c.Rates[0], Bytes: bytes})
			}
		}
	}
	return all
}

func (v *Variant) simulate(c Costs, shape Shape) error {
	run := Run{Shape: shape, Bytes: v.Bytes, Times: 1}
	if v.Name == softwareCore {
		run.Fold, run.Model = true, Hardware(Bypass(), v.Rate, true, cardChunk)
		run.Model.Costs.Session = c.Session
	} else {
		run.Model = Hardware(c, v.Rate, false, socketChunk)
		run.Model.Pipeline = nil
	}
	got, err := run.Simulate()
	if err != nil {
		return fmt.Errorf("%d bytes, %s: %w", v.Bytes, v.Name, err)
	}
	v.Tree = got.Median()
	v.Share = share(v.Bytes, v.Tree, v.Rate)
	return nil
}
