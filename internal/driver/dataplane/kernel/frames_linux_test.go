package kernel_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// frame returns the Ethernet frame of a packet from neighbour 0, with the sum over the
// pseudo header in the checksum's place, as packets have it whose checksum is still to
// be computed.
func (r *rig) frame(mac []byte, payload []byte) []byte {
	b := make([]byte, 42, 42+len(payload))
	copy(b, mac)
	b[12], b[13] = 0x08, 0x00
	ip, udp := b[14:34], b[34:42]
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	big := binary.BigEndian
	big.PutUint16(ip[2:], uint16(28+len(payload)))
	from, to := neighbourAddr(0).Addr().As4(), r.switchAddr(0).Addr().As4()
	copy(ip[12:], from[:])
	copy(ip[16:], to[:])
	big.PutUint16(ip[10:], ^sum(0, ip))
	big.PutUint16(udp, neighbourAddr(0).Port())
	big.PutUint16(udp[2:], r.port)
	big.PutUint16(udp[4:], uint16(8+len(payload)))
	big.PutUint16(udp[6:], sum(17+8+uint32(len(payload)), ip[12:20]))
	return append(b, payload...)
}

func sum(s uint32, b []byte) uint16 {
	for i := 0; i < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// TestFrames: of frames that differ in one thing from one that is taken, none is.
func TestFrames(t *testing.T) {
	r := newRig(t, 2)
	c := config(2, 2, true)
	r.install(c)
	r.send(0, packet(sums(c, 0, 0, 4), values(4, 0)), 1<<16)
	r.pump() // the epoch has begun
	r.in(r.sw)
	own, err := netlink.LinkByName("s0")
	r.check(err)
	r.in(r.around)
	far, err := netlink.LinkByName("n0")
	r.check(err)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	r.check(err)
	defer func() { r.check(unix.Close(fd)) }()
	number := uint32(0)
	taken := func(change func(frame []byte) []byte) uint64 {
		number++
		f := change(r.frame(own.Attrs().HardwareAddr, packet(sums(c, 0, number, 4), values(4, 0))))
		before := r.counters().Events["kernel-taken"]
		r.check(unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: far.Attrs().Index}))
		r.settle()
		return r.counters().Events["kernel-taken"] - before
	}
	// insert puts bytes into a frame, and corrects nothing else.
	insert := func(f []byte, at int, more ...byte) []byte { return slices.Insert(f, at, more...) }
	header := func(f []byte, change func(ip []byte)) []byte {
		ip := f[14:34]
		change(ip)
		clear(ip[10:12])
		binary.BigEndian.PutUint16(ip[10:], ^sum(0, ip))
		return f
	}
	for _, x := range []struct {
		name   string
		change func(f []byte) []byte
		taken  uint64
	}{
		{"as it should be", func(f []byte) []byte { return f }, 1},
		{"VLAN tag", func(f []byte) []byte { return insert(f, 12, 0x81, 0, 0, 7) }, 0},
		{"to another station", func(f []byte) []byte { f[5]++; return f }, 0},
		{"to all stations", func(f []byte) []byte { copy(f, "\xff\xff\xff\xff\xff\xff"); return f }, 0},
		{"IPv6", func(f []byte) []byte { f[12], f[13] = 0x86, 0xdd; return f }, 0},
		{"IP options", func(f []byte) []byte {
			return header(insert(f, 34, 1, 1, 1, 0), func(ip []byte) { ip[0] = 0x46; ip[3] += 4 })
		}, 0},
		{"fragment", func(f []byte) []byte { return header(f, func(ip []byte) { ip[6] |= 0x20 }) }, 0},
		{"another protocol", func(f []byte) []byte { return header(f, func(ip []byte) { ip[9] = 6 }) }, 0},
		{"another destination", func(f []byte) []byte { return header(f, func(ip []byte) { ip[19]++ }) }, 0},
		{"another source", func(f []byte) []byte { return header(f, func(ip []byte) { ip[15]++ }) }, 0},
		{"padded", func(f []byte) []byte { return append(f, 0, 0, 0) }, 0},
		{"shorter than it says", func(f []byte) []byte { return f[:len(f)-4] }, 0},
		{"another port", func(f []byte) []byte { f[37]++; return f }, 0},
		{"no checksum", func(f []byte) []byte { f[40], f[41] = 0, 0; return f }, 0},
		{"a checksum", func(f []byte) []byte { f[41]++; return f }, 0},
		{"as it should be again", func(f []byte) []byte { return f }, 1},
	} {
		if got := taken(x.change); got != x.taken {
			t.Errorf("%s: %d taken, want %d", x.name, got, x.taken)
		}
	}
	for n := range 42 + 40 {
		if got := taken(func(f []byte) []byte { return f[:max(n, 14)] }); got != 0 {
			t.Errorf("cut to %d bytes: taken", n)
		}
	}
}

// TestInterfacesChange: the program follows interfaces and addresses that come and go.
func TestInterfacesChange(t *testing.T) {
	r := newLive(t, 3)
	r.run(100, habits{})
	r.in(r.sw)
	l, err := netlink.LinkByName("s1")
	r.check(err)
	r.check(netlink.LinkDel(l))
	r.link(1)
	before := r.counted().Events["kernel-results"]
	for epoch := uint32(4); r.counted().Events["kernel-results"] < before+100; epoch += 2 {
		if epoch > 200 {
			t.Fatal("nothing is reduced in the kernel any more:", r.counted().Events)
		}
		r.next(epoch)
		r.run(400, habits{})
	}
}
