package flame

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/tributary-fabric/tributary/bench/perf"
)

// ErrProfile: a profile has nothing to draw.
var ErrProfile = errors.New("the profile has no samples of processor time")

// Frame is a function as it was called by the frames above it in the tree.
type Frame struct {
	Name     string
	Value    int64    // of its samples and those of all that it called
	Children []*Frame // the largest first, then by name
}

// Depth returns the frames of the longest chain below f.
func (f *Frame) Depth() int {
	most := 0
	for _, c := range f.Children {
		most = max(most, 1+c.Depth())
	}
	return most
}

// TreeOf returns the tree of a profile's stacks. Its root is none of the
// functions, and has the given name.
func TreeOf(p *profile.Profile, name string) (*Frame, error) {
	which := len(p.SampleType) - 1 // of a processor's profile the time, after the count
	root := &Frame{Name: name}
	for _, s := range p.Sample {
		if which >= 0 && s.Value[which] > 0 {
			root.add(stack(s), s.Value[which])
		}
	}
	if root.Value == 0 {
		return nil, fmt.Errorf("%s: %w", name, ErrProfile)
	}
	root.sort()
	return root, nil
}

// stack returns the names of a sample's functions, the outermost first.
func stack(s *profile.Sample) (names []string) {
	for _, l := range slices.Backward(s.Location) {
		for _, line := range slices.Backward(l.Line) { // those inlined into it come before it
			if line.Function != nil {
				names = append(names, line.Function.Name)
			}
		}
	}
	return names
}

func (f *Frame) add(names []string, value int64) {
	f.Value += value
	if len(names) == 0 {
		return
	}
	i := slices.IndexFunc(f.Children, func(c *Frame) bool { return c.Name == names[0] })
	if i < 0 {
		i = len(f.Children)
		f.Children = append(f.Children, &Frame{Name: names[0]})
	}
	f.Children[i].add(names[1:], value)
}

func (f *Frame) sort() {
	slices.SortFunc(f.Children, func(a, b *Frame) int {
		return cmp.Or(cmp.Compare(b.Value, a.Value), strings.Compare(a.Name, b.Name))
	})
	for _, c := range f.Children {
		c.sort()
	}
}

// kind is what a function belongs to, which its colour tells.
type kind int

const (
	ours kind = iota
	kernels
	calls
	machinery
	library
	kinds
)

// look is a kind's colour, and its words in the legend.
var looks = [kinds]struct{ colour, words string }{
	ours:      {"#8fc7b5", "Tributary"},
	kernels:   {"#e8a15c", "reduction kernels, copies"},
	calls:     {"#9db4d8", "system calls"},
	machinery: {"#c9c9c9", "Go's runtime"},
	library:   {"#ecdf8e", "other packages"},
}

// module is the path of what is ours.
const module = "github.com/tributary-fabric/tributary/"

func kindOf(name string) kind {
	has := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	switch {
	case has(module+"reduce/internal", module+"reduce.", "runtime.memmove", "runtime.memclr"):
		return kernels
	case has(module, "main."):
		return ours
	case strings.HasSuffix(name, perf.KernelMark):
		return calls
	case has("internal/runtime/syscall", "syscall.", "golang.org/x/sys/unix.", "runtime/internal/syscall.", "runtime.futex", "runtime.epollwait"):
		return calls
	case has("runtime.", "internal/runtime/", "gcWriteBarrier", "runtime/"):
		return machinery
	}
	return library
}

// typeArguments are those of a generic function.
var typeArguments = regexp.MustCompile(`\[.*\]`)

// short returns a function's name without what all of its kind have, and without
// type arguments, which the compiler writes at length.
func short(name string) string {
	return strings.TrimPrefix(typeArguments.ReplaceAllString(name, "[..]"), module)
}
