package importer

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Format is a kind of file that can be imported.
type Format string

// The formats.
const (
	IBNetDiscover Format = "ibnetdiscover" // what ibnetdiscover prints without -p or -l
	Slurm         Format = "slurm"         // topology.conf of topology/tree
	Containerlab  Format = "containerlab"  // *.clab.yml
	P4Tutorial    Format = "p4-tutorial"   // topology.json of p4lang/tutorials
	GML           Format = "gml"           // Graph Modelling Language
	GraphML       Format = "graphml"
)

// Formats returns all formats.
func Formats() []Format {
	return []Format{IBNetDiscover, Slurm, Containerlab, P4Tutorial, GML, GraphML}
}

// ErrFormat is wrapped by every error about a file that is not of the format
// that it should be of, or of none that is known.
var ErrFormat = errors.New("not of this format")

// ParseFormat returns the format of that name.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	return "", fmt.Errorf("format %q: none of %s: %w", name, join(Formats()), ErrFormat)
}

func join(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// detectBytes is how far into a file Detect looks.
const detectBytes = 1 << 20

var signs = []struct {
	format Format
	sign   *regexp.Regexp
}{
	{GraphML, regexp.MustCompile(`^\s*<(?s:.*?)<?graphml\b`)},
	{P4Tutorial, regexp.MustCompile(`^\s*\{(?s:.*)"(?:links|switches|hosts)"\s*:`)},
	{IBNetDiscover, regexp.MustCompile(`(?m)^(?:Switch|Ca|Rt)\s+\d+\s+"[SHR]-`)},
	{Slurm, regexp.MustCompile(`(?mi)^\s*SwitchName\s*=`)},
	{Containerlab, regexp.MustCompile(`(?m)^["']?topology["']?\s*:`)},
	{GML, regexp.MustCompile(`(?m)^\s*graph\s*(?:\[|$)`)},
}

// ownFormat matches files that need no import.
var ownFormat = regexp.MustCompile(`(?m)^version\s*:|\A\s*\{(?s:.*)"version"\s*:`)

// Detect returns the format of a file by its content.
func Detect(data []byte) (Format, error) {
	head := data[:min(len(data), detectBytes)]
	if len(bytes.TrimSpace(head)) == 0 {
		return "", fmt.Errorf("the file is empty: %w", ErrEmpty)
	}
	if ownFormat.Match(head) {
		return "", fmt.Errorf("detect the format: it is a fabric file already, and needs no import: %w", ErrFormat)
	}
	for _, s := range signs {
		if s.sign.Match(head) {
			return s.format, nil
		}
	}
	return "", fmt.Errorf("detect the format: it looks like none of %s; name it: %w", join(Formats()), ErrFormat)
}
