package pipeline

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
)

// framed returns a datagram as a host's link carries it.
func framed(from, to netip.AddrPort, payload []byte) []byte {
	frame := build(from.Port(), to, payload, nil)
	source := from.Addr().As4()
	copy(frame[ethernetSize+12:], source[:])
	return frame
}

var (
	hostAddress = netip.MustParseAddrPort("10.0.0.1:7000")
	treeAddress = netip.MustParseAddrPort("10.0.0.0:49152")
)

func TestParseWhatWasBuilt(t *testing.T) {
	for _, payload := range [][]byte{nil, []byte("odd"), bytes.Repeat([]byte{7}, 1472)} {
		frame := framed(hostAddress, treeAddress, payload)
		padded := append(frame[:len(frame):len(frame)], make([]byte, 18)...) // as short frames are
		for _, f := range [][]byte{frame, padded} {
			from, got, ok := parse(f)
			if !ok || from != hostAddress || !bytes.Equal(got, payload) {
				t.Errorf("%d bytes: %v, %d bytes, %v", len(f), from, len(got), ok)
			}
		}
	}
}

// TestBuilt holds a frame against RFC 791 and RFC 768, byte by byte.
func TestBuilt(t *testing.T) {
	got := build(0xc000, netip.MustParseAddrPort("10.1.2.3:258"), []byte{0xaa}, []byte{0xbb, 0xcc})
	want := []byte{
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00,
		0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0, 0, 0, 0, 0, 0, 10, 1, 2, 3,
		0xc0, 0x00, 0x01, 0x02, 0, 11, 0, 0,
		0xaa, 0xbb, 0xcc,
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	ip, udp := ethernetSize, ethernetSize+ipv4Size
	for name, spoil := range map[string]func([]byte) []byte{
		"nothing":            func([]byte) []byte { return nil },
		"short":              func(b []byte) []byte { return b[:framing-1] },
		"cut off":            func(b []byte) []byte { return b[:len(b)-1] },
		"IPv6":               func(b []byte) []byte { binary.BigEndian.PutUint16(b[12:], 0x86dd); return b },
		"version":            func(b []byte) []byte { b[ip] = 6<<4 | 5; return b },
		"options":            func(b []byte) []byte { b[ip] = 4<<4 | 6; return b },
		"a fragment":         func(b []byte) []byte { b[ip+7] = 1; return b },
		"more fragments":     func(b []byte) []byte { b[ip+6] = 0x20; return b },
		"TCP":                func(b []byte) []byte { b[ip+9] = 6; return b },
		"length of IPv4":     func(b []byte) []byte { binary.BigEndian.PutUint16(b[ip+2:], 27); return b },
		"length of UDP":      func(b []byte) []byte { b[udp+5]--; return b },
		"length beyond UDP":  func(b []byte) []byte { b[udp+5]++; return b },
		"UDP without header": func(b []byte) []byte { b[udp+5] = 7; return b },
	} {
		if from, payload, ok := parse(spoil(framed(hostAddress, treeAddress, []byte("payload")))); ok {
			t.Errorf("%s: %v, %x", name, from, payload)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(framed(hostAddress, treeAddress, []byte("payload")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		from, payload, ok := parse(frame)
		if !ok {
			return
		}
		again, same, ok := parse(framed(from, treeAddress, payload))
		if !ok || again != from || !bytes.Equal(same, payload) {
			t.Errorf("%v with %x became %v with %x, %v", from, payload, again, same, ok)
		}
	})
}
