package field

import (
	"os/exec"

	"github.com/tributary-fabric/tributary/hostlib"
)

// Worker is a process that was started for a member, and can be killed alone.
type Worker struct{ *process }

// Members returns the members of the first group, by rank.
func (f *Fabric) Members() []hostlib.Member { return f.members(0) }

// MemberFile returns the file that has them.
func (f *Fabric) MemberFile() string { return f.memberFile(0) }

// Work starts the program with args on the host of a rank.
func (f *Fabric) Work(rank int, args ...string) (*Worker, error) {
	n, name := f.hostOf(rank), processName(f.members(0)[rank])
	p, err := launch(name, f.command(roleHost, name, args...), func(c *exec.Cmd) error { return f.lab.Start(n, c) })
	if err != nil {
		return nil, err
	}
	return &Worker{p}, nil
}

// Kill ends it as kill -9 does, and waits for it.
func (w *Worker) Kill() { w.kill() }

// Gone is closed when it has ended.
func (w *Worker) Gone() <-chan struct{} { return w.done }

// Err returns how it has ended, once Gone is closed.
func (w *Worker) Err() error { return w.err }

// EndWorkers asks workers to end, and kills those that do not.
func EndWorkers(all []*Worker) {
	processes := make([]*process, len(all))
	for i, w := range all {
		processes[i] = w.process
	}
	stop(processes)
}
