package importer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
)

// The errors of Import, beside ErrFormat and those of package topology.
var (
	ErrEmpty     = errors.New("there is nothing to import")
	ErrSyntax    = errors.New("the file cannot be read")
	ErrReference = errors.New("something that the file names is not there")
	ErrCycle     = errors.New("a switch stands below itself")
	ErrDuplicate = errors.New("two things have the same name")
	ErrValue     = errors.New("a value out of range")
	ErrTooLarge  = errors.New("too large to import")
	ErrConfig    = errors.New("invalid import settings")
)

// Limits of what is imported.
const (
	MaxBytes    = 512 << 20 // of a file
	MaxLine     = 1 << 20   // bytes of one line of the formats that go by lines
	MaxNodes    = 1 << 23
	MaxAttached = 1 << 16 // hosts on each switch by Config.HostsPerSwitch

	// maxDocument is the most bytes of a file in YAML, JSON or XML, which takes
	// many times its size in memory.
	maxDocument = 64 << 20
)

// Config says what a file does not.
type Config struct {
	// Fabric is the fabric's name; empty: the one in the file, or else none.
	Fabric string
	// Equipment is the link and the switch of which the file says nothing else.
	Equipment topology.Equipment
	// HostsPerSwitch is how many hosts each switch gets that can reduce, if the
	// file has no host at all, from 0 to MaxAttached.
	HostsPerSwitch int
	// Nodes whose names Hosts or Switches matches are hosts or switches,
	// whatever the file says; nil matches none. Hosts counts first.
	Hosts, Switches *regexp.Regexp
}

// DefaultConfig returns the equipment of a fabric of which nothing else is said,
// and one host a switch.
func DefaultConfig() Config {
	return Config{Equipment: topology.DefaultEquipment(), HostsPerSwitch: 1}
}

// Validate reports what is out of range in c.
func (c Config) Validate() error {
	if c.HostsPerSwitch < 0 || c.HostsPerSwitch > MaxAttached {
		return fmt.Errorf("%d hosts on each switch are not within 0 and %d: %w", c.HostsPerSwitch, MaxAttached, ErrConfig)
	}
	if err := c.Equipment.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

var readers = map[Format]func(d *draft, data []byte){
	IBNetDiscover: readIBNetDiscover,
	Slurm:         readSlurm,
	Containerlab:  readContainerlab,
	P4Tutorial:    readTutorial,
	GML:           readGML,
	GraphML:       readGraphML,
}

// Import reads a fabric in a format; the empty format is what Detect finds. The
// name, usually the file's, begins every error. What is wrong is reported all at
// once (up to 20 errors): *topology.FileError joined, each with its line. With
// an error there is neither graph nor report.
func Import(r io.Reader, name string, f Format, c Config) (*topology.Graph, *Report, error) {
	if err := c.Validate(); err != nil {
		return nil, nil, fmt.Errorf("import %s: %w", name, err)
	}
	data, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("import %s: %w", name, err)
	}
	if err := check(data, &f); err != nil {
		return nil, nil, &topology.FileError{File: name, Err: err}
	}
	d := newDraft(name, f, c)
	readers[f](d, data)
	g := d.build()
	if err := d.failed(); err != nil {
		return nil, nil, err
	}
	return g, &d.report, nil
}

// check refuses what is not of the format, or too large; an empty format becomes
// the one found.
func check(data []byte, f *Format) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("more than %d MiB: %w", MaxBytes>>20, ErrTooLarge)
	}
	found, err := Detect(data)
	switch {
	case *f == "" && err != nil:
		return err
	case *f == "":
		*f = found
	case readers[*f] == nil:
		_, err := ParseFormat(string(*f))
		return err
	case errors.Is(err, ErrEmpty):
		return err
	case err == nil && found != *f:
		return fmt.Errorf("it looks like %s and not like %s: %w", found, *f, ErrFormat)
	}
	if *f != IBNetDiscover && *f != Slurm && len(data) > maxDocument {
		return fmt.Errorf("more than %d MiB of %s: %w", maxDocument>>20, *f, ErrTooLarge)
	}
	return nil
}

// ImportFile is Import for the file at path. An absent file is an fs.ErrNotExist
// that names it.
func ImportFile(path string, f Format, c Config) (*topology.Graph, *Report, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, nil, fmt.Errorf("import topology: %w", err)
	}
	defer file.Close()
	return Import(file, path, f, c)
}

// Open returns the fabric of a command's argument: a format, a colon and the
// path of a file to import as DefaultConfig says, such as
// slurm:/etc/slurm/topology.conf; or else what topology.Open takes. The report
// is nil where nothing was imported.
func Open(argument string) (*topology.Graph, *Report, error) {
	name, path, ok := strings.Cut(argument, ":")
	if f, err := ParseFormat(name); ok && err == nil {
		return ImportFile(path, f, DefaultConfig())
	}
	g, err := topology.Open(argument)
	return g, nil, err
}

// lines calls f for every line with its number, without its end; it stops at a
// line that is too long.
func (d *draft) lines(data []byte, f func(number int, line string)) {
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		if len(line) > MaxLine {
			d.fail(number, fmt.Errorf("a line of %d bytes, more than %d: break it into several: %w", len(line), MaxLine, ErrTooLarge))
			return
		}
		f(number, strings.TrimRight(string(line), "\r"))
		data = rest
	}
}
