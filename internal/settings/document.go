package settings

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tributary-fabric/tributary/topology"
)

// FormatVersion is the version of the file formats that this package reads.
const FormatVersion = 1

// maxErrors is the most errors that are notified of one file.
const maxErrors = 20

// field is a value in a document that knows its place.
type field struct {
	node *yaml.Node
	line int
	path string // from the top, such as agents.leaf-0
}

// document is a file as it is read, and what is wrong in it.
type document struct {
	file string
	errs []error
	more int // errors beyond maxErrors
}

func (d *document) fail(f field, err error) {
	d.add(&topology.FileError{File: d.file, Line: f.line, Field: f.path, Err: err})
}

func (d *document) failf(f field, format string, args ...any) {
	d.fail(f, fmt.Errorf(format+": %w", append(args, topology.ErrField)...))
}

func (d *document) add(err error) {
	if len(d.errs) == maxErrors {
		d.more++
		return
	}
	d.errs = append(d.errs, err)
}

// err returns what is wrong, joined; nil if nothing is.
func (d *document) err() error {
	if d.more > 0 {
		return errors.Join(append(d.errs, fmt.Errorf("%s: and %d more", d.file, d.more))...)
	}
	return errors.Join(d.errs...)
}

// open parses a file's text.
func (d *document) open(r io.Reader) (top field, ok bool) {
	var node, second yaml.Node
	decoder := yaml.NewDecoder(r)
	err := decoder.Decode(&node)
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("the file is empty")
	case err == nil:
		if more := decoder.Decode(&second); more == nil {
			err = fmt.Errorf("line %d: a second document begins here", second.Line)
		} else if !errors.Is(more, io.EOF) {
			err = more
		}
	}
	if err != nil {
		line, text := 0, strings.TrimPrefix(err.Error(), "yaml: ")
		if n, _ := fmt.Sscanf(text, "line %d:", &line); n == 1 {
			_, text, _ = strings.Cut(text, ": ")
		}
		d.fail(field{line: line}, fmt.Errorf("%w: %s", topology.ErrSyntax, text))
		return top, false
	}
	return field{node: node.Content[0], line: node.Content[0].Line}, true
}

// item is a field of an object.
type item struct {
	field
	name string
}

// items returns the fields of an object in their order; nil where f is none.
func (d *document) items(f field) []item {
	if f.node.Kind != yaml.MappingNode {
		d.failf(f, "must be an object with fields, not %s", kindOf(f.node))
		return nil
	}
	var all []item
	seen := map[string]bool{}
	for i := 0; i+1 < len(f.node.Content); i += 2 {
		key := f.node.Content[i]
		at := field{node: f.node.Content[i+1], line: key.Line, path: key.Value}
		if f.path != "" {
			at.path = f.path + "." + key.Value
		}
		if key.Kind != yaml.ScalarNode {
			d.failf(f, "a field's name must be a string")
		} else if seen[key.Value] {
			d.failf(at, "the field is there twice")
		} else {
			all = append(all, item{at, key.Value})
		}
		seen[key.Value] = true
	}
	return all
}

// object calls what known has for each field of an object, and refuses others.
func (d *document) object(f field, known map[string]func(field)) {
	for _, i := range d.items(f) {
		if read := known[i.name]; read != nil {
			read(i.field)
			continue
		}
		var names []string
		for name := range known {
			names = append(names, name)
		}
		slices.Sort(names)
		d.fail(i.field, fmt.Errorf("%w; known here: %s", topology.ErrUnknownField, strings.Join(names, ", ")))
	}
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*name)"
	default: // a scalar
		return kindOfScalar(n)
	}
}

func kindOfScalar(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	}
	return "a string"
}

// version checks the field of that name.
func (d *document) version(f field) {
	if n, ok := d.integer(f, 0, 1<<30); ok && n != FormatVersion {
		d.failf(f, "version %d of the format is not known: this program reads %d", n, FormatVersion)
	}
}

// text reads a string that is not empty.
func (d *document) text(f field) (string, bool) {
	if kind := kindOf(f.node); kind != "a string" {
		hint := ""
		if kind == "a number" || kind == "true or false" {
			hint = " (put it in quotes)"
		}
		d.failf(f, "must be a string, not %s%s", kind, hint)
		return "", false
	}
	if f.node.Value == "" {
		d.failf(f, "must not be empty")
		return "", false
	}
	return f.node.Value, true
}

// into returns a reader of a string.
func (d *document) into(to *string) func(field) {
	return func(f field) { *to, _ = d.text(f) }
}

// filePath returns a reader of a path.
func (d *document) filePath(to *string) func(field) {
	return func(f field) {
		if text, ok := d.text(f); ok {
			*to = d.resolve(text)
		}
	}
}

// resolve returns a path in the file as the process sees it.
func (d *document) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(d.file), path)
}

// address returns a reader of a "host:port".
func (d *document) address(to *string) func(field) {
	return func(f field) {
		text, ok := d.text(f)
		if !ok {
			return
		}
		if err := CheckAddress(text); err != nil {
			d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
			return
		}
		*to = text
	}
}

// CheckAddress reports what is wrong with a "host:port".
func CheckAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not of the form host:port", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q has no port from 0 to 65535", text)
	}
	return nil
}

func (d *document) boolean(to *bool) func(field) {
	return func(f field) {
		if kindOf(f.node) != "true or false" || f.node.Decode(to) != nil {
			d.failf(f, "must be true or false, not %s", kindOf(f.node))
		}
	}
}

// integer reads a whole number within bounds.
func (d *document) integer(f field, least, most int64) (int64, bool) {
	n, err := strconv.ParseInt(f.node.Value, 0, 64)
	if kindOf(f.node) != "a number" || err != nil {
		d.failf(f, "must be a whole number, not %s %s", kindOf(f.node), f.node.Value)
		return 0, false
	}
	if n < least || n > most {
		d.failf(f, "%d is not within %d and %d", n, least, most)
		return 0, false
	}
	return n, true
}

// count returns a reader of a whole number within bounds.
func count[T int | uint32](d *document, to *T, least, most int64) func(field) {
	return func(f field) {
		if n, ok := d.integer(f, least, most); ok {
			*to = T(n)
		}
	}
}

// period returns a reader of a duration above zero.
func (d *document) period(to *time.Duration) func(field) {
	return func(f field) {
		text, ok := d.text(f)
		if !ok {
			return
		}
		x, err := time.ParseDuration(text)
		if err != nil || x <= 0 {
			d.failf(f, "%q is not a duration above zero, such as 500ms or 15m", text)
			return
		}
		*to = x
	}
}

// periodOrOff is period with one word more, off, for a negative duration.
func (d *document) periodOrOff(to *time.Duration) func(field) {
	return func(f field) {
		if f.node.Value == "off" {
			*to = -1
			return
		}
		d.period(to)(f)
	}
}

// oneOf returns a reader of one of these words.
func (d *document) oneOf(to *string, words ...string) func(field) {
	return func(f field) {
		text, ok := d.text(f)
		if ok && !slices.Contains(words, text) {
			d.failf(f, "%q is not one of %s", text, strings.Join(words, ", "))
		} else if ok {
			*to = text
		}
	}
}

// readFile opens a file for read.
func readFile[T any](path string, read func(io.Reader, string) (T, error)) (none T, err error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return none, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return none, fmt.Errorf("configuration: %s is a directory, and a file is wanted", path)
	}
	return read(f, path)
}
