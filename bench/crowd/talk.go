package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/tributary-fabric/tributary/bench/talk"
)

// verb does what a word orders, and returns what is to be answered.
type verb func(ctx context.Context, arguments string) (any, error)

// serve obeys the lines of in until it ends.
func serve(ctx context.Context, in io.Reader, out io.Writer, verbs map[string]verb) error {
	verbs["memory"] = func(context.Context, string) (any, error) { return readMemory() }
	return talk.Serve(in, out, func(word, arguments string) (any, error) {
		do := verbs[word]
		if do == nil {
			return nil, fmt.Errorf("unknown word %q", word)
		}
		return do(ctx, arguments)
	})
}

// errProcess is wrapped by the errors of another process.
var errProcess = errors.New("crowd")

// process is another process that serves.
type process struct {
	name string
	cmd  *exec.Cmd
	to   io.WriteCloser
	line talk.Line
}

// start starts this program with other arguments.
func start(ctx context.Context, errs io.Writer, name string, arguments ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProcess, err)
	}
	p := &process{name: name, cmd: exec.CommandContext(ctx, self, append([]string{"node", "crowd-" + name}, arguments...)...)}
	p.cmd.Stderr = errs
	p.cmd.WaitDelay = time.Minute
	p.cmd.Cancel = func() error { return p.to.Close() } // it ends itself
	if p.to, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%w: %w", errProcess, err)
	}
	from, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProcess, err)
	}
	p.line = talk.New(p.to, from)
	return p, nil
}

// ask sends words, and reads the answer to it.
func (p *process) ask(to any, words ...string) error {
	err := p.line.Ask(to, words...)
	if errors.Is(err, io.EOF) {
		err = errors.Join(err, p.end())
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errProcess, p.name, err)
	}
	return nil
}

// end ends the process and waits for it.
func (p *process) end() error {
	_ = p.to.Close() // it may have ended already
	return p.cmd.Wait()
}
