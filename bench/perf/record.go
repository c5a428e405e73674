package perf

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// Errors of Start and Read.
var (
	// ErrMissing: there is no perf on this machine.
	ErrMissing = errors.New("perf is not installed (Debian: linux-perf)")
	// ErrFailed: perf could not do it.
	ErrFailed = errors.New("perf has failed")
	// ErrDenied, an ErrFailed: the user may not look at the whole machine.
	ErrDenied = fmt.Errorf("%w: be root, have CAP_PERFMON or set kernel.perf_event_paranoid to 0 to look at the whole machine", ErrFailed)
)

// frequency is how often a processor that is busy is looked at, in a second. It
// is none that other clocks share.
const frequency = 499

// event is the processors' time, except idle: nobody asks for that.
const event = "cpu-clock:I"

// paranoia is the file of kernel.perf_event_paranoid. Above 0, only those with a
// capability may look at the whole machine.
const paranoia = "/proc/sys/kernel/perf_event_paranoid"

// Recording is perf at work.
type Recording struct {
	cmd     *exec.Cmd
	said    bytes.Buffer // by perf, for an error
	command *os.File
	answers *os.File
	heard   *bufio.Reader // from answers
}

// Start has perf look at all processors until Stop; at its return it does so.
// What it sees, of all processes, goes to the file at path: whose it is, Read
// sorts out. To look at some processes alone costs much more where they take
// turns often: the kernel then changes counters at each turn.
//
// Errors are ErrMissing and ErrFailed, of which ErrDenied is one.
func Start(path string) (_ *Recording, err error) {
	program, err := exec.LookPath("perf")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	r := &Recording{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	// perf has files 3 and 4: it reads commands, and answers.
	theirCommand, command, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirCommand.Close()
	r.command = command
	answers, theirAnswers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirAnswers.Close()
	r.answers, r.heard = answers, bufio.NewReader(answers)
	// It would also copy every program that it sees, to a cache at home.
	r.cmd = exec.Command(program, "record", "--all-cpus", "--event", event, "--freq", strconv.Itoa(frequency), "--call-graph", "fp",
		"--delay", "-1", "--control", "fd:3,4", "--no-buildid-cache", "--output", path)
	r.cmd.ExtraFiles = []*os.File{theirCommand, theirAnswers}
	r.cmd.Stderr = &r.said
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	if err := errors.Join(theirCommand.Close(), theirAnswers.Close()); err != nil {
		return nil, errors.Join(err, r.end())
	}
	if err := r.tell("enable"); err != nil {
		return nil, errors.Join(denied(), err, r.end())
	}
	return r, nil
}

// denied returns ErrDenied if the kernel denies an ordinary user what Start
// does, and this is one. Others learn from perf itself.
func denied() error {
	text, err := os.ReadFile(paranoia)
	if err != nil || os.Geteuid() == 0 {
		return nil
	}
	if level, err := strconv.Atoi(string(bytes.TrimSpace(text))); err != nil || level <= 0 {
		return nil
	}
	return ErrDenied
}

// Stop has perf end, and returns when its file is complete.
func (r *Recording) Stop() error {
	defer r.close()
	return errors.Join(r.tell("stop"), r.end())
}

// tell gives a command and waits for the answer to it.
func (r *Recording) tell(command string) error {
	if _, err := io.WriteString(r.command, command+"\n"); err != nil {
		return fmt.Errorf("%w: telling it to %s: %w", ErrFailed, command, err)
	}
	if answer, err := r.heard.ReadString('\n'); err != nil || strings.Trim(answer, "\x00\n") != "ack" {
		return fmt.Errorf("%w: told to %s it says %q: %w", ErrFailed, command, answer, cmp.Or(err, ErrFormat))
	}
	return nil
}

// end waits until perf has ended, which it does at the latest when nobody can
// tell it anything more.
func (r *Recording) end() error {
	_ = r.command.Close() // closed twice at the end
	if err := r.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %w: %s", ErrFailed, err, bytes.TrimSpace(r.said.Bytes()))
	}
	return nil
}

func (r *Recording) close() {
	for _, f := range []*os.File{r.command, r.answers} {
		if f != nil {
			_ = f.Close() // a pipe, and perhaps closed before
		}
	}
}

// Read returns what a recording has seen of processes: of all their threads,
// whenever these began and whatever their names. A process may have ended before
// Read, or begun after Start; one that never ran, or never existed, adds nothing.
// What interrupts did while a process ran counts as its time.
func Read(ctx context.Context, path string, processes []int) (*profile.Profile, error) {
	names := make([]string, len(processes))
	for i, p := range processes {
		names[i] = strconv.Itoa(p)
	}
	cmd := exec.CommandContext(ctx, "perf", "script", "--input", path, "--fields", "comm,period,ip,sym,dso", "--pid", strings.Join(names, ","))
	var text, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w: %s", ErrFailed, path, err, bytes.TrimSpace(said.Bytes()))
	}
	return Parse(&text)
}
