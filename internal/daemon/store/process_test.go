//go:build unix

package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/daemon/store"
)

// runChild is the test binary as another process: what it does, and with which
// file, stand before and after a space.
func runChild(what string) {
	todo, path, _ := strings.Cut(what, " ")
	s, err := store.Open(path)
	if err == nil {
		err = map[string]func(*store.File) error{"save": saveForever, "hold": hold, "fill": fill}[todo](s)
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// saveForever saves, and reports each Save that has returned.
func saveForever(s *store.File) error {
	for n := uint32(1); ; n++ {
		if err := s.Save(step(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// step is what saveForever saves in its nth Save.
func step(n uint32) []manager.Record {
	seq := 3 * uint64(n)
	return []manager.Record{
		fleet(seq, n), spec(seq+1, n%16+1, strings.Fields(strings.Repeat("host ", int(50+n%200)))...), trees(seq+2, n%16+1, 2*n),
	}
}

// hold keeps the store open until its input ends.
func hold(s *store.File) error {
	fmt.Println("open")
	_, err := io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}

// fill is on a disk that is full, and then not.
func fill(s *store.File) error {
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	if err := s.Save([]manager.Record{fleet(1, 1)}); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 10, Max: before.Max}); err != nil {
		return err
	}
	for range 3 {
		fmt.Println(s.Save([]manager.Record{fleet(2, 2), spec(3, 2, strings.Fields(strings.Repeat("host ", 1<<14))...)}))
	}
	if _, err := s.Load(); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	return errors.Join(s.Save([]manager.Record{fleet(4, 3)}), s.Close())
}

// start starts a child, which is killed at the end of the test.
func start(t *testing.T, todo, path string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+todo+" "+path)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
}

func TestKilledWhileSaving(t *testing.T) {
	for _, saves := range []int{1, 2, 17, 40, 75} {
		path := pathOf(t) // a child counts from 1, and what an earlier one saved may be more
		cmd, lines := start(t, "save", path)
		for range saves {
			if !lines.Scan() {
				t.Fatal("it ended by itself")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		reported := lines.Text()
		for lines.Scan() {
			reported = lines.Text()
		}
		_ = cmd.Wait() // it was killed
		n, err := strconv.ParseUint(reported, 10, 32)
		if err != nil {
			t.Fatalf("it said %q", reported)
		}
		s := open(t, path)
		all := load(t, s)
		close(t, s)
		has := all[len(all)-1].Trees.Epoch / 2
		if has != uint32(n) && has != uint32(n)+1 {
			t.Fatalf("after %d Saves returned, it has those up to %d", n, has)
		}
		if diff := cmp.Diff(step(has), all[len(all)-3:], equalRecords); diff != "" {
			t.Fatalf("of Save %d:\n%s", has, diff)
		}
	}
}

func TestHeldByAnotherProcess(t *testing.T) {
	path := pathOf(t)
	cmd, lines := start(t, "hold", path)
	if !lines.Scan() || lines.Text() != "open" {
		t.Fatalf("it said %q", lines.Text())
	}
	e := refused(t, path, store.ErrHeld)
	if _, err := os.Stat("/proc/locks"); err == nil && !strings.Contains(e.Error(), "process "+strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("it says %v, and not process %d", e, cmd.Process.Pid)
	}
	kill(t, cmd)
	open(t, path)
}

func TestFullDisk(t *testing.T) {
	path := pathOf(t)
	cmd, lines := start(t, "fill", path)
	for range 3 {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), store.ErrWrite.Error()+": "+path) || !strings.Contains(lines.Text(), "make room") {
			t.Errorf("it said %q", lines.Text())
		}
	}
	var rest bytes.Buffer
	for lines.Scan() {
		rest.Write(lines.Bytes())
	}
	if err := cmd.Wait(); err != nil || rest.Len() > 0 {
		t.Fatalf("%v: %s", err, &rest)
	}
	if diff := cmp.Diff([]manager.Record{fleet(4, 3)}, load(t, open(t, path))); diff != "" {
		t.Error(diff)
	}
}
