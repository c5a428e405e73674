package topology

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/ground/document"
)

// object returns the fields of an object by name, and reports those that are
// unknown or there twice; nil where v is no object.
func (d *documentReader) object(v *document.Value, known ...string) map[string]*document.Value {
	if v.Kind != document.Object {
		d.fail(v, fmt.Errorf("must be an object with fields, not %s: %w", v.Kind, ErrField))
		return nil
	}
	fields := make(map[string]*document.Value, len(v.Items))
	for _, f := range v.Items {
		switch {
		case !slices.Contains(known, f.Key):
			d.fail(f, fmt.Errorf("%w; known here: %s", ErrUnknownField, strings.Join(known, ", ")))
		case fields[f.Key] != nil:
			d.fail(f, fmt.Errorf("the field is there twice: %w", ErrField))
		default:
			fields[f.Key] = f
		}
	}
	return fields
}

// each calls do for the items of a list; v may be nil.
func (d *documentReader) each(v *document.Value, do func(*document.Value)) {
	if v == nil {
		return
	}
	if v.Kind != document.List {
		d.fail(v, fmt.Errorf("must be a list, not %s: %w", v.Kind, ErrField))
		return
	}
	for _, item := range v.Items {
		do(item)
	}
}

// into reads a value that may be absent, and reports whether nothing was wrong.
func into[T any](v *document.Value, read func(*document.Value) (T, bool), to *T) bool {
	if v == nil {
		return true
	}
	x, ok := read(v)
	if ok {
		*to = x
	}
	return ok
}

// pair reads a list of two.
func pair[T any](d *documentReader, v *document.Value, what string, read func(*document.Value) (T, bool)) (both [2]T, ok bool) {
	if v.Kind != document.List || len(v.Items) != 2 {
		d.fail(v, fmt.Errorf("must be a list of two %s: %w", what, ErrField))
		return both, false
	}
	ok = true
	for i, item := range v.Items {
		var one bool
		both[i], one = read(item)
		ok = ok && one
	}
	return both, ok
}

// required returns a field of an object, v, and reports one that is missing; nil
// where there is none.
func (d *documentReader) required(v *document.Value, fields map[string]*document.Value, name string) *document.Value {
	if fields != nil && fields[name] == nil {
		d.fail(v, fmt.Errorf("%s is missing: %w", name, ErrField))
	}
	return fields[name]
}

// check reports an error of a value, if there is one.
func (d *documentReader) check(v *document.Value, err error) bool {
	if err != nil {
		d.fail(v, err)
	}
	return err == nil
}

func (d *documentReader) text(v *document.Value) (string, bool) {
	if v.Kind != document.String {
		hint := ""
		if v.Kind == document.Number || v.Kind == document.Bool {
			hint = " (put it in quotes)"
		}
		d.fail(v, fmt.Errorf("must be a string, not %s%s: %w", v.Kind, hint, ErrField))
		return "", false
	}
	return v.Text, true
}

func (d *documentReader) truth(v *document.Value) (is, ok bool) {
	if v.Kind != document.Bool {
		d.fail(v, fmt.Errorf("must be true or false, not %s: %w", v.Kind, ErrField))
		return false, false
	}
	is, err := strconv.ParseBool(v.Text)
	return is, d.check(v, err)
}

func (d *documentReader) integer(v *document.Value) (int64, bool) {
	if v.Kind != document.Number {
		d.fail(v, fmt.Errorf("must be a whole number, not %s: %w", v.Kind, ErrField))
		return 0, false
	}
	n, ok := wholeNumber(v.Text)
	if !ok {
		d.fail(v, fmt.Errorf("%s is not a whole number below 2^53: %w", v.Text, ErrField))
	}
	return n, ok
}

// within reads a whole number within bounds.
func (d *documentReader) within(v *document.Value, what string, least, most int64, outside error) (int, bool) {
	n, ok := d.integer(v)
	if ok && (n < least || n > most) {
		d.fail(v, fmt.Errorf("%s%d is not within %d and %d: %w", what, n, least, most, outside))
		return 0, false
	}
	return int(n), ok
}

// wholeNumber reads a number in any of the ways of YAML and JSON, up to where
// every reader of JSON has it exactly.
func wholeNumber(s string) (int64, bool) {
	const limit = 1 << 53
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return n, -limit < n && n < limit
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) >= limit {
		return 0, false
	}
	return int64(x), true
}

var bandwidthPattern = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([kMGT]?)(?:bit/s)?$`)

var bandwidthUnits = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}

// bandwidth reads bit/s as a number, or as a string such as 100G or
// 2.5 Gbit/s.
func (d *documentReader) bandwidth(v *document.Value) (int64, bool) {
	n, ok := int64(0), false
	switch v.Kind {
	case document.Number:
		if n, ok = d.integer(v); !ok {
			return 0, false
		}
	case document.String:
		if m := bandwidthPattern.FindStringSubmatch(v.Text); m != nil {
			x, err := strconv.ParseFloat(m[1], 64)
			bits := math.Round(x * bandwidthUnits[m[2]])
			n, ok = int64(min(bits, maxBandwidth+1)), err == nil
		}
	}
	if !ok {
		d.fail(v, fmt.Errorf("must be bit/s, as a whole number or like 100G: %w", ErrField))
		return 0, false
	}
	return n, d.check(v, LinkSpec{Bandwidth: n}.Validate())
}

var ratePattern = regexp.MustCompile(`^([0-9]{1,16}(?:\.[0-9]{1,9})?) ?([kMGT]?)$`)

// ParseRate reads a number of a Speed, such as 12G or 1500, or line-rate; 0 is NoSpeed.
func ParseRate(text string) (int64, error) {
	if text == lineRate {
		return LineRate, nil
	}
	m := ratePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not a number a second such as 1500 or 12G, or line-rate: %w", text, ErrSpeed)
	}
	x, err := strconv.ParseFloat(m[1], 64)
	n := math.Round(x * bandwidthUnits[m[2]])
	if err != nil || n > LineRate {
		return 0, fmt.Errorf("%s a second is not within 0 and %d: %w", text, int64(LineRate), ErrSpeed)
	}
	if n == 0 {
		return NoSpeed, nil
	}
	return int64(n), nil
}

// rate reads a number a second as a whole number, or as a string such as 12G.
func (d *documentReader) rate(v *document.Value) (n int64, ok bool) {
	text := v.Text
	if v.Kind == document.Number {
		if n, ok = d.integer(v); !ok {
			return 0, false
		}
		text = strconv.FormatInt(n, 10)
	} else if v.Kind != document.String {
		text = "" // of no other kind it can be
	}
	n, err := ParseRate(text)
	return n, d.check(v, err)
}

var latencyPattern = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,9})?(ns|us|ms|s)$`)

// latency reads a duration such as 500ns or 1.5us.
func (d *documentReader) latency(v *document.Value) (time.Duration, bool) {
	if v.Kind != document.String || !latencyPattern.MatchString(v.Text) {
		d.fail(v, fmt.Errorf("must be a duration such as 500ns or 1.5us: %w", ErrField))
		return 0, false
	}
	x, err := time.ParseDuration(v.Text)
	if err == nil {
		err = LinkSpec{Bandwidth: 1, Latency: x}.Validate()
	}
	if err != nil {
		d.fail(v, fmt.Errorf("%w: %w", ErrField, err))
		return 0, false
	}
	return x, true
}
