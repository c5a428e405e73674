package perf_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/tributary-fabric/tributary/bench/perf"
)

// stacks returns a line a sample, the innermost function first.
func stacks(p *profile.Profile) (all []string) {
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			names = append(names, l.Line[0].Function.Name)
		}
		all = append(all, fmt.Sprint(strings.Join(names, " < "), " ", s.Value))
	}
	return all
}

const script = `collbench    2004008 
	ffffffff81d335f7 udp_sendmsg ([kernel.kallsyms])
	ffffffffc0a312eb veth_xmit ([veth])
	          4b82eb github.com/a/b.(*UDP).send (/tmp/collbench)
	               0 [unknown] ([unknown])

two words       7 
	          4b82eb github.com/a/b.(*UDP).send (/tmp/collbench)
	    7ffd4b82eb00 __vdso_clock_gettime ([vdso])

idle       9 
`

func TestParse(t *testing.T) {
	p, err := perf.Parse(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"udp_sendmsg (kernel) < veth_xmit (kernel) < github.com/a/b.(*UDP).send < [unknown] [1 2004008]",
		"github.com/a/b.(*UDP).send < __vdso_clock_gettime [1 7]",
		"idle [1 9]",
	}
	if got := stacks(p); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(p.Function) != 6 {
		t.Errorf("%d functions", len(p.Function))
	}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		t.Fatal(err)
	}
	if again, err := profile.Parse(&file); err != nil || !slices.Equal(stacks(again), want) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"collbench\n", "2004\n", "collbench -1\n", "\t81 read ([kernel])\n", "a 1\n\t81 read\n", "a 1\n\tread\n", "a 1\n\t81 (x)\n"} {
		if _, err := perf.Parse(strings.NewReader(text)); !errors.Is(err, perf.ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(script)
	f.Add("a 1\n\t1 b (c)\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := perf.Parse(strings.NewReader(text))
		if err == nil && p.CheckValid() != nil {
			t.Error(p.CheckValid())
		}
	})
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := perf.Start(filepath.Join(t.TempDir(), "data")); !errors.Is(err, perf.ErrMissing) {
		t.Error(err)
	}
}

// start has perf record until the test says.
func start(t *testing.T) (_ *perf.Recording, data string) {
	t.Helper()
	data = filepath.Join(t.TempDir(), "data")
	r, err := perf.Start(data)
	if err != nil {
		t.Skip(err) // there is none, or it may not
	}
	return r, data
}

// TestFailed has perf write where nothing can be.
func TestFailed(t *testing.T) {
	r, _ := start(t)
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "none", "data")
	if _, err := perf.Start(nowhere); !errors.Is(err, perf.ErrFailed) || !strings.Contains(err.Error(), nowhere) {
		t.Error(err)
	}
	if _, err := perf.Read(t.Context(), nowhere, []int{os.Getpid()}); !errors.Is(err, perf.ErrFailed) || !strings.Contains(err.Error(), nowhere) {
		t.Error(err)
	}
}

// TestDenied is for users that may not look at the whole machine.
func TestDenied(t *testing.T) {
	_, missing := exec.LookPath("perf")
	level, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if missing != nil || err != nil || os.Geteuid() == 0 || strings.TrimSpace(string(level)) < "1" {
		t.Skip("this one may, or has no perf")
	}
	r, err := perf.Start(filepath.Join(t.TempDir(), "data"))
	if err == nil {
		t.Skip("by a capability, this one may", r.Stop())
	}
	if !errors.Is(err, perf.ErrDenied) || !errors.Is(err, perf.ErrFailed) {
		t.Error(err)
	}
}

// beReader makes this binary a process that reads zeros in a late thread.
const beReader = "PERF_TEST_READER"

func TestMain(m *testing.M) {
	if os.Getenv(beReader) == "" {
		os.Exit(m.Run())
	}
	// When it hears that its input has ended, perf is at work.
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
	if err := inLateThread(readZeros); err != nil {
		panic(err)
	}
}

// readZeros has the kernel work for some tenths of a second, in vfs_read.
func readZeros() error {
	f, err := os.Open("/dev/zero")
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, 1<<20)
	for range 4000 {
		if _, err := f.Read(buffer); err != nil {
			return err
		}
	}
	return nil
}

// readNames has it work about as long in iterate_dir.
func readNames() error {
	f, err := os.Open("/proc")
	if err != nil {
		return err
	}
	defer f.Close()
	for range 3000 {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := f.Readdirnames(-1); err != nil {
			return err
		}
	}
	return nil
}

// inLateThread calls f in a thread that began later than this, under a name of
// its own.
func inLateThread(f func() error) error {
	early, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	// Goroutines that keep their threads use up the early ones.
	for range len(early) + 1 {
		thread, turn, done := make(chan string), make(chan bool), make(chan error)
		go func() {
			runtime.LockOSThread()
			self, err := os.Readlink("/proc/thread-self")
			thread <- filepath.Base(self)
			<-turn
			if err == nil {
				err = os.WriteFile("/proc/thread-self/comm", []byte("late"), 0)
			}
			if err == nil {
				err = f()
			}
			done <- err
		}()
		own := <-thread
		if !slices.ContainsFunc(early, func(e os.DirEntry) bool { return e.Name() == own }) {
			close(turn)
			return <-done
		}
	}
	return errors.New("no new thread")
}

// TestRecord looks while the kernel works for two processes: this one and, until
// it ends, one of its own.
func TestRecord(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), beReader+"=1")
	cmd.Stderr = os.Stderr
	begin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // if it has not ended by itself
		_ = cmd.Wait()
	})
	r, data := start(t)
	if err := begin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(readNames(), cmd.Wait(), r.Stop()); err != nil {
		t.Fatal(err)
	}
	own, reader, nobody := os.Getpid(), cmd.Process.Pid, 1<<30
	seen := func(processes ...int) []string {
		t.Helper()
		p, err := perf.Read(t.Context(), data, processes)
		if err != nil {
			t.Fatal(err)
		}
		return stacks(p)
	}
	// A program that go test builds has no symbols, but the kernel has.
	ofOwn, ofReader := seen(own), seen(reader)
	if all := strings.Join(ofOwn, "\n"); !strings.Contains(all, "iterate_dir"+perf.KernelMark) {
		t.Errorf("this process's work is not seen:\n%s", all)
	}
	if all := strings.Join(ofReader, "\n"); !strings.Contains(all, "vfs_read"+perf.KernelMark) || strings.Contains(all, "iterate_dir") {
		t.Errorf("the other's is not seen, or this one's as well:\n%s", all)
	}
	if both := seen(own, nobody, reader); len(both) != len(ofOwn)+len(ofReader) {
		t.Errorf("%d samples of both, %d and %d of each", len(both), len(ofOwn), len(ofReader))
	}
	if all := append(seen(nobody), seen()...); len(all) != 0 {
		t.Errorf("of no process: %q", all)
	}
}
