package rails

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/tributary-fabric/tributary/bench/netlab"
)

// pair is two processes that Play.
type pair struct {
	ends [2]*end
}

// end is one of them.
type end struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
}

// startPair starts the ends of a port: first the answerer, and when it can be called the
// asker. Each has its own arguments for the program.
func startPair(ctx context.Context, f *netlab.Rails, command func(side int) *exec.Cmd) (*pair, error) {
	p := &pair{}
	for _, side := range []int{Answerer, Asker} {
		e := &end{cmd: command(side)}
		if err := e.start(ctx, f, side); err != nil {
			p.close()
			return nil, err
		}
		p.ends[side] = e
	}
	return p, nil
}

func (e *end) start(ctx context.Context, f *netlab.Rails, side int) (err error) {
	if e.in, err = e.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	e.answers = bufio.NewReader(out)
	e.cmd.WaitDelay = time.Second
	if err := f.Start(side, e.cmd); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, e.kill)
	defer stop()
	line, err := e.answers.ReadString('\n')
	if err != nil || line != string(ready) {
		e.end()
		return errors.Join(fmt.Errorf("the process on %s has ended", netlab.RailHost(side)), context.Cause(ctx))
	}
	return nil
}

// kill ends a process that was started.
func (e *end) kill() { _ = e.cmd.Process.Signal(syscall.SIGKILL) }

// end ends the process, and waits for it.
func (e *end) end() {
	_ = e.in.Close()
	e.kill()
	_ = e.cmd.Wait() // it was killed
}

func (p *pair) close() {
	for _, e := range p.ends {
		if e != nil {
			e.end()
		}
	}
}

// ask has both ends do what r says, and returns what they answer. After an error the pair
// is of no more use.
func (p *pair) ask(ctx context.Context, r Request) (replies [2]Reply, err error) {
	type result struct {
		side int
		err  error
	}
	results := make(chan result, len(p.ends))
	for side, e := range p.ends {
		go func() { results <- result{side, e.ask(r, &replies[side])} }()
	}
	stop := context.AfterFunc(ctx, func() {
		for _, e := range p.ends {
			e.kill()
		}
	})
	defer stop()
	var errs []error
	for range p.ends {
		one := <-results
		if one.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", netlab.RailHost(one.side), one.err))
			for _, e := range p.ends {
				e.kill() // the other one may wait for it
			}
		}
	}
	return replies, errors.Join(append(errs, context.Cause(ctx))...)
}

func (e *end) ask(r Request, reply *Reply) error {
	if err := json.NewEncoder(e.in).Encode(r); err != nil {
		return err
	}
	line, err := e.answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the process has ended: %w", err)
	}
	if err := json.NewDecoder(strings.NewReader(line)).Decode(reply); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	if reply.Error != "" {
		return errors.New(reply.Error)
	}
	return nil
}
