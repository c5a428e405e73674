package topology

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestSpeed(t *testing.T) {
	for _, test := range []struct {
		s     Speed
		words string
		known bool
		none  bool
	}{
		{Speed{}, "not known", false, false},
		{Speed{Bytes: 2_500_000_000}, "2.5 GB/s", true, false},
		{Speed{999_600, 1_234_567}, "1 MB/s, 1.23 Mpackets/s", true, false},
		{Speed{Packets: 999}, "999 packets/s", true, false},
		{Speed{Bytes: 7, Packets: NoSpeed}, "7 B/s, 0 packets/s", true, true},
		{Speed{Bytes: NoSpeed}, "0 B/s", true, true},
		{Speed{Bytes: LineRate}, "line rate", true, false},
		{Speed{LineRate, LineRate}, "line rate", true, false},
		{Speed{LineRate - 1, 5000}, "1e+03 TB/s, 5 kpackets/s", true, false},
	} {
		if test.s.String() != test.words || test.s.Known() != test.known || test.s.None() != test.none || test.s.Validate() != nil {
			t.Errorf("%+v: %q, known %v, none %v", test.s, test.s, test.s.Known(), test.s.None())
		}
	}
	for _, s := range []Speed{{}, {Bytes: 5}, {NoSpeed, 7}, {LineRate, NoSpeed}} {
		text, err := json.Marshal(s)
		var back Speed
		if err != nil || json.Unmarshal(text, &back) != nil || back != s {
			t.Errorf("%+v as %s is %+v, %v", s, text, back, err)
		}
	}
	if err := new(Speed).UnmarshalJSON([]byte(`{"bytes": "many"}`)); err == nil {
		t.Error("many bytes are a speed")
	}
	for _, bad := range []Speed{{Bytes: -2}, {Packets: LineRate + 1}} {
		if err := bad.Validate(); !errors.Is(err, ErrSpeed) {
			t.Errorf("%+v: %v", bad, err)
		}
		if err := (Capability{Speed: bad}).Validate(); !errors.Is(err, ErrSpeed) || !errors.Is(err, ErrCapability) {
			t.Errorf("%+v: %v", bad, err)
		}
		var b Builder
		if h, err := b.AddHost("h"); err != nil || !errors.Is(b.SetSpeed(h, bad), ErrSpeed) {
			t.Errorf("%+v was taken, %v", bad, err)
		}
	}
	var b Builder
	if s, err := b.AddSwitch("s", DefaultCapability()); err != nil || !errors.Is(b.SetSpeed(s, Speed{}), ErrSpeed) {
		t.Errorf("a switch's speed is not its capability's: %v", err)
	}
	if c := DefaultCapability(); !c.CanReduce() {
		t.Error("a switch of unknown speed cannot reduce")
	} else if c.Speed.Packets = NoSpeed; c.CanReduce() {
		t.Error("a switch of no speed can reduce")
	}
}

// TestReadSpeeds reads speeds of switches and hosts, by default and each by itself, of
// a file and of a generator.
func TestReadSpeeds(t *testing.T) {
	const text = `version: 1
defaults: {host: {speed: {bytes: 4G}}, switch: {speed: {bytes: 12.5G, packets: 2M}}}
hosts: [a, {name: b, speed: {bytes: 0, packets: 70000}}, {name: c, speed: {}}, {name: d}]
switches: [{name: s}, {name: u, speed: {packets: 1 k}}, {name: v, speed: {}}, {name: w, speed: {bytes: line-rate}}]
`
	g, err := Read(strings.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Speed{
		"a": {Bytes: 4e9}, "b": {NoSpeed, 70000}, "c": {}, "d": {Bytes: 4e9}, "s": {12_500_000_000, 2e6}, "u": {Packets: 1000}, "v": {}, "w": {Bytes: LineRate},
	} {
		if n, ok := g.Lookup(name); !ok || g.Speed(n) != want {
			t.Errorf("%s: %v, want %v", name, g.Speed(n), want)
		}
	}
	checkRoundTrip(t, g)
	asYAML, asJSON := write(t, g)
	for _, x := range [][]byte{[]byte(text), asYAML, asJSON} {
		if err := schemaAccepts(t, x); err != nil {
			t.Errorf("%v of\n%s", err, x)
		}
	}
	made, err := Read(strings.NewReader("version: 1\ndefaults: {host: {speed: {bytes: 4G}}, switch: {speed: {bytes: 9}}}\ngenerator: leaf-spine:1,2,1\n"), "f")
	if err != nil || made.Speed(0).Bytes != 4e9 || made.Speed(made.Switch(2)).Bytes != 9 {
		t.Fatalf("a generator's: %v, %v", made, err)
	}
	checkRoundTrip(t, made)
	e := DefaultEquipment()
	if e.Host.Packets = -5; !errors.Is(e.Validate(), ErrSpeed) {
		t.Error("equipment with hosts of such a speed is valid")
	}
}
