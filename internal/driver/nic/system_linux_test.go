package nic_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// TestSystemReports what the standard library, which asks the same kernel, reports
// as well.
func TestSystemReports(t *testing.T) {
	all, err := nic.System().Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		want, err := net.InterfaceByName(i.Name)
		if err != nil {
			t.Logf("%s is gone: %v", i.Name, err)
			continue
		}
		if i.Index != want.Index || i.MAC.String() != want.HardwareAddr.String() || i.MTU != want.MTU ||
			i.Enabled != (want.Flags&net.FlagUp != 0) || want.Flags&net.FlagLoopback != 0 {
			t.Errorf("%+v, want %+v", i, want)
		}
		if len(i.Bits) != len(i.Addresses) {
			t.Errorf("%s has %v with %v", i.Name, i.Addresses, i.Bits)
		}
	}
}

// TestSystemWatchEnds leaves nothing behind that reads.
func TestSystemWatchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := nic.System().Watch(ctx, cancel)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
