package topology

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestSetAddresses(t *testing.T) {
	var b Builder
	h, err := b.AddHost("h")
	s, err2 := b.AddSwitch("s", DefaultCapability())
	_, err3 := b.Connect(h, 0, s, 0, DefaultLink())
	_, err4 := b.Connect(s, 0, h, 0, DefaultLink())
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddr
	for _, test := range []struct {
		link LinkID
		x, y string
		end  int // that is refused; -1: none
	}{
		{0, "10.0.0.1", "10.0.0.2", -1},
		{1, "fd00::1", "fd00::2", -1},
		{1, "0.0.0.0", "10.0.0.3", 0},
		{1, "10.0.0.3", "224.0.0.1", 1},
		{1, "10.0.0.3", "10.0.0.3", 0},
		{1, "10.0.0.3", "fd00::3", 0},
		{1, "fd00::3", "fe80::1%eth0", 1},
		{1, "10.0.0.3", "10.0.0.1", 1},
		{1, "10.0.0.3", "::ffff:10.0.0.1", 1},
		{0, "10.0.0.2", "10.0.0.1", -1},
	} {
		err := b.SetAddresses(test.link, address(test.x), address(test.y))
		var at *LinkError
		switch {
		case test.end < 0 && err != nil:
			t.Errorf("%v: %v", test, err)
		case test.end >= 0 && (!errors.Is(err, ErrAddress) || !errors.As(err, &at) || at.Link != test.link || at.End != test.end):
			t.Errorf("%v: %v", test, err)
		}
	}
	if err := b.SetAddresses(2, address("10.0.0.8"), address("10.0.0.9")); !errors.Is(err, ErrLink) {
		t.Errorf("a link that is not there: %v", err)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for l, want := range []string{"10.0.0.2 10.0.0.1", "fd00::2 fd00::1"} {
		host, _ := g.Lookup("h")
		sw, _ := g.Lookup("s")
		if got := fmt.Sprint(g.AddressAt(LinkID(l), host), g.AddressAt(LinkID(l), sw)); got != want {
			t.Errorf("link %d has %s, want %s", l, got, want)
		}
	}
	checkRoundTrip(t, g)
	asYAML, asJSON := write(t, g)
	if err := errors.Join(schemaAccepts(t, asYAML), schemaAccepts(t, asJSON)); err != nil {
		t.Error(err)
	}
	if a := generated(t, "leaf-spine:1,1,1").AddressAt(0, 0); a.IsValid() {
		t.Errorf("a generated link has address %v", a)
	}
}

func TestReadAddresses(t *testing.T) {
	const head = "version: 1\nhosts: [h0, h1]\nswitches: [{name: s}]\nlinks:\n- {between: [h0, s], addresses: [10.0.0.1, 10.0.0.0]}\n- {between: [h1, s], addresses: "
	for _, test := range []struct {
		text    string
		want    error
		message string
	}{
		{"[10.0.0.3, 10.0.0.2]", nil, ""},
		{"[10.0.0.3]", ErrField, "f:6: links[1].addresses: must be a list of two IP addresses"},
		{"10.0.0.3", ErrField, "f:6: links[1].addresses: must be a list of two IP addresses"},
		{"[10.0.0.3, 7]", ErrField, "f:6: links[1].addresses[1]: must be a string, not a number"},
		{"[10.0.0.3/31, 10.0.0.2]", ErrAddress, `f:6: links[1].addresses[0]: "10.0.0.3/31" is no IP address`},
		{"[10.0.0.3, 0.0.0.0]", ErrAddress, "f:6: links[1].addresses[1]: 0.0.0.0 is none that packets can be sent to"},
		{"[10.0.0.1, 10.0.0.2]", ErrAddress, "f:6: links[1].addresses[0]: 10.0.0.1 is that of an end of link 0, too"},
	} {
		_, err := Read(strings.NewReader(head+test.text+"}\n"), "f")
		if !errors.Is(err, test.want) || err != nil && !strings.HasPrefix(err.Error(), test.message) {
			t.Errorf("%s: %v", test.text, err)
		}
	}
	const base = "version: 1\nhosts: [h]\nswitches: [{name: s}]\nlinks: [{between: [h, s]%s}]\n"
	a, err := Read(strings.NewReader(fmt.Sprintf(base, "")), "f")
	b, err2 := Read(strings.NewReader(fmt.Sprintf(base, ", addresses: [10.0.0.1, 10.0.0.0]")), "f")
	if err := errors.Join(err, err2); err != nil || Equal(a, b) || !Equal(b, b) {
		t.Errorf("a graph equals one with other addresses, or not itself: %v", err)
	}
}
