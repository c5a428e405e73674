package netlab

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/tributary-fabric/tributary/topology"
)

// netlinkTimeout bounds every answer of the kernel's.
const netlinkTimeout = 10 * time.Second

// place is a namespace, and the thread that lives in it. All that is done in
// it is done on that thread, one thing after the other.
type place struct {
	name    string // of the namespace
	work    chan func()
	done    chan struct{} // closed when the thread has gone
	space   netns.NsHandle
	netlink *netlink.Handle // the thread's
}

// enter makes a namespace, and a thread in it.
func enter(name string) (*place, error) {
	p := &place{name: name, work: make(chan func()), done: make(chan struct{})}
	made := make(chan error)
	go p.live(made)
	if err := <-made; err != nil {
		return nil, fmt.Errorf("netlab: namespace %s: %w", name, err)
	}
	return p, nil
}

// live is the thread. It is never unlocked: it ends with the goroutine, and
// with it the processes that it has started, at the latest.
func (p *place) live(made chan<- error) {
	defer close(p.done)
	runtime.LockOSThread()
	var err error
	if p.space, err = netns.NewNamed(p.name); err != nil {
		made <- err
		return
	}
	defer func() { _ = p.space.Close() }()
	p.netlink, err = netlink.NewHandle()
	if err == nil {
		defer p.netlink.Close()
		err = p.netlink.SetSocketTimeout(netlinkTimeout)
	}
	made <- err
	if err != nil {
		return
	}
	for f := range p.work {
		f()
	}
}

// do runs f on the thread.
func (p *place) do(f func() error) (err error) {
	ran := make(chan struct{})
	p.work <- func() { err = f(); close(ran) }
	<-ran
	return err
}

// leave ends the thread.
func (p *place) leave() {
	close(p.work)
	<-p.done
}

// start starts a process in the namespace. It is killed when the lab's own
// process dies, and gets no signals of the terminal.
func (p *place) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	return p.do(cmd.Start)
}

// settings are the kernel's of every namespace: nothing but the lab's own
// packets on the links, all routes used, none dropped by reverse-path checks.
var settings = []struct{ name, value string }{
	{"ipv6/conf/all/disable_ipv6", "1"},
	{"ipv6/conf/default/disable_ipv6", "1"},
	{"ipv4/conf/all/rp_filter", "0"},
	{"ipv4/conf/default/rp_filter", "0"},
	{"ipv4/conf/all/ignore_routes_with_linkdown", "1"},
	{"ipv4/conf/default/ignore_routes_with_linkdown", "1"},
	{"ipv4/fib_multipath_hash_policy", "1"},
}

// configure sets the kernel up: before there are interfaces, which inherit it.
func (p *place) configure(forward bool) error {
	all := settings
	if forward {
		all = append(all[:len(all):len(all)], struct{ name, value string }{"ipv4/ip_forward", "1"})
	}
	return p.do(func() error {
		for _, s := range all {
			// Relative to the thread's namespace, as all of /proc/sys/net is.
			err := os.WriteFile(filepath.Join("/proc/sys/net", s.name), []byte(s.value), 0)
			if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6, say
				return fmt.Errorf("netlab: %s: %w", p.name, err)
			}
		}
		return nil
	})
}

// assign gives an interface an address, and sets it up.
func (p *place) assign(device string, a netip.Prefix) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
		}
		if err := p.netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(a)}); err != nil {
			return fmt.Errorf("netlab: %s: address %v of %s: %w", p.name, a, device, err)
		}
		if err := p.netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("netlab: %s: setting %s up: %w", p.name, device, err)
		}
		return nil
	})
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// joinTo makes a veth pair between two namespaces.
func (p *place) joinTo(device string, other *place, peer string) error {
	return p.do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = device, mtu
		err := p.netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(other.space)})
		if err != nil {
			return fmt.Errorf("netlab: a link between %s and %s: %w", p.name, other.name, err)
		}
		return nil
	})
}

// setHardware gives an interface that is down a hardware address.
func (p *place) setHardware(device string, a net.HardwareAddr) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err == nil {
			err = p.netlink.LinkSetHardwareAddr(link, a)
		}
		if err != nil {
			return fmt.Errorf("netlab: %s: hardware address of %s: %w", p.name, device, err)
		}
		return nil
	})
}

// remove deletes an interface, and with it the far end.
func (p *place) remove(device string) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err == nil {
			err = p.netlink.LinkDel(link)
		}
		if err != nil {
			return fmt.Errorf("netlab: %s: deleting %s: %w", p.name, device, err)
		}
		return nil
	})
}

// Handles of an interface's queue. They differ by kind: the kernel does not replace
// a queue by one of another kind under the same handle.
const (
	shapedHandle = 1
	silentHandle = 2
)

// shape limits what an interface sends.
func (p *place) shape(device string, rate int64) error {
	burst, limit := bucket(rate)
	return p.queue(device, shapedHandle, func(a netlink.QdiscAttrs) netlink.Qdisc {
		return &netlink.Tbf{QdiscAttrs: a, Rate: uint64(rate / 8), Limit: limit, Buffer: netlink.Xmittime(uint64(rate/8), burst)}
	})
}

// silence drops what an interface sends. The sender is not informed.
func (p *place) silence(device string) error {
	return p.queue(device, silentHandle, func(a netlink.QdiscAttrs) netlink.Qdisc {
		return &netlink.GenericQdisc{QdiscAttrs: a, QdiscType: "blackhole"}
	})
}

