package topology

import (
	_ "embed" // the schema
	"errors"
	"fmt"
	"io"
	"net/netip"
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
	d.version(d.required(top, f, "version"))
	into(f["name"], d.fabricName, &d.builder.Fabric)
	d.defaults(f["defaults"])
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

// version reports a version of the format that is not known; v may be nil.
func (d *documentReader) version(v *document.Value) {
	if v == nil {
		return
	}
	if n, ok := d.integer(v); ok && n != FormatVersion {
		d.fail(v, fmt.Errorf("version %d of the format is not known: this program reads %d: %w", n, FormatVersion, ErrField))
	}
}

// defaults reads what links, hosts and switches are that say nothing else; v may be nil.
func (d *documentReader) defaults(v *document.Value) {
	if v == nil {
		return
	}
	parts := d.object(v, "link", "host", "switch")
	if v := parts["link"]; v != nil {
		d.linkSpec(d.object(v, "bandwidth", "latency"), &d.equipment.Link)
	}
	if v := parts["host"]; v != nil {
		into(d.object(v, "speed")["speed"], d.speed, &d.equipment.Host)
	}
	if v := parts["switch"]; v != nil {
		d.capability(d.object(v, capabilityFields...), &d.equipment.Switch)
	}
}

func (d *documentReader) fabricName(v *document.Value) (string, bool) {
	name, ok := d.text(v)
	return name, ok && d.check(v, validFabric(name))
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
	if d.check(f["generator"], err) && d.builder.Fabric != "" {
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

var (
	switchFields = append([]string{"name", "layer"}, capabilityFields...)
	linkFields   = []string{"between", "ports", "addresses", "bandwidth", "latency"}
)

// hostFields reads a host: its name, which is text, its speed, and whether that is
// given; nil: something is wrong.
func (d *documentReader) hostFields(v *document.Value) (named *document.Value, speed Speed, given bool) {
	named, speed = v, d.equipment.Host
	if v.Kind == document.Object {
		f := d.object(v, "name", "speed")
		if named = d.required(v, f, "name"); named == nil || !into(f["speed"], d.speed, &speed) {
			return nil, speed, false
		}
		given = f["speed"] != nil
	}
	if _, ok := d.text(named); !ok {
		return nil, speed, false
	}
	return named, speed, given
}

func (d *documentReader) host(v *document.Value) {
	named, speed, _ := d.hostFields(v)
	if named == nil {
		return
	}
	ref, err := d.builder.AddHost(named.Text)
	if d.check(named, err) && speed.Known() {
		d.check(v, d.builder.SetSpeed(ref, speed))
	}
}

func (d *documentReader) addSwitch(v *document.Value) {
	f := d.object(v, switchFields...)
	named := d.required(v, f, "name")
	if named == nil {
		return
	}
	name, ok := d.text(named)
	if !ok {
		return
	}
	c := d.equipment.Switch
	d.capability(f, &c)
	ref, err := d.builder.AddSwitch(name, c)
	if !d.check(named, err) || f["layer"] == nil {
		return
	}
	if layer, ok := d.integer(f["layer"]); ok {
		d.check(f["layer"], d.builder.SetLayer(ref, int(min(layer, MaxLayer+1))))
	}
}

func (d *documentReader) link(v *document.Value) {
	f := d.object(v, linkFields...)
	between := d.required(v, f, "between")
	if between == nil {
		return
	}
	spec := d.equipment.Link
	d.linkSpec(f, &spec)
	var ports [2]Port
	var addresses [2]netip.Addr
	ok := into(f["ports"], d.ports, &ports)
	ok = into(f["addresses"], d.addresses, &addresses) && ok
	ends, found := pair(d, between, "nodes' names", d.node)
	if !ok || !found || len(d.errs) > 0 {
		return
	}
	l, err := d.builder.Connect(ends[0], ports[0], ends[1], ports[1], spec)
	if !d.check(v, err) {
		return
	}
	if f["addresses"] != nil {
		d.setAddresses(l, f["addresses"], addresses)
	}
	d.links = append(d.links, v)
}

// node finds a host or switch by name.
func (d *documentReader) node(v *document.Value) (Ref, bool) {
	name, ok := d.text(v)
	if !ok {
		return 0, false
	}
	ref, found := d.builder.Find(name)
	if !found {
		d.fail(v, fmt.Errorf("no host or switch is called %q: %w", name, ErrUnknownNode))
	}
	return ref, found
}

func (d *documentReader) ports(v *document.Value) ([2]Port, bool) {
	return pair(d, v, "ports", func(v *document.Value) (Port, bool) {
		n, ok := d.within(v, "port ", 1, MaxPort, ErrField)
		return Port(n), ok
	})
}

func (d *documentReader) addresses(v *document.Value) ([2]netip.Addr, bool) {
	return pair(d, v, "IP addresses", func(v *document.Value) (netip.Addr, bool) {
		text, ok := d.text(v)
		if !ok {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			d.fail(v, fmt.Errorf("%q is no IP address: %w", text, ErrAddress))
		}
		return a, err == nil
	})
}

// setAddresses gives a link what the file says of its addresses.
func (d *documentReader) setAddresses(l LinkID, v *document.Value, pair [2]netip.Addr) {
	err := d.builder.SetAddresses(l, pair[0], pair[1])
	var at *LinkError
	if errors.As(err, &at) {
		d.fail(v.Items[at.End], at.Err)
		return
	}
	d.check(v, err)
}
