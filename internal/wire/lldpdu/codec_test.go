package lldpdu

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tributary-fabric/tributary/internal/check/transcript"
)

var leaf = Announcement{
	Chassis: ChassisID{ChassisMAC, "\x02\x00\x00\x00\x00\x01"}, Port: PortID{PortInterface, "p3"},
	TTL: 2, PortDescription: "to spine1", SystemName: "leaf0", SystemDescription: "Tributary",
	Capabilities: Bridge | Router, Enabled: Router, Management: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")},
	Tributary: Tributary{Role: Switch, Name: "leaf0", AgentPort: 7401, PortNumber: 3},
}

// TestGolden: the bytes of a switch's announcement, one TLV a line, of its end, and of the
// measurement of a delay.
func TestGolden(t *testing.T) {
	var listings []transcript.Listing
	for name, a := range map[string]Announcement{"switch": leaf, "shutdown": {Chassis: leaf.Chassis, Port: leaf.Port}} {
		b, err := a.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		listings = append(listings, transcript.Listing{Name: name, Text: listing(b), Read: func(t *testing.T, raw []byte) {
			got, discarded, err := Decode(raw)
			if err != nil || discarded != 0 || !got.Equal(&a) {
				t.Errorf("%+v, %d discarded, %v", got, discarded, err)
			}
		}})
	}
	for name, d := range someDelays {
		listings = append(listings, transcript.Listing{Name: name, Text: listing(with(t, d)), Read: func(t *testing.T, raw []byte) {
			if got, ok := DecodeDelay(raw); !ok || got != d {
				t.Errorf("%+v, %v", got, ok)
			}
		}})
	}
	slices.SortFunc(listings, func(a, b transcript.Listing) int { return strings.Compare(a.Name, b.Name) })
	transcript.Listings(t, "testdata/golden", listings)
}

// listing writes an LLDPDU, a TLV a line.
func listing(b []byte) string {
	names := map[byte]string{
		0: "end", 1: "chassis identifier", 2: "port identifier", 3: "TTL", 4: "port description", 5: "system name",
		6: "system description", 7: "capabilities", 8: "management address", 127: "Tributary's own",
	}
	var text strings.Builder
	for at := 0; at < len(b); {
		n := 2 + int(b[at]&1)<<8 + int(b[at+1])
		digits := hex.EncodeToString(b[at : at+n])
		text.WriteString(strings.Join([]string{strconv.Itoa(at), digits, names[b[at]>>1]}, " ") + "\n")
		at += n
	}
	return text.String()
}

func tlv(kind byte, value string) string {
	return string([]byte{kind<<1 | byte(len(value)>>8), byte(len(value))}) + value
}

const (
	head = "\x02\x07\x04\x02\x00\x00\x00\x00\x01\x04\x03\x05p3\x06\x02\x00\x02"
	last = "\x00\x00"
)