// queue replaces the queue of an interface.
func (p *place) queue(device string, handle uint16, of func(netlink.QdiscAttrs) netlink.Qdisc) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
		}
		q := of(netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(handle, 0), Parent: netlink.HANDLE_ROOT})
		if err := p.netlink.QdiscReplace(q); err != nil {
			return fmt.Errorf("netlab: %s: queue %s of %s: %w", p.name, q.Type(), device, err)
		}
		return nil
	})
}

// open removes the queue of an interface, which then sends as fast as it can.
func (p *place) open(device string) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
		}
		q := &netlink.GenericQdisc{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Parent: netlink.HANDLE_ROOT}}
		if err := p.netlink.QdiscDel(q); err != nil && !errors.Is(err, syscall.ENOENT) {
			return fmt.Errorf("netlab: %s: queue of %s: %w", p.name, device, err)
		}
		return nil
	})
}

// bridge makes a bridge of a name, and sets it up; join adds an interface to it.
func (p *place) bridge(name string) error {
	return p.do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = name, mtu
		b := &netlink.Bridge{LinkAttrs: attrs}
		if err := errors.Join(p.netlink.LinkAdd(b), p.netlink.LinkSetUp(b)); err != nil {
			return fmt.Errorf("netlab: %s: bridge %s: %w", p.name, name, err)
		}
		return nil
	})
}

func (p *place) join(device, bridge string) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
		}
		b, err := p.netlink.LinkByName(bridge)
		if err == nil {
			err = errors.Join(p.netlink.LinkSetMaster(link, b), p.netlink.LinkSetUp(link))
		}
		if err != nil {
			return fmt.Errorf("netlab: %s: adding %s to %s: %w", p.name, device, bridge, err)
		}
		return nil
	})
}

// direct makes r the way to its prefix.
func (p *place) direct(g *topology.Graph, n topology.NodeID, r route) error {
	return p.do(func() error {
		to := netlink.Route{Dst: ipNet(r.to)}
		for _, l := range r.via {
			end := endOf(g, l, n)
			link, err := p.netlink.LinkByName(portName(end.Port))
			if err != nil {
				return fmt.Errorf("netlab: %s: interface %s: %w", p.name, portName(end.Port), err)
			}
			to.MultiPath = append(to.MultiPath, &netlink.NexthopInfo{
				LinkIndex: link.Attrs().Index, Gw: g.AddressAt(l, g.Across(l, n)).AsSlice(),
			})
		}
		if len(to.MultiPath) == 1 {
			to.LinkIndex, to.Gw, to.MultiPath = to.MultiPath[0].LinkIndex, to.MultiPath[0].Gw, nil
		}
		if err := p.netlink.RouteReplace(&to); err != nil {
			return fmt.Errorf("netlab: %s: route to %v: %w", p.name, r.to, err)
		}
		return nil
	})
}

// gateway makes a neighbour the way to one address, and from, if it is valid,
// the address that is sent from.
func (p *place) gateway(to, by, from netip.Addr) error {
	return p.do(func() error {
		if err := p.netlink.RouteReplace(&netlink.Route{Dst: ipNet(single(to)), Gw: by.AsSlice(), Src: from.AsSlice()}); err != nil {
			return fmt.Errorf("netlab: %s: route to %v: %w", p.name, to, err)
		}
		return nil
	})
}

// setLink sets an interface up or down.
func (p *place) setLink(device string, up bool) error {
	return p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err == nil {
			set := p.netlink.LinkSetDown
			if up {
				set = p.netlink.LinkSetUp
			}
			err = set(link)
		}
		if err != nil {
			return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
		}
		return nil
	})
}

// awaitUp waits until an interface that was set up, and its far end, can pass packets.
func (p *place) awaitUp(device string) error {
	return p.do(func() error {
		poll := time.NewTicker(100 * time.Microsecond)
		defer poll.Stop()
		for deadline := time.Now().Add(netlinkTimeout); ; <-poll.C {
			link, err := p.netlink.LinkByName(device)
			if err != nil {
				return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
			}
			if link.Attrs().OperState == netlink.OperUp {
				return nil
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("netlab: %s: interface %s is %v, and not up, after %v", p.name, device, link.Attrs().OperState, netlinkTimeout)
			}
		}
	})
}

// sent returns what an interface has sent.
func (p *place) sent(device string) (c Count, err error) {
	err = p.do(func() error {
		link, err := p.netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("netlab: %s: interface %s: %w", p.name, device, err)
		}
		c = Count{Bytes: link.Attrs().Statistics.TxBytes, Packets: link.Attrs().Statistics.TxPackets}
		queues, err := p.netlink.QdiscList(link)
		if err != nil {
			return fmt.Errorf("netlab: %s: queue of %s: %w", p.name, device, err)
		}
		for _, q := range queues {
			if s := q.Attrs().Statistics; s != nil && s.Queue != nil {
				c.Dropped += uint64(s.Queue.Drops)
			}
		}
		return nil
	})
	return c, err
}

func endOf(g *topology.Graph, l topology.LinkID, n topology.NodeID) topology.End {
	ends := g.Link(l).Ends
	if ends[0].Node == n {
		return ends[0]
	}
	return ends[1]
}
