package perf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// ErrFormat is wrapped by the errors of Parse.
var ErrFormat = errors.New("this is not what perf script writes")

// KernelMark ends the names of the kernel's functions.
const KernelMark = " (kernel)"

// Parse reads what "perf script --fields comm,period,ip,sym,dso" writes of the
// event cpu-clock, whose periods are nanoseconds:
//
//	collbench    2004008
//		ffffffff81d335f7 read_zero ([kernel.kallsyms])
//		           f82ad read (/usr/lib/x86_64-linux-gnu/libc.so.6)
//
// The innermost function comes first; an empty line ends each sample. One without
// frames counts as time of its program, by name.
func Parse(r io.Reader) (*profile.Profile, error) {
	b := newBuilder()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		n++
		var err error
		switch line := lines.Text(); {
		case strings.TrimSpace(line) == "":
			b.end()
		case line[0] == '\t':
			err = b.frame(line)
		default:
			err = b.begin(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w: %w", n+1, ErrFormat, err)
	}
	b.end()
	return b.profile, b.profile.CheckValid()
}

// builder makes a profile of samples.
type builder struct {
	profile   *profile.Profile
	locations map[string]*profile.Location
	open      *profile.Sample
	program   string // of the open sample
}

func newBuilder() *builder {
	return &builder{
		profile: &profile.Profile{
			SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
			PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
			Period:     1_000_000_000 / frequency,
		},
		locations: map[string]*profile.Location{},
	}
}

// begin takes a sample's first line. The program's name may have spaces.
func (b *builder) begin(line string) error {
	b.end()
	fields := strings.Fields(line)
	period, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil || period < 0 || len(fields) < 2 {
		return fmt.Errorf("%w: want a program and a period, have %q", ErrFormat, line)
	}
	b.program = strings.Join(fields[:len(fields)-1], " ")
	b.open = &profile.Sample{Value: []int64{1, period}}
	return nil
}

// frame takes the line of one function.
func (b *builder) frame(line string) error {
	_, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
	at := strings.LastIndex(rest, " (")
	if b.open == nil || !ok || at < 1 || !strings.HasSuffix(rest, ")") {
		return fmt.Errorf("%w: want an address, a function and its file, have %q", ErrFormat, line)
	}
	name, file := rest[:at], rest[at+2:len(rest)-1]
	if strings.HasPrefix(file, "[") && file != "[unknown]" && file != "[vdso]" {
		name += KernelMark
	}
	b.open.Location = append(b.open.Location, b.location(name))
	return nil
}

// end finishes the open sample, if there is one.
func (b *builder) end() {
	if b.open == nil {
		return
	}
	if len(b.open.Location) == 0 {
		b.open.Location = append(b.open.Location, b.location(b.program))
	}
	b.profile.Sample = append(b.profile.Sample, b.open)
	b.open = nil
}

// location returns that of a function: addresses do not matter.
func (b *builder) location(name string) *profile.Location {
	l := b.locations[name]
	if l == nil {
		f := &profile.Function{ID: uint64(len(b.locations) + 1), Name: name}
		l = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
		b.locations[name] = l
		b.profile.Function = append(b.profile.Function, f)
		b.profile.Location = append(b.profile.Location, l)
	}
	return l
}