// TestStrict: what the standard has a receiver discard as a whole.
func TestStrict(t *testing.T) {
	long := strings.Repeat("x", 500)
	for name, pdu := range map[string]string{
		"nothing":                 "",
		"end alone":               last,
		"one byte":                "\x02",
		"no TTL":                  "\x02\x07\x04\x02\x00\x00\x00\x00\x01\x04\x03\x05p3" + last,
		"wrong order":             "\x04\x03\x05p3\x02\x07\x04\x02\x00\x00\x00\x00\x01\x06\x02\x00\x02" + last,
		"chassis repeated":        head + tlv(1, "\x04abcdef") + last,
		"TTL repeated":            head + tlv(3, "\x00\x01") + last,
		"TTL of a byte":           "\x02\x07\x04\x02\x00\x00\x00\x00\x01\x04\x03\x05p3\x06\x01\x02" + last,
		"no subtype":              tlv(1, "") + tlv(2, "\x05p3") + tlv(3, "\x00\x02") + last,
		"empty chassis":           tlv(1, "\x04") + tlv(2, "\x05p3") + tlv(3, "\x00\x02") + last,
		"empty port":              tlv(1, "\x04a") + tlv(2, "\x05") + tlv(3, "\x00\x02") + last,
		"long port":               tlv(1, "\x04a") + tlv(2, "\x05"+long[:256]) + tlv(3, "\x00\x02") + last,
		"TLV cut off":             head + "\x0a\x05leaf",
		"byte behind a TLV":       head + "\x0a",
		"end with a length":       head + "\x00\x01x" + last,
		"more than a frame holds": head + strings.Repeat(tlv(5, long), 3) + last,
	} {
		if a, _, err := Decode([]byte(pdu)); !errors.Is(err, ErrMalformed) || !a.Equal(&Announcement{}) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// TestTolerant: what does not make an LLDPDU useless, and how many TLVs are discarded.
func TestTolerant(t *testing.T) {
	base := Announcement{Chassis: leaf.Chassis, Port: leaf.Port, TTL: 2}
	but := func(change func(a *Announcement)) Announcement {
		a := base
		change(&a)
		return a
	}
	address := func(a string) string { return string(appendAddress(nil, netip.MustParseAddr(a))) }
	manage := func(address string) string {
		return tlv(8, string(byte(len(address)))+address+"\x02\x00\x00\x00\x03\x00")
	}
	var nine string
	eight := base
	for i := range byte(9) {
		m := netip.AddrFrom4([4]byte{10, 0, 0, i + 1})
		nine += manage(address(m.String()))
		if i < MaxManagement {
			eight.Management = append(eight.Management, m)
		}
	}
	one := but(func(a *Announcement) { a.Management = []netip.Addr{netip.MustParseAddr("10.0.0.1")} })
	for name, c := range map[string]struct {
		pdu       string
		want      Announcement
		discarded int
	}{
		"no end":                   {head, base, 0},
		"padding":                  {head + last + "\x00\x00\x00", base, 0},
		"anything behind the end":  {head + last + "\xff", base, 0},
		"unknown types":            {head + tlv(9, "x") + tlv(126, "") + last, base, 0},
		"other organizations":      {head + tlv(127, "\x00\x80\xc2\x01\x00\x01") + tlv(127, "\x00\x12\x0f\x01") + last, base, 0},
		"no room for an organizer": {head + tlv(127, "\x00\x80\xc2") + last, base, 1},
		"text ends with a zero":    {head + tlv(5, "leaf0\x00") + last, but(func(a *Announcement) { a.SystemName = "leaf0" }), 0},
		"text is not UTF-8":        {head + tlv(4, "a\xff\xfeb") + last, but(func(a *Announcement) { a.PortDescription = "a?b" }), 0},
		"text is too long":         {head + tlv(6, strings.Repeat("x", 256)) + last, base, 1},
		"text is repeated":         {head + tlv(5, "a") + tlv(5, "b") + last, but(func(a *Announcement) { a.SystemName = "a" }), 1},
		"capabilities of 3 bytes":  {head + tlv(7, "\x00\x14\x00") + last, base, 1},
		"nine addresses":           {head + nine + last, eight, 1},
		"address repeated":         {head + manage(address("10.0.0.1")) + manage(address("10.0.0.1")) + last, one, 0},
		"mapped address":           {head + manage("\x02"+string(netip.MustParseAddr("::ffff:10.0.0.1").AsSlice())) + last, one, 0},
		"address is a MAC":         {head + manage("\x06\x02\x00\x00\x00\x00\x01") + last, base, 0},
		"IPv4 address of 3 bytes":  {head + manage("\x01abc") + last, base, 1},
		"unspecified address":      {head + manage(address("0.0.0.0")) + last, base, 1},
		"multicast address":        {head + manage(address("ff02::1")) + last, base, 1},
		"no object identifier":     {head + tlv(8, "\x05"+address("10.0.0.1")+"\x02\x00\x00\x00\x03") + last, base, 1},
		"object identifier cut":    {head + tlv(8, "\x05"+address("10.0.0.1")+"\x02\x00\x00\x00\x03\x02x") + last, base, 1},
		"address cut":              {head + tlv(8, "\x20"+address("10.0.0.1")) + last, base, 1},
		"own of a later version":   {head + tlv(127, organization+"\x09xyz") + tlv(127, organization+"\x00") + last, base, 0},
		"own of no role":           {head + tlv(127, organization+"\x01\x00x") + last, base, 1},
		"own of a later role":      {head + tlv(127, organization+"\x01\x03x") + last, base, 1},
		"own without name":         {head + tlv(127, organization+"\x01\x01") + last, base, 1},
		"own agent of 3 bytes":     {head + tlv(127, organization+"\x02\x01\x02\x03") + last, base, 1},
		"own repeated": {head + tlv(127, organization+"\x03\x00\x00\x00\x05") + tlv(127, organization+"\x03\x00\x00\x00\x06") + last,
			but(func(a *Announcement) { a.Tributary.PortNumber = 5 }), 1},
	} {
		a, discarded, err := Decode([]byte(c.pdu))
		if err != nil || discarded != c.discarded || !a.Equal(&c.want) {
			t.Errorf("%s: %+v, %d discarded, %v; want %+v, %d", name, a, discarded, err, c.want, c.discarded)
		}
	}
}

// TestNoRoom: what no LLDPDU has room for is refused by an error that names it.
func TestNoRoom(t *testing.T) {
	long := strings.Repeat("x", 256)
	for says, spoil := range map[string]func(a *Announcement){
		"chassis identifier is empty": func(a *Announcement) { a.Chassis.Value = "" },
		"port identifier has 256":     func(a *Announcement) { a.Port.Value = long },
		"port description has 256":    func(a *Announcement) { a.PortDescription = long },
		"system name has 256":         func(a *Announcement) { a.SystemName = long },
		"system description has 256":  func(a *Announcement) { a.SystemDescription = long },
		"Tributary's name has 256":    func(a *Announcement) { a.Tributary.Name = long },
		"9 management addresses":      func(a *Announcement) { a.Management = make([]netip.Addr, 9) },
		"want at most 1500": func(a *Announcement) {
			x := long[:255]
			a.Chassis.Value, a.Port.Value, a.PortDescription, a.SystemName, a.SystemDescription, a.Tributary.Name = x, x, x, x, x, x
		},
	} {
		a := leaf
		spoil(&a)
		if _, err := a.Append(nil); err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, ErrTooLong) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%v, want that it says %q", err, says)
		}
	}
}

