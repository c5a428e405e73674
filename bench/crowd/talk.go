package crowd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// answer is the line with which a process answers.
type answer struct {
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// verb does what a word orders, and returns what is to be answered.
type verb func(ctx context.Context, arguments string) (any, error)

// serve obeys the lines of in until it ends.
func serve(ctx context.Context, in io.Reader, out io.Writer, verbs map[string]verb) error {
	verbs["memory"] = func(context.Context, string) (any, error) { return readMemory() }
	to := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		word, arguments, _ := strings.Cut(lines.Text(), " ")
		var a answer
		if do := verbs[word]; do == nil {
			a.Error = fmt.Sprintf("unknown word %q", word)
		} else if value, err := do(ctx, arguments); err != nil {
			a.Error = err.Error()
		} else if a.Value, err = json.Marshal(value); err != nil {
			a.Error = err.Error()
		}
		if err := to.Encode(a); err != nil {
			return fmt.Errorf("crowd: answering: %w", err)
		}
	}
	return nil
}

// errProcess is wrapped by the errors of another process.
var errProcess = errors.New("crowd")

// process is another process that serves.
type process struct {
	name  string
	cmd   *exec.Cmd
	to    io.WriteCloser
	lines *bufio.Scanner
}

// maxLine is the most bytes of an answer.
const maxLine = 1 << 20

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
	p.lines = bufio.NewScanner(from)
	p.lines.Buffer(nil, maxLine)
	return p, nil
}

// ask sends words, and reads the answer to it.
func (p *process) ask(to any, words ...string) error {
	if _, err := fmt.Fprintln(p.to, strings.Join(words, " ")); err != nil {
		return fmt.Errorf("%w: %s: %w", errProcess, p.name, err)
	}
	if !p.lines.Scan() {
		return fmt.Errorf("%w: %s has ended: %w", errProcess, p.name, errors.Join(p.lines.Err(), p.end()))
	}
	var a answer
	if err := json.Unmarshal(p.lines.Bytes(), &a); err != nil {
		return fmt.Errorf("%w: %s: %w", errProcess, p.name, err)
	}
	if a.Error != "" {
		return fmt.Errorf("%w: %s: %s", errProcess, p.name, a.Error)
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(a.Value, to)
}

// end ends the process and waits for it.
func (p *process) end() error {
	_ = p.to.Close() // it may have ended already
	return p.cmd.Wait()
}
