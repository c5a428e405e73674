package flame

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"pgregory.net/rapid"
)

// profiled returns a profile of stacks, outermost first, with their values.
func profiled(stacks map[string]int64) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu", Unit: "nanoseconds"}}}
	for names, value := range stacks {
		s := &profile.Sample{Value: []int64{1, value}}
		words := strings.Fields(names)
		for i := range words {
			f := &profile.Function{Name: words[len(words)-1-i]}
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: f}}})
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func TestTreeOf(t *testing.T) {
	p := profiled(map[string]int64{"a b c": 5, "a b": 2, "a d": 7, "e": 1, "a b c f": 3})
	// An inlined function shares its caller's location, and comes first in it.
	g, h := &profile.Function{Name: "g"}, &profile.Function{Name: "h"}
	p.Sample = append(p.Sample, &profile.Sample{Value: []int64{1, 4}, Location: []*profile.Location{{Line: []profile.Line{{Function: h}, {Function: g}}}}})
	root, err := TreeOf(p, "all")
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	var say func(f *Frame)
	say = func(f *Frame) {
		said.WriteString(f.Name)
		for range f.Value {
			said.WriteByte('.')
		}
		said.WriteByte('(')
		for _, c := range f.Children {
			say(c)
		}
		said.WriteByte(')')
	}
	say(root)
	if want := "all......................(a.................(b..........(c........(f...()))d.......())g....(h....())e.())"; said.String() != want {
		t.Errorf("%s, want %s", said.String(), want)
	}
	if root.Depth() != 4 {
		t.Errorf("depth %d", root.Depth())
	}
	for _, empty := range []*profile.Profile{{}, profiled(map[string]int64{"a": 0})} {
		if _, err := TreeOf(empty, "x"); !errors.Is(err, ErrProfile) {
			t.Errorf("%v", err)
		}
	}
}

func TestKinds(t *testing.T) {
	for name, want := range map[string]kind{
		module + "internal/core/session.(*Session).Step": ours, "main.main": ours,
		module + "reduce/internal/asm.SumFloat32AVX2": kernels, "runtime.memmove": kernels,
		"internal/runtime/syscall.Syscall6": calls, "internal/runtime/syscall/linux.Syscall6": calls, "syscall.Syscall6": calls, "runtime.futex": calls,
		"runtime.mallocgc": machinery, "internal/runtime/maps.newTable": machinery,
		"google.golang.org/grpc.Dial": library, "net.(*conn).Read": library,
	} {
		if got := kindOf(name); got != want {
			t.Errorf("%s is of kind %d, want %d", name, got, want)
		}
	}
}

// TestDraw draws trees at random: what comes out is XML, the same each time,
// with a box for each frame that is wide enough and none for others.
func TestDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stacks := rapid.MapOfN(rapid.StringMatching(`([a-d<&]{1,30} ){1,6}`), rapid.Int64Range(1, 1000), 1, 30).Draw(t, "stacks")
		root, err := TreeOf(profiled(stacks), "all")
		if err != nil {
			t.Fatal(err)
		}
		var once, twice bytes.Buffer
		if err := errors.Join(Draw(&once, root, "a <title>"), Draw(&twice, root, "a <title>")); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(once.Bytes(), twice.Bytes()) {
			t.Fatal("two drawings of one tree differ")
		}
		if got, want := boxes(t, &twice), wideEnough(root, root.Value); got != want {
			t.Fatalf("%d boxes, want %d", got, want)
		}
	})
}

// boxes returns how many frames a drawing has.
func boxes(t *rapid.T, from io.Reader) (n int) {
	decoder := xml.NewDecoder(from)
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "g" {
			n++
		}
	}
}

func wideEnough(f *Frame, total int64) (n int) {
	if float64(f.Value)*(float64(width-2*margin)/float64(total)) < least {
		return 0
	}
	n = 1
	for _, c := range f.Children {
		n += wideEnough(c, total)
	}
	return n
}

func TestFitting(t *testing.T) {
	for wide, want := range map[float64]string{100: "hostlib.run", 11 * letter: "hostlib.run", 8 * letter: "..ib.run", 4 * letter: "..un", 3 * letter: "", 0: ""} {
		if got := fitting("hostlib.run", wide); got != want {
			t.Errorf("in %v: %q, want %q", wide, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for name, want := range map[string]string{
		module + "hostlib.Allreduce[go.shape.float32]":                 "hostlib.Allreduce[..]",
		module + "x.(*Loop[go.shape.struct { a []int },go.shape.b]).f": "x.(*Loop[..]).f",
		"runtime.main": "runtime.main",
	} {
		if got := short(name); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
