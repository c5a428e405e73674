package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == echoes {
		if err := echo(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// TestHosts: all hosts get the right results, of one chunk, of a batch and a part of one,
// and of more than the window.
func TestHosts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it needs root, for buffers of its size")
	}
	peer, stop, err := startEcho()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}()
	hosts, end, err := contestants(peer)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}()
	for _, size := range []int{8, 64 << 10, 1 << 20} {
		if err := compare(hosts, size, 1, time.Microsecond); err != nil {
			t.Error(err)
		}
		for _, h := range hosts {
			if len(h.perOp) != 1 || h.perOp[0] <= 0 {
				t.Errorf("%s, %d bytes: processor times %v", h.name, size, h.perOp)
			}
		}
	}
}
