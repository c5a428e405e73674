package nic

import (
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestCarrier: an interface is up by its carrier, whatever the operational state still is.
func TestCarrier(t *testing.T) {
	for _, c := range []struct {
		flags uint32
		state netlink.LinkOperState
		want  bool
	}{
		{unix.IFF_UP | unix.IFF_LOWER_UP, netlink.OperUp, true},
		{unix.IFF_UP | unix.IFF_LOWER_UP, netlink.OperLowerLayerDown, true},
		{unix.IFF_UP | unix.IFF_LOWER_UP, netlink.OperUnknown, true},
		{unix.IFF_UP, netlink.OperUp, false},
		{unix.IFF_LOWER_UP, netlink.OperDown, false},
		{unix.IFF_UP | unix.IFF_LOWER_UP | unix.IFF_DORMANT, netlink.OperDormant, false},
	} {
		if got := canCarry(&netlink.LinkAttrs{RawFlags: c.flags, OperState: c.state}); got != c.want {
			t.Errorf("flags %#x, state %v: up is %v", c.flags, c.state, got)
		}
	}
}
