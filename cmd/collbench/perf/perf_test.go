package perf_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/tributary-fabric/tributary/cmd/collbench/perf"
)

// stacks returns a line a sample, the innermost function first.
func stacks(p *profile.Profile) (all []string) {
	for _, s := range p.Sample {
		var names []string
		for _, l := range s.Location {
			names = append(names, l.Line[0].Function.Name)
		}
		all = append(all, fmt.Sprint(strings.Join(names, " < "), " ", s.Value))
	}
	return all
}

const script = `collbench    2004008 
	ffffffff81d335f7 udp_sendmsg ([kernel.kallsyms])
	ffffffffc0a312eb veth_xmit ([veth])
	          4b82eb github.com/a/b.(*UDP).send (/tmp/collbench)
	               0 [unknown] ([unknown])

two words       7 
	          4b82eb github.com/a/b.(*UDP).send (/tmp/collbench)
	    7ffd4b82eb00 __vdso_clock_gettime ([vdso])

idle       9 
`

func TestParse(t *testing.T) {
	p, err := perf.Parse(strings.NewReader(script))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"udp_sendmsg (kernel) < veth_xmit (kernel) < github.com/a/b.(*UDP).send < [unknown] [1 2004008]",
		"github.com/a/b.(*UDP).send < __vdso_clock_gettime [1 7]",
		"idle [1 9]",
	}
	if got := stacks(p); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(p.Function) != 6 {
		t.Errorf("%d functions", len(p.Function))
	}
	var file bytes.Buffer
	if err := p.Write(&file); err != nil {
		t.Fatal(err)
	}
	if again, err := profile.Parse(&file); err != nil || !slices.Equal(stacks(again), want) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"collbench\n", "2004\n", "collbench -1\n", "\t81 read ([kernel])\n", "a 1\n\t81 read\n", "a 1\n\tread\n", "a 1\n\t81 (x)\n"} {
		if _, err := perf.Parse(strings.NewReader(text)); !errors.Is(err, perf.ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(script)
	f.Add("a 1\n\t1 b (c)\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := perf.Parse(strings.NewReader(text))
		if err == nil && p.CheckValid() != nil {
			t.Error(p.CheckValid())
		}
	})
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := perf.Start(filepath.Join(t.TempDir(), "data"), []int{os.Getpid()}); !errors.Is(err, perf.ErrMissing) {
		t.Error(err)
	}
}

// TestRecord looks at this process while the kernel works for it.
func TestRecord(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	r, err := perf.Start(data, []int{os.Getpid()})
	if err != nil {
		t.Skip(err) // there is none, or it may not
	}
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	buffer := make([]byte, 1<<20)
	for range 4000 {
		if _, err := zeros.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Stop(); err != nil {
		t.Fatal(err)
	}
	p, err := perf.Read(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	// A program that go test builds has no symbols, but the kernel has.
	if all := strings.Join(stacks(p), "\n"); !strings.Contains(all, perf.KernelMark+" < ") {
		t.Errorf("the kernel is not seen:\n%s", all)
	}
}

func TestRecordOfNobody(t *testing.T) {
	r, err := perf.Start(filepath.Join(t.TempDir(), "data"), []int{1 << 30})
	if err == nil {
		t.Fatal("no such process, and it looks at it", r.Stop())
	}
	if !errors.Is(err, perf.ErrFailed) && !errors.Is(err, perf.ErrMissing) {
		t.Error(err)
	}
}
