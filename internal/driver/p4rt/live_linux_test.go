package p4rt

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt/p4rttest"
	"github.com/tributary-fabric/tributary/p4"
)

// bmv2CPU is the port of the controller in the toy program.
const bmv2CPU = 510

// live is a bmv2 that has no ports but that of the controller. It listens on a
// unix socket, and runs in a network namespace of its own: it also opens a port
// on all addresses, and cannot be reported not to.
type live struct {
	t       *testing.T
	program string // path
	dir     string // of its socket
	process *exec.Cmd
	ended   chan struct{} // closed when the process has
}

// startLive starts bmv2. The test is skipped where that cannot be.
func startLive(t *testing.T) *live {
	t.Helper()
	program, lack := p4rttest.BMv2()
	if lack != "" {
		t.Skip(lack)
	}
	dir, err := os.MkdirTemp("", "p4rt") // short: a socket's path has little room
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &live{t: t, program: program, dir: dir}
	l.start()
	t.Cleanup(l.kill)
	return l
}

func (l *live) address() string { return "unix:" + filepath.Join(l.dir, "s") }

func (l *live) start() {
	l.t.Helper()
	apart, err := p4rttest.Apart(l.program, l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	options := append(append([]string{"--no-p4", "--device-id", "1"}, apart...), "--", "--grpc-server-addr", l.address(), "--cpu-port", strconv.Itoa(bmv2CPU))
	l.process = exec.Command(l.program, options...)
	l.process.Dir = l.dir
	l.process.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	var output bytes.Buffer
	l.process.Stdout, l.process.Stderr = &output, &output
	if err := l.process.Start(); err != nil {
		l.t.Fatal(err)
	}
	process, ended := l.process, make(chan struct{})
	l.ended = ended
	go func() {
		defer close(ended)
		_ = process.Wait() // killed
	}()
	l.t.Cleanup(func() {
		if l.t.Failed() {
			<-ended
			l.t.Logf("bmv2 printed:\n%s", output.String())
		}
	})
}

// kill ends bmv2 and waits for its end.
func (l *live) kill() {
	_ = l.process.Process.Kill()
	<-l.ended
}

func (l *live) signal(s os.Signal) {
	l.t.Helper()
	if err := l.process.Process.Signal(s); err != nil {
		l.t.Fatal(err)
	}
}

func (l *live) config() Config {
	c := configOf(l.address())
	c.Device = 1
	c.Deadline = 5 * time.Second
	return c
}

func TestLivePushAndReconcile(t *testing.T) {
	l := startLive(t)
	ctx := testContext(t)
	c := dial(t, l.config())
	if e := c.await(Primary); !errors.Is(e.Err, ErrNoPipeline) {
		t.Fatalf("event: %+v, want no program", e)
	}
	cookie, err := c.Push(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := someState()
	if report, err := c.Reconcile(ctx, want); err != nil || report.Inserted != len(want.Entries)+len(want.Groups) {
		t.Fatalf("reconcile: %+v, %v", report, err)
	}
	got, err := c.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
	want.Entries = append(want.Entries[1:], pair(6), guard(5, 12))
	want.Entries[0] = route("10.1.0.0/16", 7)
	want.Groups[0].Replicas = append(want.Groups[0].Replicas[1:], p4.Replica{Port: 5, Instance: 3}, p4.Replica{Port: 0, Instance: 4})
	want.Groups[1].ID = 9
	report, err := c.Reconcile(ctx, want)
	if err != nil || report != (Report{Inserted: 3, Modified: 2, Deleted: 2, Kept: 4, Cookie: cookie}) {
		t.Fatalf("reconcile the difference: %+v, %v", report, err)
	}
	if got, err = c.Read(ctx); err != nil {
		t.Fatal(err)
	}
	sameState(t, got, want)
	t.Run("a successor sweeps", func(t *testing.T) {
		c.Close()
		next := dial(t, l.config())
		if e := next.await(Primary); e.Err != nil || e.Cookie != cookie {
			t.Fatalf("event: %+v", e)
		}
		if report, err := next.Reconcile(ctx, p4.Program{}); err != nil || report.Deleted != len(want.Entries)+len(want.Groups) {
			t.Errorf("sweep: %+v, %v", report, err)
		}
	})
}

func TestLivePacketsAndCounters(t *testing.T) {
	l := startLive(t)
	ctx := testContext(t)
	c := newPrimary(t, l.config())
	if _, err := c.Reconcile(ctx, p4.Program{Entries: []p4.Entry{route("10.0.0.0/8", 1)}}); err != nil {
		t.Fatal(err)
	}
	frame := append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0}, make([]byte, 50)...)
	// The queue of a port of bmv2 has room for 64 packets; more at once are lost.
	const sent, burst = 96, 32
	for i := uint64(0); i < sent; {
		var packets []Packet
		for j := range uint64(burst) {
			packets = append(packets, Packet{Header: []Meta{{3, i + j}}, Payload: frame})
		}
		if err := c.PacketOut(packets...); err != nil {
			t.Fatal(err)
		}
		for end := i + burst; i < end; {
			packets, err := c.Packets(ctx)
			if err != nil {
				t.Fatalf("after %d packets: %v", i, err)
			}
			for _, p := range packets {
				if p.Header[0] != (Meta{1, bmv2CPU}) || p.Header[2] != (Meta{3, i}) || !bytes.Equal(p.Payload, frame) {
					t.Fatalf("packet %d: %+v", i, p)
				}
				i++
			}
		}
	}
	cells, err := c.Counter(ctx, seen)
	if err != nil || len(cells) != 4 || cells[1].Packets != sent || cells[1].Bytes == 0 || cells[0] != (Count{}) {
		t.Errorf("counter: %+v, %v; want %d packets in the second cell", cells, err, sent)
	}
}

