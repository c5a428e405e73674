package field

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/tributary-fabric/tributary/bench/gauge"
)

// withGauge gives a command's process its side of a gauge, and returns this
// one's, and what is to be closed when the process has been started, or was not.
func withGauge(cmd *exec.Cmd) (g *gauge.Gauge, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a gauge: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), "gauge")
	cmd.ExtraFiles = []*os.File{theirs} // the process finds it at gaugeFile
	cmd.Args = append(cmd.Args, "--gauge")
	// Nonblocking, so that closing it ends a read.
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, nil, errors.Join(err, unix.Close(pair[0]), theirs.Close())
	}
	return gauge.Dial(os.NewFile(uintptr(pair[0]), "gauge")), theirs, nil
}

// launchMeasured is launch of a process that serves a gauge.
func launchMeasured(name string, cmd *exec.Cmd, start func(*exec.Cmd) error) (*process, error) {
	g, theirs, err := withGauge(cmd)
	if err != nil {
		return nil, err
	}
	p, err := launch(name, cmd, start, func() { _ = g.Close() }) // once
	if err = errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	p.gauge = g
	return p, nil
}