func anyAnnouncement(t *rapid.T) Announcement {
	label := rapid.StringMatching(`[a-zé0-9/ -]{0,40}`)
	value := rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 60), func(b []byte) string { return string(b) })
	a := Announcement{
		Chassis: ChassisID{ChassisSubtype(rapid.Byte().Draw(t, "subtype")), value.Draw(t, "chassis")},
		Port:    PortID{PortSubtype(rapid.Byte().Draw(t, "subtype")), value.Draw(t, "port")},
		TTL:     rapid.Uint16().Draw(t, "TTL"), PortDescription: label.Draw(t, "description"),
		SystemName: label.Draw(t, "name"), SystemDescription: label.Draw(t, "system"),
		Capabilities: Capabilities(rapid.Uint16().Draw(t, "capabilities")), Enabled: Capabilities(rapid.Uint16().Draw(t, "enabled")),
	}
	for i := range rapid.IntRange(0, MaxManagement).Draw(t, "addresses") {
		m := netip.AddrFrom4([4]byte{10, 1, 2, byte(i)})
		if rapid.Bool().Draw(t, "IPv6") {
			m = netip.AddrFrom16([16]byte{0xfd, 15: byte(i)})
		}
		a.Management = append(a.Management, m)
	}
	if rapid.Bool().Draw(t, "own") {
		a.Tributary = Tributary{
			Role: rapid.SampledFrom([]Role{Switch, Host}).Draw(t, "role"), Name: "n" + label.Draw(t, "own name"),
			AgentPort: rapid.Uint16().Draw(t, "agent"), PortNumber: rapid.Uint32().Draw(t, "number"),
		}
	}
	return a
}

// TestRoundTrip: what is announced is what is read.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAnnouncement(t)
		b, err := a.Append([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		pdu, ok := bytes.CutPrefix(b, []byte("before"))
		got, discarded, err := Decode(pdu)
		if !ok || err != nil || discarded != 0 || !got.Equal(&a) {
			t.Fatalf("%+v is read as %+v, %d discarded, %v", a, got, discarded, err)
		}
	})
}

// FuzzDecode: whatever is read can be announced again, in no more bytes than it had and
// with the same meaning, and leaves the bytes alone.
func FuzzDecode(f *testing.F) {
	for _, c := range captured {
		b, err := hex.DecodeString(c.pdu)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	b, err := leaf.Append(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(with(f, someDelays["delay-response"]))
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		a, discarded, err := Decode(b)
		if d, ok := DecodeDelay(b); ok && err == nil {
			pdu, e := a.Append(nil)
			if e != nil {
				t.Fatal(e)
			}
			if pdu, e = AppendDelay(nil, pdu, d); e != nil && !errors.Is(e, ErrTooLong) {
				t.Fatal(e)
			}
			if again, ok := DecodeDelay(pdu); e == nil && (!ok || again != d) {
				t.Errorf("%+v is read as %+v, %v", d, again, ok)
			}
		}
		if !bytes.Equal(b, before) {
			t.Error("the bytes have changed")
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) || !a.Equal(&Announcement{}) || discarded != 0 {
				t.Errorf("%+v, %d discarded, %v", a, discarded, err)
			}
			return
		}
		again, err := a.Append(nil)
		if err != nil || len(again) > len(b)+2 {
			t.Fatalf("%d bytes are read as %+v, which is %d: %v", len(b), a, len(again), err)
		}
		if got, discarded, err := Decode(again); err != nil || discarded != 0 || !got.Equal(&a) {
			t.Errorf("%+v is read as %+v, %d discarded, %v", a, got, discarded, err)
		}
	})
}