func TestLiveRestart(t *testing.T) {
	l := startLive(t)
	ctx := testContext(t)
	c := newPrimary(t, l.config())
	if _, err := c.Reconcile(ctx, someState()); err != nil {
		t.Fatal(err)
	}
	l.kill()
	c.await(Lost)
	if err := c.Write(ctx, []Update{{Op: Insert, Entry: new(pair(1))}}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("write to nobody: %v", err)
	}
	l.start()
	if e := c.await(Primary); !errors.Is(e.Err, ErrRestarted) || !errors.Is(e.Err, ErrNoPipeline) {
		t.Errorf("event: %+v", e)
	}
	if _, err := c.Push(ctx); err != nil {
		t.Fatal(err)
	}
	if report, err := c.Reconcile(ctx, someState()); err != nil || report.Kept != 0 {
		t.Errorf("reconcile: %+v, %v", report, err)
	}
}

func TestLiveSecondController(t *testing.T) {
	l := startLive(t)
	c := newPrimary(t, l.config())
	higher := l.config()
	higher.Election = Election{High: 1}
	second := dial(t, higher)
	if e := c.await(Backup); e.Leader != higher.Election {
		t.Errorf("event: %+v", e)
	}
	second.await(Primary)
	if err := c.Write(testContext(t), nil); !errors.Is(err, ErrNotPrimary) {
		t.Errorf("write of a backup: %v", err)
	}
	// The target itself refuses, too.
	c.mu.Lock()
	past := c.link
	c.mu.Unlock()
	if _, err := c.write(testContext(t), past, []Update{{Op: Insert, Entry: new(pair(1))}}); !errors.Is(err, ErrNotPrimary) {
		t.Errorf("write past the client: %v", err)
	}
	same := dial(t, higher)
	if e := same.next(); !errors.Is(e.Err, ErrElection) {
		t.Errorf("event of a third with the same id: %+v", e)
	}
	same.Close() // it goes on to try, and has the higher id
	second.Close()
	if e := c.await(Primary); e.Err != nil {
		t.Errorf("event: %+v", e)
	}
}

