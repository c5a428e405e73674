package field

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
)

// killAfter is the time that a process has to end in by itself before it is killed.
const killAfter = 5 * time.Second

// process is one that was started, and is waited for.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // then: how

	gauge *gauge.Gauge // nil: it is not measured
}

// launch starts cmd by start. What is in after is called when it has ended.
func launch(name string, cmd *exec.Cmd, start func(*exec.Cmd) error, after ...func()) (*process, error) {
	// What it leaves behind must not keep Wait from returning.
	cmd.WaitDelay = killAfter
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		if err := cmd.Wait(); err != nil {
			p.err = fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range after {
			f()
		}
	}()
	return p, nil
}

// kill ends the process as kill -9 does, and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL) // its only error is that it has ended
	<-p.done
}

// isEnding reports, of a process that has not answered, whether that is because it ends.
func (p *process) isEnding() bool {
	patience := time.NewTimer(killAfter)
	defer patience.Stop()
	select {
	case <-p.done:
		return true
	case <-patience.C:
		return false
	}
}

// stop asks the processes to end, and kills those that do not.
func stop(all []*process) {
	for _, p := range all {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	patience := time.NewTimer(killAfter)
	defer patience.Stop()
	for _, p := range all {
		select {
		case <-p.done:
			continue
		case <-patience.C:
		}
		break
	}
	for _, p := range all {
		p.kill()
	}
}

// failure returns how the first of the processes that failed did, if any has.
func failure(all []*process) error {
	for _, p := range all {
		select {
		case <-p.done:
			if p.err != nil {
				return p.err
			}
		default:
		}
	}
	return nil
}

// speaker writes whole lines with a name before them; several may share w.
type speaker struct {
	name string
	mu   *sync.Mutex
	w    io.Writer
	rest []byte
}

// Write implements io.Writer.
func (s *speaker) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		i := bytes.IndexByte(s.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		s.mu.Lock()
		_, err := fmt.Fprintf(s.w, "%-9s %s", s.name, s.rest[:i+1])
		s.mu.Unlock()
		s.rest = s.rest[i+1:]
		if err != nil {
			return 0, err
		}
	}
}
