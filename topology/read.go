package topology

import (
	_ "embed" // the schema
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// FormatVersion is the version of the file format that this package reads and
// writes.
const FormatVersion = 1

//go:embed schema.json
var schema []byte

// Schema returns the JSON schema (draft 2020-12) of the file format, which
// docs/topology.md describes. What spans fields, such as the two nodes of a
// link being there, Read checks beyond it.
func Schema() []byte { return append([]byte(nil), schema...) }

// The errors of Read, beside ErrName, ErrLink, ErrCapability, ErrSpec and those
// of Builder.
var (
	ErrSyntax       = errors.New("neither YAML nor JSON")
	ErrUnknownField = errors.New("unknown field")
	ErrField        = errors.New("invalid field")
	ErrUnknownNode  = errors.New("unknown node")
)

// FileError is one thing wrong in a file.
type FileError struct {
	File  string
	Line  int    // from 1; 0 where it is not known
	Field string // from the top, such as links[3].between[1]; empty for the file
	Err   error  // wraps one of this package's sentinel errors
}

// Error returns "file:line: field: what is wrong", fit for a terminal whatever
// the file has in it.
func (e *FileError) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", place, printable.Text(e.Err.Error()))
	}
	return fmt.Sprintf("%s: %s: %s", place, e.Field, printable.Text(e.Err.Error()))
}

// Unwrap returns what is wrong.
func (e *FileError) Unwrap() error { return e.Err }

// maxFileErrors is the most errors that Read reports one file.
const maxFileErrors = 20

