package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/pathsel"
	"github.com/tributary-fabric/tributary/topology"
)

// Report is what a demonstration found.
type Report struct {
	Fabric     string      `json:"fabric"`
	Hosts      int         `json:"hosts"`
	Switches   int         `json:"switches"`
	Operations []Operation `json:"operations"`

	title  string // of the vectors
	graph  *topology.Graph
	trees  []seen
	killed topology.NodeID // the switch; NoNode: none
}

// seen is a tree of switches that the group had.
type seen struct {
	epoch  uint32
	tree   pathsel.Tree
	reason string
}

// Operation is how one of the operations went.
type Operation struct {
	Function  string  `json:"function"`
	Bytes     int     `json:"bytes"`     // of each member's vector
	Transport string  `json:"transport"` // "offload", "host-tree" or "mixed"
	Reason    string  `json:"reason"`
	Correct   bool    `json:"correct"`
	Seconds   float64 `json:"seconds"`

	// HostLinkRatio is the most bytes that a host's link carried in one
	// direction, in relation to Bytes: datagrams with their IP and UDP headers,
	// frames between hosts without those of TCP.
	HostLinkRatio float64 `json:"host_link_ratio"`

	Epochs []uint32 `json:"epochs"` // in which it ran, ascending; even ones are trees of switches

	title string
	wrong error // what is wrong with the result
}

// Err returns what is wrong with the results: nil, or an ErrWrong.
func (r *Report) Err() error {
	for i, o := range r.Operations {
		if !o.Correct {
			return fmt.Errorf("%w: operation %d: %w", ErrWrong, i+1, o.wrong)
		}
	}
	return nil
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Fabric   %s: %d hosts, %d switches, %d links\n", r.Fabric, r.Hosts, r.Switches, r.graph.Links())
	fmt.Fprintf(&b, "Vectors  %s\n", r.title)
	for _, t := range r.trees {
		fmt.Fprintf(&b, "\nCollection tree of epoch %d, %d switches:\n\n", t.epoch, len(t.tree.Vertices))
		for line := range strings.Lines(t.tree.Text(r.graph)) {
			b.WriteString("    " + line)
		}
		fmt.Fprintf(&b, "\n    %s\n", t.reason)
	}
	b.WriteString("\n")
	table := terminal.NewTable(&b, 3)
	fmt.Fprintln(table, "\tOPERATION\tWAY\tEPOCHS\tSECONDS\tSPEEDUP OVER HOST TREE\tBUSIEST HOST LINK\tRESULT")
	for i, o := range r.Operations {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%.3f\t%s\t%.3f of the vector\t%s\n",
			i+1, o.title, o.Transport, list(o.Epochs), o.Seconds, r.against(&o), o.HostLinkRatio, o.verdict())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	b.WriteString("\n")
	for i, o := range r.Operations {
		fmt.Fprintf(&b, "%d ran that way because: %s\n", i+1, o.Reason)
		if o.wrong != nil {
			fmt.Fprintf(&b, "  WRONG: %v\n", o.wrong)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// against compares an operation's time with that of the last one, which ran
// over hosts.
func (r *Report) against(o *Operation) string {
	hosts := r.Operations[len(r.Operations)-1].Seconds
	if o.Seconds <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f×", hosts/o.Seconds)
}

func (o *Operation) verdict() string {
	if o.Correct {
		return "correct"
	}
	return "WRONG"
}

func list(epochs []uint32) string {
	var names []string
	for _, e := range epochs {
		names = append(names, fmt.Sprint(e))
	}
	return strings.Join(names, ", ")
}
