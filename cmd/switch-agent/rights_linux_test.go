package main

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCheckWarnsOfLLDP: what run would refuse to this user only is a warning.
func TestCheckWarnsOfLLDP(t *testing.T) {
	file := write(t, "version: 1\nswitch: s\nlisten: 127.0.0.1:0\nlldp: {mode: required}\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread, without its capabilities, ends here
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			t.Error(err)
			return
		}
		var warned strings.Builder
		out, err := execute(t.Context(), &warned, "check", file)
		if err != nil || !strings.Contains(out, "switch s") || !strings.Contains(warned.String(), "warning: ") || !strings.Contains(warned.String(), "CAP_NET_RAW") {
			t.Errorf("check: %q, %q, %v", out, warned.String(), err)
		}
		if _, err := execute(context.Background(), &warned, "run", "--config", file); err == nil || !strings.Contains(err.Error(), "CAP_NET_RAW") {
			t.Errorf("run: %v", err)
		}
	}()
	<-done
}