// ReadFile is Read for the file at path. An absent file is an fs.ErrNotExist
// that names it.
func ReadFile(path string) (*Graph, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, fmt.Errorf("read topology: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a fabric in the file format, in YAML or JSON. The name, usually
// the file's, begins every error. What is wrong in the file is reported all at once
// (up to 20 errors): *FileError joined, each with its line and field.
func Read(r io.Reader, name string) (*Graph, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read topology %s: %w", name, err)
	}
	top, syntax := document.Parse(data, document.Options{})
	if syntax != nil {
		return nil, &FileError{File: name, Line: syntax.Line, Err: fmt.Errorf("%w: %w", ErrSyntax, syntax)}
	}
	d := &documentReader{file: name, equipment: DefaultEquipment()}
	g := d.document(top)
	if len(d.errs) > 0 {
		if d.more > 0 {
			d.errs = append(d.errs, fmt.Errorf("%s: and %d more", name, d.more))
		}
		return nil, errors.Join(d.errs...)
	}
	return g, nil
}

// documentReader turns a document into a graph and gathers what is wrong.
type documentReader struct {
	file      string
	errs      []error
	more      int // errors beyond maxFileErrors
	equipment Equipment
	builder   Builder
	links     []*document.Value // by LinkID
}

func (d *documentReader) fail(v *document.Value, err error) {
	if len(d.errs) == maxFileErrors {
		d.more++
		return
	}
	d.errs = append(d.errs, &FileError{File: d.file, Line: v.Line, Field: v.Path(), Err: err})
}

func (d *documentReader) document(top *document.Value) *Graph {
	f := d.object(top, "version", "name", "defaults", "generator", "hosts", "switches", "links")
	if f == nil {
		return nil
	}
	if f["version"] == nil {
		d.fail(top, fmt.Errorf("version is missing: %w", ErrField))
	} else if n, ok := d.integer(f["version"]); ok && n != FormatVersion {
		d.fail(f["version"], fmt.Errorf("version %d of the format is not known: this program reads %d: %w", n, FormatVersion, ErrField))
	}
	if v := f["name"]; v != nil {
		d.fabricName(v)
	}
	if v := f["defaults"]; v != nil {
		if parts := d.object(v, "link", "switch"); parts != nil {
			d.linkSpec(parts["link"], &d.equipment.Link)
			d.capability(parts["switch"], &d.equipment.Switch)
		}
	}
	if f["generator"] != nil {
		return d.generate(f)
	}
	if f["hosts"] == nil && f["switches"] == nil {
		d.fail(top, fmt.Errorf("neither a generator nor hosts and switches: %w", ErrField))
	}
	d.each(f["hosts"], d.host)
	d.each(f["switches"], d.addSwitch)
	d.each(f["links"], d.link)
	return d.build()
}

func (d *documentReader) fabricName(v *document.Value) {
	name, ok := d.text(v)
	if !ok {
		return
	}
	if err := validFabric(name); err != nil {
		d.fail(v, err)
		return
	}
	d.builder.Fabric = name
}

func (d *documentReader) generate(f map[string]*document.Value) *Graph {
	for _, other := range []string{"hosts", "switches", "links"} {
		if f[other] != nil {
			d.fail(f[other], fmt.Errorf("not beside a generator, which makes all of them: %w", ErrField))
		}
	}
	spec, ok := d.text(f["generator"])
	if !ok || len(d.errs) > 0 {
		return nil
	}
	g, err := d.equipment.Parse(spec)
	if err != nil {
		d.fail(f["generator"], err)
		return nil
	}
	if d.builder.Fabric != "" {
		g.fabric = d.builder.Fabric
	}
	return g
}

// build makes the graph if nothing is wrong yet, and places its errors.
func (d *documentReader) build() *Graph {
	if len(d.errs) > 0 {
		return nil
	}
	g, err := d.builder.Build()
	if err == nil {
		return g
	}
	for _, e := range splitErrors(err) {
		var le *LinkError
		if !errors.As(e, &le) {
			d.errs = append(d.errs, &FileError{File: d.file, Err: e})
			continue
		}
		at := d.links[le.Link]
		if f := at.Field("ports"); f != nil && f.Kind == document.List {
			at = f.Items[le.End]
		}
		d.fail(at, le.Err)
	}
	return nil
}

// splitErrors returns the errors that were joined in err, or err alone.
func splitErrors(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

func (d *documentReader) host(v *document.Value) {
	name, ok := d.text(v)
	if !ok {
		return
	}
	if _, err := d.builder.AddHost(name); err != nil {
		d.fail(v, err)
	}
}

func (d *documentReader) addSwitch(v *document.Value) {
	f := d.object(v, append([]string{"name", "layer"}, capabilityFields...)...)
	if f == nil {
		return
	}
	if f["name"] == nil {
		d.fail(v, fmt.Errorf("name is missing: %w", ErrField))
		return
	}
	name, ok := d.text(f["name"])
	if !ok {
		return
	}
	c := d.equipment.Switch
	d.capabilityOf(f, &c)
	ref, err := d.builder.AddSwitch(name, c)
	if err != nil {
		d.fail(f["name"], err)
		return
	}
	if f["layer"] == nil {
		return
	}
	if layer, ok := d.integer(f["layer"]); ok {
		if err := d.builder.SetLayer(ref, int(min(layer, MaxLayer+1))); err != nil {
			d.fail(f["layer"], err)
		}
	}
}

func (d *documentReader) link(v *document.Value) {
	f := d.object(v, "between", "ports", "addresses", "bandwidth", "latency")
	if f == nil {
		return
	}
	if f["between"] == nil {
		d.fail(v, fmt.Errorf("between is missing: %w", ErrField))
		return
	}
	spec := d.equipment.Link
	d.linkSpecOf(f, &spec)
	ports, ok := d.ports(f["ports"])
	addresses, ok2 := d.addressPair(f["addresses"])
	ends, ok3 := d.between(f["between"])
	if !ok || !ok2 || !ok3 || len(d.errs) > 0 {
		return
	}
	l, err := d.builder.Connect(ends[0], ports[0], ends[1], ports[1], spec)
	if err != nil {
		d.fail(v, err)
		return
	}
	d.setAddresses(l, addresses)
	d.links = append(d.links, v)
}

func (d *documentReader) between(v *document.Value) (ends [2]Ref, ok bool) {
	if v.Kind != document.List || len(v.Items) != 2 {
		d.fail(v, fmt.Errorf("must be a list of two nodes' names: %w", ErrField))
		return ends, false
	}
	ok = true
	for i, item := range v.Items {
		name, isText := d.text(item)
		if !isText {
			ok = false
			continue
		}
		ref, found := d.builder.Find(name)
		if !found {
			d.fail(item, fmt.Errorf("no host or switch is called %q: %w", name, ErrUnknownNode))
			ok = false
		}
		ends[i] = ref
	}
	return ends, ok
}

func (d *documentReader) ports(v *document.Value) (ports [2]Port, ok bool) {
	if v == nil {
		return ports, true
	}
	if v.Kind != document.List || len(v.Items) != 2 {
		d.fail(v, fmt.Errorf("must be a list of two ports: %w", ErrField))
		return ports, false
	}
	ok = true
	for i, item := range v.Items {
		n, isNumber := d.integer(item)
		if isNumber && (n < 1 || n > MaxPort) {
			d.fail(item, fmt.Errorf("port %d is not within 1 and %d: %w", n, MaxPort, ErrField))
		}
		ok = ok && isNumber && n >= 1 && n <= MaxPort
		ports[i] = Port(n)
	}
	return ports, ok
}
