package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/ground/document"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// ReadModelFile is ReadModel for the file at path.
func ReadModelFile(path string) (pathsel.Model, error) { return readFile(path, ReadModel) }

// ReadModel reads a cost model: an object of durations such as 10us, speeds in
// bytes a second, and a bandwidth in bit/s. What it does not say is as in
// pathsel.DefaultModel. The name, usually the file's path, begins every error.
func ReadModel(r io.Reader, name string) (pathsel.Model, error) {
	m := pathsel.DefaultModel()
	_, err := read(r, name, &m, func(d *reader, top field, m *pathsel.Model) {
		d.object(top, map[string]func(field){
			"host_message": d.span(&m.HostMessage), "switch_hop": d.span(&m.SwitchHop), "hop": d.span(&m.Hop),
			"switch_reduce": d.speed(&m.SwitchReduce), "host_reduce": d.speed(&m.HostReduce),
			"bandwidth": count(d, &m.Bandwidth, 0, 1e18), "costs": d.costs(m),
		})
		if err := m.Validate(); err != nil && len(d.errs) == 0 {
			d.fail(top, fmt.Errorf("%w: %w", err, topology.ErrField))
		}
	})
	return m, err
}

// WriteModel writes a model so that ReadModel reads it.
func WriteModel(w io.Writer, m pathsel.Model) error {
	_, err := fmt.Fprintf(w, "host_message: %v\nswitch_hop: %v\nswitch_reduce: %.6g # bytes a second\n"+
		"host_reduce: %.6g # bytes a second\nbandwidth: %d # bit/s\nhop: %v\n",
		m.HostMessage, m.SwitchHop, m.SwitchReduce, m.HostReduce, m.Bandwidth, m.Hop)
	if err != nil || m.Costs == nil {
		return err
	}
	var b strings.Builder
	b.WriteString("costs: # of one of each; link and local of a MiB\n")
	if m.Costs.Processors > 0 {
		fmt.Fprintf(&b, "  processors: %d # that all hosts share\n", m.Costs.Processors)
	}
	if l := m.Costs.Links; l != (pathsel.Links{}) {
		fmt.Fprintf(&b, "  links: {rate: %d, uplink: %d, leaf: %d} # bit/s, bit/s, members\n", l.Rate, l.Uplink, l.Leaf)
	}
	for f := range m.Costs.Rates {
		fmt.Fprintf(&b, "  %s:\n", pathsel.Family(f))
		for k := range m.Costs.Rates[f] {
			var terms []string
			for t, d := range m.Costs.Rates[f][k] {
				if d > 0 {
					terms = append(terms, fmt.Sprintf("%s: %v", pathsel.Term(t), d))
				}
			}
			if len(terms) > 0 {
				fmt.Fprintf(&b, "    %s: {%s}\n", pathsel.Kind(k), strings.Join(terms, ", "))
			}
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// costs reads those of ways of collectives. A collective that is left out has those of
// pathsel.DefaultCosts; a kind that is left out of one is unknown, and a term costs nothing.
func (d *reader) costs(m *pathsel.Model) func(field) {
	return func(f field) {
		all := *pathsel.DefaultCosts()
		m.Costs = &all
		families := map[string]func(field){
			"processors": count(d, &all.Processors, 0, pathsel.MaxProcessors),
			"links": func(f field) {
				l := &all.Links
				d.object(f, map[string]func(field){"rate": count(d, &l.Rate, 0, 1e18), "uplink": count(d, &l.Uplink, 0, 1e18), "leaf": count(d, &l.Leaf, 0, pathsel.MaxLeaf)})
			},
		}
		for of := range all.Rates {
			families[pathsel.Family(of).String()] = func(f field) {
				all.Rates[of] = [pathsel.Kinds]pathsel.Rates{}
				kinds := map[string]func(field){}
				for k := range all.Rates[of] {
					kinds[pathsel.Kind(k).String()] = func(f field) {
						terms := map[string]func(field){}
						for t := range all.Rates[of][k] {
							terms[pathsel.Term(t).String()] = d.span(&all.Rates[of][k][t])
						}
						d.object(f, terms)
					}
				}
				d.object(f, kinds)
			}
		}
		d.object(f, families)
	}
}

// span returns a reader of a duration that may be zero.
func (d *reader) span(to *time.Duration) func(field) {
	return func(f field) {
		x, err := time.ParseDuration(f.Text)
		if err != nil || x < 0 {
			d.failf(f, "%q is not a duration such as 500ns or 10us", f.Text)
			return
		}
		*to = x
	}
}

// speed returns a reader of a number that is not negative.
func (d *reader) speed(to *float64) func(field) {
	return func(f field) {
		x, err := strconv.ParseFloat(f.Text, 64)
		if f.Kind != document.Number || err != nil || !(x >= 0) || math.IsInf(x, 0) {
			d.failf(f, "must be a number that is not negative, not %s %s", f.Kind, f.Text)
			return
		}
		*to = x
	}
}

// planning reads by what a manager chooses trees.
func (d *reader) planning(f field, m *Manager) {
	hosts, forward := "where-faster", "needed"
	d.object(f, map[string]func(field){
		"hosts": d.oneOf(&hosts, "where-faster", "never"), "forward": d.oneOf(&forward, "never", "needed", "better"),
		"model": func(f field) { d.model(f, m) },
	})
	m.Core.NoHosts, m.Core.NoForward, m.Core.Slim = hosts == "never", forward == "never", forward == "better"
}

// model reads the file of a cost model.
func (d *reader) model(f field, m *Manager) {
	text, ok := d.text(f)
	if !ok {
		return
	}
	model, err := ReadModelFile(d.resolve(text))
	var inFile *topology.FileError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.failf(f, "there is no file %q", text)
	case errors.As(err, &inFile):
		d.add(err) // has its own place
	case err != nil:
		d.fail(f, err)
	default:
		m.Model = model
	}
}
