package gap

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/planning/steiner"
)

// The format of SteinLib, .stp: T. Koch, A. Martin, S. Voß, SteinLib: an updated
// library on Steiner tree problems in graphs, 2001. Of a file the sections Graph and
// Terminals are taken: Nodes, Edges, E and A lines, Terminals and T lines. Directed
// arcs and the variants of the problem that have prizes, degrees or groups are
// refused.

// errFormat says that a file is not a Steiner problem in graphs as it is read here.
// Errors that wrap it name the line.
var errFormat = errors.New("malformed .stp file")

// magic begins the first line of every file.
const magic = "33d32945 stp file"

// Limits of what readSTP takes: the library's largest problems are far smaller.
const (
	maxNodes = 1 << 22
	maxLine  = 1 << 16 // bytes
)

// instance is a problem with the name that its file gives it.
type instance struct {
	name    string
	problem steiner.Problem
}

// readSTP reads one file. The nodes, which the format numbers from 1, are numbered
// from 0, the edges in the order of their lines. The error wraps errFormat, or
// is that of r.
func readSTP(r io.Reader) (*instance, error) {
	d := &decoder{nodes: -1, edges: -1, terms: -1}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		d.line++
		if err := d.read(strings.TrimSpace(lines.Text())); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", errFormat, d.line, err)
		}
		if d.ended {
			break
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: line %d is longer than %d bytes", errFormat, d.line+1, maxLine)
	case err != nil:
		return nil, err
	}
	return d.problem()
}

// decoder holds what the lines so far said. Counts are -1 until they are given.
type decoder struct {
	line    int
	section string // in lower case; "" between sections
	ended   bool
	name    string

	nodes, edges, terms int
	ends                [][2]int32
	cost                []float64
	terminals           []int32
}

func (d *decoder) read(text string) error {
	if d.line == 1 {
		if !strings.HasPrefix(strings.ToLower(text), magic) {
			return errors.New("it does not begin with 33D32945 STP File")
		}
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) == 0 || strings.HasPrefix(text, "#") {
		return nil
	}
	word := strings.ToLower(fields[0])
	switch {
	case d.section == "" && word == "section" && len(fields) > 1:
		d.section = strings.ToLower(fields[1])
		return nil
	case d.section == "" && word == "eof":
		d.ended = true
		return nil
	case d.section == "":
		return fmt.Errorf("%q stands outside of a section", fields[0])
	case word == "end":
		d.section = ""
		return nil
	}
	switch d.section {
	case "comment":
		if word == "name" {
			d.name = strings.Trim(strings.TrimSpace(text[len(fields[0]):]), `"`)
		}
	case "graph":
		return d.graph(word, fields[1:])
	case "terminals":
		return d.terminal(word, fields[1:])
	case "coordinates", "presolve":
	default:
		// A section that changes what a tree may be must not be passed over.
		return fmt.Errorf("section %s is not known", d.section)
	}
	return nil
}

func (d *decoder) graph(word string, args []string) (err error) {
	switch word {
	case "obstacles":
		return nil
	case "nodes":
		d.nodes, err = count(args, d.nodes, maxNodes)
		return err
	case "edges":
		d.edges, err = count(args, d.edges, 1<<30)
		return err
	case "e":
		return d.edge(args)
	}
	return fmt.Errorf("%q is not part of an undirected graph", word)
}

func (d *decoder) edge(args []string) error {
	if len(args) != 3 {
		return errors.New("an edge has two nodes and a cost")
	}
	var ends [2]int32
	for i := range ends {
		var err error
		if ends[i], err = d.node(args[i]); err != nil {
			return err
		}
	}
	cost, err := strconv.ParseFloat(args[2], 64)
	if err != nil || !(cost >= 0) || cost > 1e300 {
		return fmt.Errorf("%q is no cost", args[2])
	}
	if ends[0] == ends[1] {
		return fmt.Errorf("an edge from node %s to itself", args[0])
	}
	d.ends = append(d.ends, ends)
	d.cost = append(d.cost, cost)
	return nil
}

func (d *decoder) terminal(word string, args []string) (err error) {
	switch word {
	case "terminals":
		d.terms, err = count(args, d.terms, maxNodes)
		return err
	case "t":
		if len(args) != 1 {
			return errors.New("a terminal is one node")
		}
		t, err := d.node(args[0])
		d.terminals = append(d.terminals, t)
		return err
	}
	return fmt.Errorf("%q is not part of a problem without root, prizes and groups", word)
}

func (d *decoder) node(text string) (int32, error) {
	if d.nodes < 0 {
		return 0, errors.New("a node before the number of nodes")
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 || v > d.nodes {
		return 0, fmt.Errorf("%q is no node from 1 to %d", text, d.nodes)
	}
	return int32(v - 1), nil
}

// count reads a number that may be given once.
func count(args []string, old, most int) (int, error) {
	if old >= 0 {
		return 0, errors.New("a number is given twice")
	}
	if len(args) != 1 {
		return 0, errors.New("one number is wanted")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", args[0], most)
	}
	return n, nil
}

// problem checks the counts, and the problem.
func (d *decoder) problem() (*instance, error) {
	switch {
	case d.section != "":
		return nil, fmt.Errorf("%w: section %s does not end", errFormat, d.section)
	case d.nodes < 0:
		return nil, fmt.Errorf("%w: no number of nodes", errFormat)
	case d.edges >= 0 && d.edges != len(d.ends):
		return nil, fmt.Errorf("%w: %d edges, announced were %d", errFormat, len(d.ends), d.edges)
	case d.terms >= 0 && d.terms != len(d.terminals):
		return nil, fmt.Errorf("%w: %d terminals, announced were %d", errFormat, len(d.terminals), d.terms)
	}
	g, err := steiner.NewGraph(d.nodes, d.ends)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errFormat, err)
	}
	p := steiner.Problem{Graph: g, Cost: d.cost, Terminals: d.terminals}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", errFormat, err)
	}
	return &instance{name: d.name, problem: p}, nil
}
