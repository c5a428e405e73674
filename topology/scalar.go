package topology

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// object returns the fields of an object by name, and tells those that are
// unknown or there twice; nil where v is no object.
func (d *documentReader) object(v *value, known ...string) map[string]*value {
	if v.kind != objectValue {
		d.fail(v, fmt.Errorf("must be an object with fields, not %s: %w", v.kind, ErrField))
		return nil
	}
	fields := make(map[string]*value, len(v.items))
	for _, f := range v.items {
		switch {
		case !slices.Contains(known, f.key):
			d.fail(f, fmt.Errorf("%w; known here: %s", ErrUnknownField, strings.Join(known, ", ")))
		case fields[f.key] != nil:
			d.fail(f, fmt.Errorf("the field is there twice: %w", ErrField))
		default:
			fields[f.key] = f
		}
	}
	return fields
}

// each calls do for the items of a list; v may be nil.
func (d *documentReader) each(v *value, do func(*value)) {
	if v == nil {
		return
	}
	if v.kind != listValue {
		d.fail(v, fmt.Errorf("must be a list, not %s: %w", v.kind, ErrField))
		return
	}
	for _, item := range v.items {
		do(item)
	}
}

// find returns the field of that name in an object, or nil.
func find(v *value, field string) *value {
	for _, f := range v.items {
		if f.key == field {
			return f
		}
	}
	return nil
}

func (d *documentReader) text(v *value) (string, bool) {
	if v.kind != stringValue {
		hint := ""
		if v.kind == numberValue || v.kind == boolValue {
			hint = " (put it in quotes)"
		}
		d.fail(v, fmt.Errorf("must be a string, not %s%s: %w", v.kind, hint, ErrField))
		return "", false
	}
	return v.text, true
}

func (d *documentReader) integer(v *value) (int64, bool) {
	if v.kind != numberValue {
		d.fail(v, fmt.Errorf("must be a whole number, not %s: %w", v.kind, ErrField))
		return 0, false
	}
	n, ok := wholeNumber(v.text)
	if !ok {
		d.fail(v, fmt.Errorf("%s is not a whole number below 2^53: %w", v.text, ErrField))
	}
	return n, ok
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
func (d *documentReader) bandwidth(v *value) (int64, bool) {
	n, ok := int64(0), false
	switch v.kind {
	case numberValue:
		if n, ok = d.integer(v); !ok {
			return 0, false
		}
	case stringValue:
		if m := bandwidthPattern.FindStringSubmatch(v.text); m != nil {
			x, err := strconv.ParseFloat(m[1], 64)
			bits := math.Round(x * bandwidthUnits[m[2]])
			n, ok = int64(min(bits, maxBandwidth+1)), err == nil
		}
	}
	if !ok {
		d.fail(v, fmt.Errorf("must be bit/s, as a whole number or like 100G: %w", ErrField))
		return 0, false
	}
	if err := (LinkSpec{Bandwidth: n}).Validate(); err != nil {
		d.fail(v, err)
		return 0, false
	}
	return n, true
}

var latencyPattern = regexp.MustCompile(`^[0-9]{1,12}(\.[0-9]{1,9})?(ns|us|ms|s)$`)

// latency reads a duration such as 500ns or 1.5us.
func (d *documentReader) latency(v *value) (time.Duration, bool) {
	if v.kind != stringValue || !latencyPattern.MatchString(v.text) {
		d.fail(v, fmt.Errorf("must be a duration such as 500ns or 1.5us: %w", ErrField))
		return 0, false
	}
	x, err := time.ParseDuration(v.text)
	if err == nil {
		err = LinkSpec{Bandwidth: 1, Latency: x}.Validate()
	}
	if err != nil {
		d.fail(v, fmt.Errorf("%w: %w", ErrField, err))
		return 0, false
	}
	return x, true
}