func TestLiveFullTable(t *testing.T) {
	l := startLive(t)
	ctx := testContext(t)
	c := newPrimary(t, l.config())
	var updates []Update
	for label := range byte(pairsRoom + 1) {
		updates = append(updates, Update{Op: Insert, Entry: new(pair(label))})
	}
	err := c.Write(ctx, updates)
	var w *WriteError
	if !errors.As(err, &w) || !errors.Is(err, ErrTableFull) || len(w.Failed) != 1 {
		t.Errorf("write: %v, want a full table", err)
	}
	for name, test := range map[string]struct {
		update Update
		want   error
	}{
		"insert again":               {Update{Op: Insert, Entry: new(pair(0))}, ErrExists},
		"modify what is not":         {Update{Op: Modify, Entry: new(pair(99))}, ErrMissing},
		"delete what is not":         {Update{Op: Delete, Entry: new(pair(99))}, ErrMissing},
		"delete a group that is not": {Update{Op: Delete, Group: &p4.Group{ID: 9}}, ErrMissing},
	} {
		if err := c.Write(ctx, []Update{test.update}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestLiveOtherProgram(t *testing.T) {
	l := startLive(t)
	c := newPrimary(t, l.config())
	c.Close()
	other := l.config()
	other.Pipeline = otherProgram(t)
	o := dial(t, other)
	if e := o.await(Primary); !errors.Is(e.Err, ErrOtherPipeline) {
		t.Errorf("event: %+v", e)
	}
	if _, err := o.Push(testContext(t)); err != nil {
		t.Errorf("replacing it: %v", err)
	}
	if report, err := o.Reconcile(testContext(t), someState()); err != nil || report.Kept != 0 {
		t.Errorf("reconcile: %+v, %v", report, err)
	}
}

// A target that is stopped keeps its connections, and answers nothing.
func TestLiveHang(t *testing.T) {
	l := startLive(t)
	newPrimary(t, l.config()).Close()
	config := l.config()
	config.Deadline = short("").Deadline
	c := dial(t, config)
	if e := c.await(Primary); e.Err != nil {
		t.Fatalf("event: %+v", e)
	}
	l.signal(syscall.SIGSTOP)
	var err error
	for err == nil { // the signal takes its time
		_, err = c.Read(testContext(t))
	}
	if !errors.Is(err, ErrWedged) {
		t.Errorf("read: %v", err)
	}
	if e := c.await(Lost); !errors.Is(e.Err, ErrWedged) {
		t.Errorf("event: %+v", e)
	}
	l.signal(syscall.SIGCONT)
	if e := c.await(Primary); e.Err != nil {
		t.Errorf("event: %+v, want nothing lost", e)
	}
}

// What bmv2 cannot read as a program it refuses; nothing waits for what it does
// from then on.
func TestLiveBrokenProgram(t *testing.T) {
	l := startLive(t)
	config := l.config()
	config.Deadline, config.PushDeadline = short("").Deadline, short("").Deadline
	config.Pipeline.Device = []byte("not JSON")
	c := dial(t, config)
	c.await(Primary)
	_, err := c.Push(testContext(t))
	t.Logf("push: %v", err)
	if err == nil {
		t.Error("it took the program")
	}
	if _, err := c.Reconcile(testContext(t), someState()); err == nil {
		t.Error("it took entries")
	} else {
		t.Logf("reconcile: %v", err)
	}
	l.kill()
	l.start()
	for { // it may take some tries to see that
		if e := c.await(Primary); errors.Is(e.Err, ErrNoPipeline) {
			break
		}
	}
}

// The project's own program is one that bmv2 takes, and what is translated for
// it one that comes back as it was written.
func TestLiveTributary(t *testing.T) {
	l := startLive(t)
	ctx := testContext(t)
	config := l.config()
	config.Pipeline = tributary
	c := newPrimary(t, config)
	want, err := p4.Translate(new(someTree(2)))
	if err != nil {
		t.Fatal(err)
	}
	all := len(want.Entries) + len(want.Groups)
	if report, err := c.Reconcile(ctx, want); err != nil || report.Inserted != all {
		t.Errorf("reconcile: %+v, %v; want %d inserted", report, err, all)
	}
	if report, err := c.Reconcile(ctx, want); err != nil || report.Kept != all || report.Inserted+report.Modified+report.Deleted != 0 {
		t.Errorf("again: %+v, %v; want %d kept", report, err, all)
	}
	if want, err = p4.Translate(new(someTree(4))); err != nil {
		t.Fatal(err)
	}
	if report, err := c.Reconcile(ctx, want); err != nil || report.Modified == 0 {
		t.Errorf("the next epoch: %+v, %v", report, err)
	}
	if cells, err := c.Counter(ctx, p4.CounterOutcomes); err != nil || len(cells) == 0 {
		t.Errorf("counter: %d cells, %v", len(cells), err)
	}
}
