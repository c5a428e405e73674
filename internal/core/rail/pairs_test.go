package rail

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func at(name, prefix, network string) Rail {
	p := netip.MustParsePrefix(prefix)
	return Rail{Name: name, Address: netip.AddrPortFrom(p.Addr(), 7000), Bits: uint8(p.Bits()), Network: network}
}

func TestPairs(t *testing.T) {
	udp := func(r Rail) Rail { r.Kind = UDP; return r }
	rated := func(r Rail, bits uint64) Rail { r.Bandwidth = bits; return r }
	for name, c := range map[string]struct {
		a, b []Rail
		want string // of a's side: own-their, comma-separated
	}{
		"one each, routed": {[]Rail{at("a", "10.0.0.1/24", "")}, []Rail{at("b", "10.0.1.1/24", "")}, "0-0"},
		"by prefix, crossed": {
			[]Rail{at("a", "10.0.0.1/24", ""), at("b", "10.0.1.1/24", "")},
			[]Rail{at("a", "10.0.1.2/24", ""), at("b", "10.0.0.2/24", "")}, "0-1,1-0"},
		"by name, before the prefix": {
			[]Rail{at("a", "10.0.0.1/24", "x"), at("b", "10.0.0.2/24", "y")},
			[]Rail{at("a", "10.0.0.3/24", "y"), at("b", "10.0.0.4/24", "x")}, "0-1,1-0"},
		"a name on one side alone": {[]Rail{at("a", "10.0.0.1/24", "x")}, []Rail{at("b", "10.0.0.2/24", "")}, ""},
		"one network, two to one":  {[]Rail{at("a", "10.0.0.1/24", ""), at("b", "10.0.0.2/24", "")}, []Rail{at("a", "10.0.0.3/24", "")}, "0-0,1-0"},
		"three to two": {
			[]Rail{at("a", "10.0.0.1/24", ""), at("b", "10.0.0.2/24", ""), at("c", "10.0.0.3/24", "")},
			[]Rail{at("a", "10.0.0.4/24", ""), at("b", "10.0.0.5/24", "")}, "0-0,1-1,2-0"},
		"one by prefix, one routed": {
			[]Rail{at("a", "10.0.0.1/24", ""), at("b", "10.0.1.1/24", "")},
			[]Rail{at("a", "10.9.1.2/24", ""), at("b", "10.0.0.2/24", "")}, "0-1,1-0"},
		"kinds":    {[]Rail{at("a", "10.0.0.1/24", ""), udp(at("b", "10.0.0.1/24", ""))}, []Rail{udp(at("a", "10.0.0.2/24", "")), at("b", "10.0.0.2/24", "")}, "0-1,1-0"},
		"no kind":  {[]Rail{at("a", "10.0.0.1/24", "")}, []Rail{udp(at("a", "10.0.0.2/24", ""))}, ""},
		"families": {[]Rail{at("a", "10.0.0.1/24", "")}, []Rail{at("a", "fd00::1/64", "")}, ""},
		"loopback": {[]Rail{at("a", "127.0.0.1/8", "")}, []Rail{at("a", "10.0.0.1/24", ""), at("b", "127.0.0.1/32", "")}, "0-1"},
		"bandwidth": {
			[]Rail{rated(at("a", "10.0.0.1/24", ""), 200), rated(at("b", "10.0.1.1/24", ""), 100)},
			[]Rail{rated(at("a", "10.0.0.2/24", ""), 150), at("b", "10.0.1.2/24", "")}, "0-0:150,1-1:100"},
	} {
		t.Run(name, func(t *testing.T) {
			pairs, err := Pairs(Side{"h0", c.a}, Side{"h1", c.b})
			var got []string
			for _, p := range pairs {
				s := fmt.Sprintf("%d-%d", p.Own, p.Their)
				if p.Bandwidth != 0 {
					s += fmt.Sprintf(":%d", p.Bandwidth)
				}
				got = append(got, s)
			}
			if strings.Join(got, ",") != c.want {
				t.Errorf("pairs %v, want %v", got, c.want)
			}
			if (err != nil) != (c.want == "") {
				t.Error(err)
			}
		})
	}
}

