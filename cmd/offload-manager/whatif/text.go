package whatif

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/topology"
)

// maxText is the most switches and members of a tree that is drawn as text.
const maxText = 400

// Text writes the report for people.
func (r *Report) Text(out io.Writer) error {
	w := &strings.Builder{}
	fmt.Fprintf(w, "%s: %d hosts, %d switches, %d links\n", strings.ToUpper(title(r.graph)[:1])+title(r.graph)[1:],
		r.Fabric.Hosts, r.Fabric.Switches, r.Fabric.Links)
	for _, o := range r.Others {
		if o.Refused != "" {
			fmt.Fprintf(w, "Beside group %s of %d members: %s\n", o.Name, o.Members, o.Refused)
		} else {
			fmt.Fprintf(w, "Beside group %s of %d members: root %s, %d hops\n", o.Name, o.Members, o.Root, o.Hops)
		}
	}
	fmt.Fprintf(w, "Group of %d members, %s of %s", r.Members, r.Group.Function, r.Group.Type)
	if r.Group.Bytes > 0 {
		fmt.Fprintf(w, ", %d bytes", r.Group.Bytes)
	}
	fmt.Fprintf(w, ", window %d\n\n", r.Group.Window)
	r.Refused.write(w)
	if r.Tree != nil {
		r.Tree.write(w)
	}
	for i, s := range r.Stripes {
		if i == 0 {
			fmt.Fprintf(w, "\n%d stripes, the first %d with no link between switches in common:\n", len(r.Stripes), r.StripesApart)
		}
		fmt.Fprintf(w, "  %d. %s\n", i+1, s.Reason)
	}
	for i, p := range r.Parts {
		if i == 0 {
			fmt.Fprintf(w, "\n%d roots; the receiver reduces their results in this order:\n", len(r.Parts))
		}
		fmt.Fprintf(w, "  %d. %d members from rank %d on: %s\n", i+1, len(p.Ranks), p.Ranks[0], p.Tree.Reason)
	}
	r.writeRepairs(w)
	_, err := io.WriteString(out, w.String())
	return err
}

func (r *RefusalReport) write(w io.Writer) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "Refused: %s\n", r.Why)
	for _, h := range r.Holders {
		fmt.Fprintf(w, "  group %s holds %d slots of %s\n", h.Group, h.Slots, r.Switch)
	}
	if r.HostsFaster {
		fmt.Fprint(w, "The best tree would be:\n\n")
	}
}

func (t *TreeReport) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", t.Reason)
	for _, o := range t.LeftOut {
		fmt.Fprintf(w, "Left out: %s\n", o)
	}
	if n := len(t.Vertices) + len(t.Leaves); n <= maxText {
		fmt.Fprintf(w, "%s\n", t.text)
	} else {
		fmt.Fprintf(w, "(a tree of %d switches and members; --format json lists it)\n\n", n)
	}
	table := terminal.NewTable(w, 2)
	fmt.Fprintln(table, "root\tmethod\thops\tdepth\tlatency\tbandwidth\tspeed\tpresent use\tprice\tshare\tlost by")
	row := func(root, method string, f Figures, lost string) {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t", root, method, f.Hops, f.Depth)
		if f.Bandwidth == 0 { // only the first are known
			fmt.Fprintf(table, "-\t-\t-\t%d\t-\t-\t%s\n", f.Use, lost)
			return
		}
		fmt.Fprintf(table, "%v\t%.3g Gbit/s\t%v\t%d\t%.4g\t%.1f %%\t%s\n",
			time.Duration(f.Latency*1e9+0.5), float64(f.Bandwidth)/1e9, topology.Speed{Bytes: f.Speed}, f.Use, f.Price, 100*f.Share, lost)
	}
	row(t.Root, t.Method, t.Figures, "")
	for _, r := range t.Rivals {
		row(r.Root, r.Method, r.Figures, r.Lost)
	}
	_ = table.Flush() // as fmt.Fprintf to w
	if t.Switches != nil {
		fmt.Fprintf(w, "\nBy the model an operation takes %v over these switches, %v over hosts.\n", span(*t.Switches), span(*t.Hosts))
	}
}

func span(seconds float64) time.Duration {
	return time.Duration(seconds * 1e9).Round(10 * time.Nanosecond)
}

func (r *Report) writeRepairs(w io.Writer) {
	for i, p := range r.Repairs {
		if i == 0 {
			fmt.Fprintln(w, "\nWith what is down:")
		}
		name := "the group"
		if p.Group != "" {
			name = "group " + p.Group
		}
		switch {
		case p.Refused != "":
			fmt.Fprintf(w, "  %s: %s\n", name, p.Refused)
		case p.Anew:
			fmt.Fprintf(w, "  %s: planned anew, root %s in place of %s; %s\n", name, p.Root, p.Before, p.Against)
		default:
			fmt.Fprintf(w, "  %s: repaired, root %s (before: %s); %s\n", name, p.Root, p.Before, p.Against)
		}
		for _, o := range p.LeftOut {
			fmt.Fprintf(w, "    left out: %s\n", o)
		}
	}
	if r.After != nil && len(r.After.Vertices)+len(r.After.Leaves) <= maxText {
		fmt.Fprintf(w, "\n%s", r.After.text)
	}
}

// ErrNoPicture says that there is no tree to draw.
var ErrNoPicture = errors.New("there is no tree to draw")

// SVG draws the tree in the fabric, as it is when what is down is.
func (r *Report) SVG(w io.Writer) error {
	if r.plan == nil {
		return ErrNoPicture
	}
	var members []topology.NodeID
	for _, l := range r.plan.Tree.Leaves {
		members = append(members, l.Host)
	}
	return picture.SVG(w, "Plan in "+title(r.graph), picture.Scene{
		Heading: "Root " + r.graph.Name(r.plan.Tree.Root()), View: r.view, Members: members, Tree: r.plan.Tree,
	})
}
