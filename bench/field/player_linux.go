package field

import (
	"errors"
	"os/exec"
	"time"

	"github.com/tributary-fabric/tributary/topology"
)

// Job is processes that were started together on a fabric.
type Job struct {
	all  []*process
	gone chan struct{}
}

// Gone is closed when one of the job's processes has failed, or all have ended.
func (j *Job) Gone() <-chan struct{} { return j.gone }

// Err returns how the first process that failed did; nil: none has.
func (j *Job) Err() error { return failure(j.all) }

// End lets the processes end by themselves for a while, which they should do
// already, and then kills those that have not.
func (j *Job) End(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-j.gone:
	case <-timer.C:
	}
	stop(j.all)
}

// begin makes a job of processes that run.
func begin(all []*process) *Job {
	j := &Job{all: all, gone: make(chan struct{})}
	ended := make(chan error)
	for _, p := range all {
		go func() { <-p.done; ended <- p.err }()
	}
	go func() {
		reported := false
		for range all {
			if err := <-ended; err != nil && !reported {
				reported = true
				close(j.gone)
			}
		}
		if !reported {
			close(j.gone)
		}
	}()
	return j
}

// Players starts all members, which take turns at a socket. Args are
// flags of the command run.
func (f *Fabric) Players(socket string, args []string) (*Job, error) {
	var all []*process
	for r := range f.Ranks() {
		p, err := f.startRank(0, r, false, append([]string{"--turns", socket}, args...))
		if err != nil {
			stop(all)
			return nil, err
		}
		all = append(all, p.process)
	}
	return begin(all), nil
}

// Guests starts commands of others, command n on host n, which speak by a name.
func (f *Fabric) Guests(name string, commands []*exec.Cmd) (*Job, error) {
	var all []*process
	for n, cmd := range commands {
		cmd.Stderr = &speaker{name: name, mu: &f.talk, w: f.cfg.Log}
		p, err := launch(name, cmd, func(c *exec.Cmd) error { return f.lab.Start(topology.NodeID(n), c) })
		if err != nil {
			stop(all)
			return nil, err
		}
		all = append(all, p)
	}
	return begin(all), nil
}

// ErrNoWindow: a window on the switches could not be opened.
var ErrNoWindow = errors.New("no window on the switches")

// LookAtSwitches opens a window on the switches; the function that it returns closes it.
func (f *Fabric) LookAtSwitches() (func() (*Window, error), error) {
	of := map[Side][]*process{}
	for _, p := range f.agents {
		of[Switches] = append(of[Switches], p)
	}
	w, err := f.open(of, nil)
	if err != nil {
		return nil, errors.Join(ErrNoWindow, err)
	}
	return w.shut, nil
}
