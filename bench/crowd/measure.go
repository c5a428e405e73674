package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// Row is what one number of groups did.
type Row struct {
	Transport string    `json:"transport"`
	Groups    int       `json:"groups"`
	Members   int       `json:"members"` // of each
	Formed    float64   `json:"formed_s"`
	Offloaded int       `json:"offloaded"` // groups, when all of them stood
	Later     int       `json:"offloaded_later"`
	Why       string    `json:"why,omitempty"` // of one that was not
	Slots     int       `json:"slots"`         // held on the switch with the most
	Runs      []Run     `json:"runs"`
	Idle      Footprint `json:"idle"` // of all groups, after they have rested, without what there was before them
	Busy      Footprint `json:"busy"` // after the operations
}

// Run is operations of one size on all groups at once.
type Run struct {
	Bytes  int     `json:"bytes"`
	Best   float64 `json:"best_s"`
	Median float64 `json:"median_s"`
	Worst  float64 `json:"worst_s"`
	Wrong  int     `json:"wrong"` // results
}

// Footprint is the memory of the three processes.
type Footprint struct {
	Hosts    Memory `json:"hosts"`
	Switches Memory `json:"switches"`
	Manager  Memory `json:"manager"`
}

// Measure measures each number of groups, and hands on its row.
func (p *Plan) Measure(ctx context.Context, errs io.Writer, take func(Row) error) error {
	if err := p.Validate(); err != nil {
		return err
	}
	g, err := Open(p.Fabric, p.Slots)
	if err != nil {
		return err
	}
	for _, n := range p.Groups {
		row := Row{Transport: p.Transport, Groups: n, Members: g.Hosts()}
		if err := p.measure(ctx, errs, &row); err != nil {
			return fmt.Errorf("%d groups: %w", n, err)
		}
		if err := take(row); err != nil {
			return err
		}
	}
	return nil
}

// scene is the three processes; nil are those that there are not.
type scene struct {
	hosts, switches, manager *process
}

// open starts the processes.
func (p *Plan) open(ctx context.Context, errs io.Writer) (s *scene, err error) {
	s = new(scene)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	fabric := []string{"--fabric", p.Fabric, "--slots", strconv.Itoa(p.Slots)}
	members := append(slices.Clone(fabric), "--window", strconv.FormatUint(uint64(p.Window), 10))
	if p.Transport == Transports[0] {
		if s.switches, err = start(ctx, errs, "switches", fabric...); err != nil {
			return s, err
		}
		var agents map[string]string
		if err := s.switches.ask(&agents, "addresses"); err != nil {
			return s, err
		}
		arguments := slices.Clone(fabric)
		for name, address := range agents {
			arguments = append(arguments, "--agent", name+"="+address)
		}
		if s.manager, err = start(ctx, errs, "manager", arguments...); err != nil {
			return s, err
		}
		var address string
		if err := s.manager.ask(&address, "address"); err != nil {
			return s, err
		}
		members = append(members, "--manager", address)
	}
	s.hosts, err = start(ctx, errs, "hosts", members...)
	return s, err
}

// close ends the processes, the hosts first.
func (s *scene) close() error {
	var errs []error
	for _, p := range []*process{s.hosts, s.manager, s.switches} {
		if p != nil {
			errs = append(errs, p.end())
		}
	}
	return errors.Join(errs...)
}

// memory reads that of each process.
func (s *scene) memory() (f Footprint, err error) {
	for p, to := range map[*process]*Memory{s.hosts: &f.Hosts, s.switches: &f.Switches, s.manager: &f.Manager} {
		if p != nil {
			err = errors.Join(err, p.ask(to, "memory"))
		}
	}
	return f, err
}

func (f Footprint) since(before Footprint) Footprint {
	return Footprint{f.Hosts.Since(before.Hosts), f.Switches.Since(before.Switches), f.Manager.Since(before.Manager)}
}

// measure fills in the row of a number of groups.
func (p *Plan) measure(ctx context.Context, errs io.Writer, row *Row) (err error) {
	s, err := p.open(ctx, errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	before, err := s.memory()
	if err != nil {
		return err
	}
	var f formed
	if err := s.hosts.ask(&f, "form", strconv.Itoa(row.Groups)); err != nil {
		return err
	}
	row.Formed = f.Seconds
	var stand standing
	if err := s.hosts.ask(&stand, "stand"); err != nil {
		return err
	}
	row.Offloaded, row.Why = stand.Offloaded, stand.Why
	if err := runner.Pause(ctx, p.Settle); err != nil {
		return err
	}
	idle, err := s.memory()
	if err != nil {
		return err
	}
	row.Idle = idle.since(before)
	for _, bytes := range p.Bytes {
		run, err := p.run(ctx, s, bytes)
		if err != nil {
			return fmt.Errorf("%d bytes: %w", bytes, err)
		}
		row.Runs = append(row.Runs, run)
	}
	if err := s.hosts.ask(&stand, "stand"); err != nil {
		return err
	}
	row.Later = stand.Offloaded
	if s.manager != nil {
		if err := s.manager.ask(&row.Slots, "slots"); err != nil {
			return err
		}
	}
	busy, err := s.memory()
	row.Busy = busy.since(before)
	return err
}

// run measures one size.
func (p *Plan) run(ctx context.Context, s *scene, bytes int) (Run, error) {
	if err := runner.Pause(ctx, p.Settle); err != nil {
		return Run{}, err
	}
	var t timed
	if err := s.hosts.ask(&t, "run", strconv.Itoa(bytes), strconv.Itoa(p.Iterations)); err != nil {
		return Run{}, err
	}
	slices.Sort(t.Seconds)
	last := len(t.Seconds) - 1
	return Run{Bytes: bytes, Best: t.Seconds[0], Median: t.Seconds[last/2], Worst: t.Seconds[last], Wrong: t.Wrong}, nil
}
