package settings

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/topology"
)

// FormatVersion is the version of the file formats that this package reads.
const FormatVersion = 1

// maxErrors is the most errors that are reported of one file.
const maxErrors = 20

// field is a value in a document that knows its place; nil: it is not there.
type field = *document.Value

// reader is a file as it is read, and what is wrong in it.
type reader struct {
	file string
	errs []error
	more int // errors beyond maxErrors
}

func (d *reader) fail(f field, err error) {
	at := &topology.FileError{File: d.file, Err: err}
	if f != nil {
		at.Line, at.Field = f.Line, f.Path()
	}
	d.add(at)
}

func (d *reader) failf(f field, format string, args ...any) {
	d.fail(f, fmt.Errorf(format+": %w", append(args, topology.ErrField)...))
}

func (d *reader) add(err error) {
	if len(d.errs) == maxErrors {
		d.more++
		return
	}
	d.errs = append(d.errs, err)
}

// err returns what is wrong, joined; nil if nothing is.
func (d *reader) err() error {
	if d.more > 0 {
		return errors.Join(append(d.errs, fmt.Errorf("%s: and %d more", d.file, d.more))...)
	}
	return errors.Join(d.errs...)
}

// open parses a file's text.
func (d *reader) open(r io.Reader) (top field, ok bool) {
	data, err := io.ReadAll(r)
	if err != nil {
		d.add(fmt.Errorf("read %s: %w", d.file, err))
		return nil, false
	}
	top, syntax := document.Parse(data, document.Options{YAML: true})
	if syntax != nil {
		d.add(&topology.FileError{File: d.file, Line: syntax.Line, Err: fmt.Errorf("%w: %w", topology.ErrSyntax, syntax)})
		return nil, false
	}
	return top, true
}

// items returns the fields of an object in their order; nil where f is none.
func (d *reader) items(f field) []field {
	if f.Kind != document.Object {
		d.failf(f, "must be an object with fields, not %s", f.Kind)
		return nil
	}
	var all []field
	seen := map[string]bool{}
	for _, item := range f.Items {
		if seen[item.Key] {
			d.failf(item, "the field is there twice")
			continue
		}
		seen[item.Key] = true
		all = append(all, item)
	}
	return all
}

// object calls what known has for each field of an object, and refuses others. Of more
// names, those with a "!" must be there, which is reported of the whole file, and of
// what is otherwise right; the others are read last, in this order.
func (d *reader) object(f field, known map[string]func(field), more ...string) {
	before, there := len(d.errs), map[string]field{}
	for _, i := range d.items(f) {
		there[i.Key] = i
		if read := known[i.Key]; read == nil {
			d.fail(i, fmt.Errorf("%w; known here: %s", topology.ErrUnknownField, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		} else if !slices.Contains(more, i.Key) {
			read(i)
		}
	}
	wrong := len(d.errs) > before && f.Path() != ""
	for _, name := range more {
		name, needed := strings.CutSuffix(name, "!")
		switch i := there[name]; {
		case needed && i == nil && !wrong:
			d.failf(f, "%s is missing", name)
		case !needed && i != nil:
			known[name](i)
		}
	}
}

// whole is object, and reports what lack says of it, if nothing else is wrong with
// it; empty: nothing.
func (d *reader) whole(f field, known map[string]func(field), lack func() string, last ...string) {
	before := len(d.errs)
	d.object(f, known, last...)
	if len(d.errs) > before {
		return
	}
	if why := lack(); why != "" {
		d.failf(f, "%s", why)
	}
}

// version checks the field of that name.
func (d *reader) version(f field) {
	if n, ok := d.integer(f, 0, 1<<30); ok && n != FormatVersion {
		d.failf(f, "version %d of the format is not known: this program reads %d", n, FormatVersion)
	}
}

// text reads a string that is not empty.
func (d *reader) text(f field) (string, bool) {
	if f.Kind != document.String {
		hint := ""
		if f.Kind == document.Number || f.Kind == document.Bool {
			hint = " (put it in quotes)"
		}
		d.failf(f, "must be a string, not %s%s", f.Kind, hint)
		return "", false
	}
	if f.Text == "" {
		d.failf(f, "must not be empty")
		return "", false
	}
	return f.Text, true
}

// into returns a reader of a string.
func (d *reader) into(to *string) func(field) {
	return func(f field) { *to, _ = d.text(f) }
}

// filePath returns a reader of a path.
func (d *reader) filePath(to *string) func(field) {
	return parsed(d, to, func(text string) (string, error) { return d.resolve(text), nil })
}

// resolve returns a path in the file as the process sees it.
func (d *reader) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(d.file), path)
}

// parsed returns a reader of what parse makes of a string that is not empty.
func parsed[T any](d *reader, to *T, parse func(string) (T, error)) func(field) {
	return func(f field) {
		text, ok := d.text(f)
		if !ok {
			return
		}
		x, err := parse(text)
		if err != nil {
			d.fail(f, fmt.Errorf("%w: %w", err, topology.ErrField))
			return
		}
		*to = x
	}
}

// address returns a reader of a "host:port".
func (d *reader) address(to *string) func(field) {
	return parsed(d, to, func(text string) (string, error) { return text, CheckAddress(text) })
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

func (d *reader) boolean(to *bool) func(field) {
	return func(f field) {
		x, err := strconv.ParseBool(f.Text)
		if f.Kind != document.Bool || err != nil {
			d.failf(f, "must be true or false, not %s", f.Kind)
			return
		}
		*to = x
	}
}

// integer reads a whole number within bounds.
func (d *reader) integer(f field, least, most int64) (int64, bool) {
	n, err := strconv.ParseInt(f.Text, 0, 64)
	if f.Kind != document.Number || err != nil {
		d.failf(f, "must be a whole number, not %s %s", f.Kind, f.Text)
		return 0, false
	}
	if n < least || n > most {
		d.failf(f, "%d is not within %d and %d", n, least, most)
		return 0, false
	}
	return n, true
}

// count returns a reader of a whole number within bounds.
func count[T int | int64 | uint16 | uint32 | uint64](d *reader, to *T, least, most int64) func(field) {
	return func(f field) {
		if n, ok := d.integer(f, least, most); ok {
			*to = T(n)
		}
	}
}

// period returns a reader of a duration above zero.
func (d *reader) period(to *time.Duration) func(field) {
	return parsed(d, to, func(text string) (time.Duration, error) {
		x, err := time.ParseDuration(text)
		if err != nil || x <= 0 {
			err = fmt.Errorf("%q is not a duration above zero, such as 500ms or 15m", text)
		}
		return x, err
	})
}

// periodOrOff is period with one word more, off, for a negative duration.
func (d *reader) periodOrOff(to *time.Duration) func(field) {
	return func(f field) {
		if f.Text == "off" {
			*to = -1
			return
		}
		d.period(to)(f)
	}
}

// oneOf returns a reader of one of these words.
func (d *reader) oneOf(to *string, words ...string) func(field) {
	return parsed(d, to, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("%q is not one of %s", text, strings.Join(words, ", "))
		}
		return text, nil
	})
}

// read reads a file's fields into what has the defaults of those that are not there.
func read[T any](r io.Reader, name string, into *T, fields func(*reader, field, *T)) (*T, error) {
	d := &reader{file: name}
	if top, ok := d.open(r); ok {
		fields(d, top, into)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return into, nil
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
