package rails_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
	"github.com/tributary-fabric/tributary/internal/driver/rails"
)

// TestFaultsOfTheSystem: the kernel's notices of carriers and addresses arrive.
func TestFaultsOfTheSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
	at := make(chan netns.NsHandle)
	faults := make(chan error, 16)
	begin := make(chan []rails.Rail)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // the thread, which is in the namespace, ends with it
		defer close(done)
		runtime.LockOSThread()
		ns, err := netns.New()
		if err != nil {
			t.Error(err)
		}
		at <- ns
		rails.New(rails.Config{
			Rails: <-begin, Source: nic.System(), Log: slog.New(slog.DiscardHandler),
			Changed: func(_ rails.Rail, fault error) { faults <- fault },
		}).Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	ns := <-at
	defer ns.Close()
	net, err := netlink.NewHandleAt(ns)
	if err != nil {
		begin <- nil
		t.Fatal(err)
	}
	defer net.Close()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begun := false
	defer func() {
		if !begun {
			begin <- nil
		}
	}()
	check(net.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "here"}, PeerName: "there"}))
	here, err := net.LinkByName("here")
	check(err)
	there, err := net.LinkByName("there")
	check(err)
	address, err := netlink.ParseAddr("10.0.0.1/24")
	check(err)
	check(net.AddrAdd(here, address))
	check(net.LinkSetUp(here))
	check(net.LinkSetUp(there))
	one := rails.Rail{Interface: "here"}
	one.Name, one.Address = "here", addrPort("10.0.0.1:1")
	begun = true
	begin <- []rails.Rail{one}
	for _, c := range []struct {
		change func() error
		want   error
	}{
		{func() error { return net.LinkSetDown(there) }, rails.ErrNoCarrier},
		{func() error { return net.LinkSetUp(there) }, nil},
		{func() error { return net.AddrDel(here, address) }, rails.ErrNoAddress},
		{func() error { return net.AddrAdd(here, address) }, nil},
		{func() error { return net.LinkSetDown(here) }, rails.ErrDisabled},
	} {
		check(c.change())
		for !errors.Is(<-faults, c.want) { // a carrier may come late
		}
	}
}
