package topology

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawGraph builds a random fabric: links in parallel, ports named or not,
// switches of several capabilities and layers, parts that are not joined.
func drawGraph(t *rapid.T) *Graph {
	b := Builder{Fabric: rapid.SampledFrom([]string{"", "a", "two words", "täst: \"#\" \\", "null", "12"}).Draw(t, "fabric")}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var refs []Ref
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._/-]{0,5}`), 1, 12, rapid.ID).Draw(t, "names")
	for i, name := range names {
		if i > 0 && rapid.Bool().Draw(t, "host") {
			ref, err := b.AddHost(name)
			must(err)
			must(b.SetSpeed(ref, drawSpeed(t)))
			refs = append(refs, ref)
			continue
		}
		c := DefaultCapability()
		c.Slots = rapid.IntRange(0, 2).Draw(t, "slots")
		c.Speed = drawSpeed(t)
		c.Window = rapid.SampledFrom([]int{0, 0, 3, 64}).Draw(t, "window")
		c.Functions = Functions(rapid.Uint32().Draw(t, "functions")) & AllFunctions()
		c.Types &= Types(rapid.SampledFrom([]uint32{0, 1 << 5, ^uint32(0)}).Draw(t, "types"))
		ref, err := b.AddSwitch(name, c)
		must(err)
		if layer := rapid.IntRange(0, 3).Draw(t, "layer"); layer > 0 {
			must(b.SetLayer(ref, layer))
		}
		refs = append(refs, ref)
	}
	next := map[Ref]Port{}
	for range rapid.IntRange(0, 20).Draw(t, "links") {
		x, y := rapid.SampledFrom(refs).Draw(t, "x"), rapid.SampledFrom(refs).Draw(t, "y")
		if x == y || x.host() && y.host() {
			continue
		}
		port := func(r Ref) Port {
			if rapid.Bool().Draw(t, "any port") {
				return 0
			}
			next[r] += Port(rapid.IntRange(1, 3).Draw(t, "port"))
			return next[r]
		}
		spec := LinkSpec{
			Bandwidth: rapid.SampledFrom([]int64{1, 2500e6, 100e9, 4e12, 123456789}).Draw(t, "bandwidth"),
			Latency:   rapid.SampledFrom([]LinkSpec{{Latency: 0}, {Latency: 500}, {Latency: 1500}, {Latency: 2e6}, {Latency: 1e9}}).Draw(t, "latency").Latency,
		}
		_, err := b.Connect(x, port(x), y, port(y), spec)
		must(err)
	}
	g, err := b.Build()
	must(err)
	return g
}

func TestBuilderMakesValidGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { checkGraph(t, drawGraph(rt)) })
}

func TestBuilderLowestFreePorts(t *testing.T) {
	var b Builder
	s, _ := b.AddSwitch("s", DefaultCapability())
	for i, port := range []Port{0, 2, 0, 4, 0, 1} {
		x, err := b.AddSwitch(fmt.Sprintf("x%d", i), DefaultCapability())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Connect(s, port, x, 0, DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	var got []Port
	for _, link := range g.AllLinks() {
		got = append(got, link.Ends[0].Port)
	}
	if want := []Port{3, 2, 5, 4, 6, 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ports %v, want %v", got, want)
	}
}

func TestBuilderErrors(t *testing.T) {
	var b Builder
	h, err1 := b.AddHost("h")
	i, err2 := b.AddHost("i")
	s, err3 := b.AddSwitch("s", DefaultCapability())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	second := func(_ any, err error) error { return err }
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"empty name", second(b.AddHost("")), ErrName},
		{"long name", second(b.AddHost(strings.Repeat("x", 254))), ErrName},
		{"name with a space", second(b.AddSwitch("a b", DefaultCapability())), ErrName},
		{"name with a colon", second(b.AddSwitch("a:1", DefaultCapability())), ErrName},
		{"name from a dash", second(b.AddHost("-a")), ErrName},
		{"host twice", second(b.AddHost("h")), ErrDuplicateName},
		{"switch named like a host", second(b.AddSwitch("h", DefaultCapability())), ErrDuplicateName},
		{"host named like a switch", second(b.AddHost("s")), ErrDuplicateName},
		{"capability", second(b.AddSwitch("t", Capability{Children: -1})), ErrCapability},
		{"layer 0", b.SetLayer(s, 0), ErrLayer},
		{"layer of a host", b.SetLayer(h, 1), ErrLayer},
		{"layer too high", b.SetLayer(s, MaxLayer+1), ErrLayer},
		{"two hosts", second(b.Connect(h, 0, i, 0, DefaultLink())), ErrLink},
		{"itself", second(b.Connect(s, 1, s, 2, DefaultLink())), ErrLink},
		{"no bandwidth", second(b.Connect(h, 0, s, 0, LinkSpec{})), ErrLink},
		{"negative latency", second(b.Connect(h, 0, s, 0, LinkSpec{Bandwidth: 1, Latency: -1})), ErrLink},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.err, test.want)
		}
	}
	if g, err := b.Build(); err != nil || g.Nodes() != 3 || g.Links() != 0 {
		t.Errorf("what failed left something behind: %v", err)
	}
}

func TestBuildErrors(t *testing.T) {
	var b Builder
	s, _ := b.AddSwitch("s", DefaultCapability())
	x, _ := b.AddSwitch("x", DefaultCapability())
	for range 3 {
		if _, err := b.Connect(s, 0, x, 5, DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.Build()
	var le *LinkError
	if !errors.Is(err, ErrPortUsed) || !errors.As(err, &le) || le.Link != 1 || le.End != 1 || len(splitErrors(err)) != 2 {
		t.Errorf("port used three times: %v", err)
	}

	b = Builder{Fabric: "a\nb"}
	if _, err := b.Build(); !errors.Is(err, ErrName) {
		t.Errorf("fabric name of two lines: %v", err)
	}

	b = Builder{}
	s, _ = b.AddSwitch("s", DefaultCapability())
	x, _ = b.AddSwitch("x", DefaultCapability())
	for range MaxPort + 1 {
		if _, err := b.Connect(s, 0, x, 0, DefaultLink()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Build(); !errors.Is(err, ErrNoPort) {
		t.Errorf("more links than ports: %v", err)
	}
}

func TestEmptyGraph(t *testing.T) {
	g, err := (&Builder{}).Build()
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(t, g)
	if _, ok := g.Lookup("h0"); ok || g.Layers() != 0 || g.Name(0) != "node(0)" || g.LinkName(0) != "link(0)" {
		t.Error("an empty graph has something")
	}
}
