package gauge

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/bench/talk"
	"github.com/tributary-fabric/tributary/internal/driver/processor"
)

// served returns the gauge of this process, whose traffic is what next returns.
func served(t *testing.T, next func() (Traffic, error)) *Gauge {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(theirs, next) }()
	g := Dial(ours)
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

// sink keeps what is allocated from being optimised away.
var sink [][]byte

func TestWindow(t *testing.T) {
	var counted Traffic
	g := served(t, func() (Traffic, error) { return counted, nil })
	counted = Traffic{10, 20, 30, 40, 50, 60, 70}
	if err := g.Open(""); err != nil {
		t.Fatal(err)
	}
	const objects, size = 5000, 1024
	sink = make([][]byte, objects)
	for i := range sink {
		sink[i] = make([]byte, size)
	}
	counted = Traffic{11, 22, 33, 44, 55, 66, 77}
	r, err := g.Shut()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Traffic{1, 2, 3, 4, 5, 6, 7}); r.Traffic != want {
		t.Errorf("traffic %+v, want %+v", r.Traffic, want)
	}
	// The talk and the test itself may add a little.
	if r.Allocations < objects || r.Allocations > objects+500 || r.AllocatedBytes < objects*size {
		t.Errorf("%d objects of %d bytes, want %d of %d", r.Allocations, r.AllocatedBytes, objects, objects*size)
	}
	if err := g.Open(""); err != nil {
		t.Fatal(err)
	}
	counted = Traffic{PacketsIn: 10} // a tree has ended
	if r, err = g.Shut(); err != nil || r.Traffic != (Traffic{}) || r.Allocations > 500 {
		t.Errorf("an empty window: %+v, %v", r, err)
	}
}

// TestProcessorTime works until the process has used some, by its own account.
func TestProcessorTime(t *testing.T) {
	g := served(t, func() (Traffic, error) { return Traffic{}, nil })
	user, system := Usage()
	if user+system == 0 {
		t.Skip("this system does not report processor time")
	}
	if err := g.Open(""); err != nil {
		t.Fatal(err)
	}
	const work = 50 * time.Millisecond
	from, spent, sum := user+system, time.Duration(0), 0
	for spent < work {
		for i := range 1 << 16 {
			sum += i
		}
		user, system = Usage()
		spent = user + system - from
	}
	r, err := g.Shut()
	if err != nil || r.Processor() < work/2 || sum == 0 {
		t.Errorf("%v, %v, want about %v", r.Processor(), err, spent)
	}
}

func TestProfile(t *testing.T) {
	g := served(t, func() (Traffic, error) { return Traffic{}, nil })
	path := filepath.Join(t.TempDir(), "cpu.pprof")
	if err := g.Open(path); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Shut(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "\x1f\x8b") {
		t.Errorf("no compressed profile: %d bytes, %v", len(b), err)
	}
	if err := g.Open(filepath.Join(path, "below a file")); err == nil {
		t.Error("a profile where there can be none")
	}
}

func TestFailures(t *testing.T) {
	g := served(t, func() (Traffic, error) { return Traffic{}, errors.New("no counters today") })
	if err := g.Open(""); err == nil || !strings.Contains(err.Error(), "no counters today") {
		t.Errorf("%v", err)
	}
	if err := g.ask(nil, "dance"); err == nil || !strings.Contains(err.Error(), `"dance"`) {
		t.Errorf("%v", err)
	}
	ours, theirs := net.Pipe()
	go func() {
		b := make([]byte, 100)
		_, _ = theirs.Read(b) // whatever it is
		_, _ = theirs.Write([]byte("{}\n"))
		_ = theirs.Close()
	}()
	other := Dial(ours)
	if _, err := other.Shut(); !errors.Is(err, talk.Err) {
		t.Errorf("an answer without a reading: %v", err)
	}
	if err := other.Open(""); err == nil {
		t.Error("nobody is there, and it opened")
	}
}

func TestMachine(t *testing.T) {
	m, err := ReadMachine()
	switch {
	case errors.Is(err, processor.ErrUnsupported) && errors.Is(err, ErrMachine):
	case err != nil || m.User <= 0 || m.System <= 0:
		t.Errorf("%+v, %v", m, err)
	}
	later := Machine{User: 12, System: 24, Soft: 36, Hard: 48, Idle: 60, Stolen: 72}
	want := Machine{User: 11, System: 22, Soft: 33, Hard: 44, Idle: 55, Stolen: 66}
	if got := later.Since(Machine{1, 2, 3, 4, 5, 6}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
