package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tributary-fabric/tributary/hostlib"
)

// fill fills the file system that a path is on.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 16; size > 0 && err == nil; {
		if _, err = f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size, err = size/2, nil
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// The disk beneath the store is full: no group is created, the log and a metric
// say why, who asks is answered at once, and what runs is not disturbed. With room
// again groups are created, and none of those that were refused is there.
func TestFullDisk(t *testing.T) {
	needMachines(t)
	d := deploy(t)
	d.manager.end(terminate)
	disk := filepath.Join(d.directory, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	// The file system is the process's own, and goes with it.
	d.manager = follow(t, exec.Command("unshare", "--mount", "sh", "-ec",
		fmt.Sprintf("mount -t tmpfs -o size=1m tmpfs %s\nexec %s serve --config %s --listen %s --store %s", disk,
			binary(t, "offload-manager"), filepath.Join(d.directory, "manager.yaml"), d.address, filepath.Join(disk, "manager.db"))))
	pages := "http://" + attribute(d.manager.await("admin server started"), "address")
	d.connected()
	c := d.gather("job")
	first := c.allreduce()

	filler := filepath.Join("/proc", strconv.Itoa(d.manager.cmd.Process.Pid), "root", disk, "filler")
	fill(t, filler)
	const groups = 12
	refused := make([]error, groups)
	var asking sync.WaitGroup
	for i := range refused {
		asking.Go(func() {
			_, refused[i] = d.try("group", "create", fmt.Sprint("other-", i), "h0", "h1", "--timeout", patience.String())
		})
	}
	asking.Wait()
	for i, err := range refused {
		if err == nil || !strings.Contains(err.Error(), "manager.db") || !strings.Contains(err.Error(), "the disk is full: make room") {
			t.Errorf("group %d: %v", i, err)
		}
	}
	d.manager.await("storing failed", "no group is created", "manager.db", "the disk is full: make room")
	if out := d.ask("group", "list"); strings.Contains(out, "other") {
		t.Errorf("the manager has\n%s", out)
	}
	if text := get(t, pages+"/metrics"); strings.Contains(text, "tributary_manager_store_failures_total 0\n") {
		t.Error("no failure is counted")
	}
	if o := c.allreduce(); o.Transport != hostlib.Offload || o.Epochs[0] != first.Epochs[0] {
		t.Errorf("it ran by %v in %v since %s, before in %v", o.Transport, o.Epochs, o.Reason, first.Epochs)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for {
		out, err := d.try("group", "create", "other", "h0", "h1")
		if err != nil && strings.Contains(err.Error(), "not stored") {
			continue // until the manager has retried
		}
		if err != nil || strings.Contains(out, "found") {
			t.Errorf("with room again it says %q, %v", out, err)
		}
		break
	}
	if out := d.ask("group", "list"); strings.Contains(out, "other-") {
		t.Errorf("with room again it has\n%s", out)
	}
	if status := d.manager.end(terminate); status != 0 {
		t.Errorf("status %d", status)
	}
}