// TestNoPairNamesBoth: who reads the error sees all rails of both hosts.
func TestNoPairNamesBoth(t *testing.T) {
	_, err := Pairs(Side{"h0", []Rail{at("eth1", "10.0.0.1/24", "blue")}}, Side{"h1", []Rail{at("eth2", "10.0.0.2/24", "red")}})
	if !errors.Is(err, ErrNoPair) {
		t.Fatal(err)
	}
	for _, want := range []string{"h0", "eth1", "10.0.0.1:7000/24", "blue", "h1", "eth2", "10.0.0.2:7000/24", "red", "tcp"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func anyRails(t *rapid.T, label string) []Rail {
	rails := make([]Rail, rapid.IntRange(1, MaxRails).Draw(t, label))
	for i := range rails {
		a := netip.AddrFrom4([4]byte{10, 0, rapid.ByteRange(0, 3).Draw(t, "network"), byte(i + 1)})
		rails[i] = Rail{
			Name: fmt.Sprint("r", i), Kind: Kind(rapid.IntRange(0, 1).Draw(t, "kind")),
			Address: netip.AddrPortFrom(a, 7000), Bits: rapid.SampledFrom([]uint8{0, 16, 24}).Draw(t, "bits"),
			Network:   rapid.SampledFrom([]string{"", "", "blue", "red"}).Draw(t, "name"),
			Bandwidth: rapid.SampledFrom([]uint64{0, 1e8, 2e8}).Draw(t, "bandwidth"),
		}
	}
	return rails
}

// TestPairsAreSymmetric: both hosts compute the same; no rail is left out that has another
// to join, unless there are too many pairs; kinds and names of networks are equal.
func TestPairsAreSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := Side{"h0", anyRails(t, "own")}, Side{"h1", anyRails(t, "their")}
		own, errOwn := Pairs(a, b)
		their, errTheir := Pairs(b, a)
		if len(own) != len(their) || (errOwn == nil) != (errTheir == nil) || (errOwn == nil) != (len(own) > 0) || len(own) > MaxRails {
			t.Fatal(own, their, errOwn, errTheir)
		}
		joins := map[[2]uint8]bool{}
		ofOwn := map[uint8]bool{}
		for i, p := range own {
			if q := their[i]; q.Own != p.Their || q.Their != p.Own || q.Bandwidth != p.Bandwidth {
				t.Fatalf("pair %d is %v and %v", i, p, q)
			}
			x, y := a.Rails[p.Own], b.Rails[p.Their]
			if x.Kind != y.Kind || x.Network != y.Network || joins[[2]uint8{p.Own, p.Their}] {
				t.Fatalf("pair %v joins %v and %v", p, x, y)
			}
			joins[[2]uint8{p.Own, p.Their}], ofOwn[p.Own] = true, true
		}
		for i, x := range a.Rails {
			if ofOwn[uint8(i)] || len(own) == MaxRails || x.Network == "" { // of those without a name, the prefix may have taken all
				continue
			}
			for _, y := range b.Rails {
				if x.Kind == y.Kind && x.Network == y.Network {
					t.Fatalf("%v is in no pair, %v could be in one", x, y)
				}
			}
		}
	})
}

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rails := anyRails(t, "rails")
		if rapid.Bool().Draw(t, "six") {
			rails[0].Address = netip.MustParseAddrPort("[fd00::1]:80")
		}
		got, err := Read(Append(nil, rails))
		if err != nil || !reflect.DeepEqual(got, rails) {
			t.Fatalf("%v: %v, want %v", err, got, rails)
		}
	})
}

func TestCheck(t *testing.T) {
	good := at("a", "10.0.0.1/24", "")
	for want, change := range map[string]func(r []Rail) []Rail{
		"0 rails":               func([]Rail) []Rail { return nil },
		"9 rails":               func(r []Rail) []Rail { return slices.Repeat(r[:1], 9) },
		"no name":               func(r []Rail) []Rail { r[0].Name = ""; return r },
		"not printable":         func(r []Rail) []Rail { r[0].Name = "a\n"; return r },
		"the network's name":    func(r []Rail) []Rail { r[0].Network = strings.Repeat("x", MaxText+1); return r },
		"kind 2":                func(r []Rail) []Rail { r[0].Kind = railKinds; return r },
		"no address":            func(r []Rail) []Rail { r[0].Address = netip.MustParseAddrPort("0.0.0.0:1"); return r },
		"10.0.0.1:0 is no":      func(r []Rail) []Rail { r[0].Address = netip.MustParseAddrPort("10.0.0.1:0"); return r },
		"a prefix of 33":        func(r []Rail) []Rail { r[0].Bits = 33; return r },
		"have the name a":       func(r []Rail) []Rail { return append(r, at("a", "10.0.0.2/24", "")) },
		"a and b are both at t": func(r []Rail) []Rail { return append(r, at("b", "10.0.0.1/24", "")) },
	} {
		if err := Check(change([]Rail{good})); !errors.Is(err, ErrRails) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := Check([]Rail{good}); err != nil {
		t.Error(err)
	}
}

// FuzzReadList: what is read is valid, and has one form.
func FuzzReadList(f *testing.F) {
	f.Add(Append(nil, []Rail{at("a", "10.0.0.1/24", ""), at("b", "fd00::1/64", "blue")}))
	f.Add([]byte{1, 0, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		rails, err := Read(b)
		if err != nil {
			if !errors.Is(err, ErrRails) {
				t.Error(err)
			}
			return
		}
		if err := Check(rails); err != nil {
			t.Error(err)
		}
		if again := Append(nil, rails); string(again) != string(b) {
			t.Errorf("%x was read, and is written as %x", b, again)
		}
	})
}
