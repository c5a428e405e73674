package importer

import (
	"fmt"
	"io"
	"strings"

	"github.com/tributary-fabric/tributary/internal/ground/printable"
)

// Action is what an importer did with a piece of a file.
type Action string

// The actions.
const (
	Skipped Action = "skipped" // it is not in the fabric
	Changed Action = "changed" // it is, and otherwise than the file says
	Assumed Action = "assumed" // the file does not say; this was taken
)

// Reason is why an importer did so.
type Reason string

// The reasons.
const (
	NotOfFabric   Reason = "not a part of the fabric"
	Unused        Reason = "nothing in a fabric depends on it"
	Unknown       Reason = "not known in this format"
	TwoHosts      Reason = "both ends are hosts"
	SameNode      Reason = "both ends are the same node"
	NoLinks       Reason = "it has no links"
	Repeated      Reason = "it is there already"
	Contradiction Reason = "another line says otherwise"
	OneSided      Reason = "only one end reports it"
	NotDescribed  Reason = "nothing describes it but a link to it"
	BadName       Reason = "the name has other signs than letters, digits and . _ - /"
	SameName      Reason = "several nodes have this name"
	NoName        Reason = "it has no name"
	PortTaken     Reason = "another link has the port"
	Forwards      Reason = "hosts have links to it, and hosts do not forward"
	CannotReduce  Reason = "it is of a kind that forwards and does not reduce"
	NoSpeed       Reason = "the file gives no bandwidth"
	NoLatency     Reason = "the file gives no latency"
	Distance      Reason = "both ends have coordinates"
	NoHosts       Reason = "the file has no hosts"
	OneLink       Reason = "the file gives the hierarchy, not the cables"
	Pattern       Reason = "its name matches the pattern given"
	SpeedsDiffer  Reason = "its ends report two speeds"
)

// Note is one thing in a file that an importer did not take as it stands.
type Note struct {
	Line   int    `json:"line,omitempty"` // the first, from 1; 0: of the file
	Count  int    `json:"count"`          // how often
	Action Action `json:"action"`
	What   string `json:"what"`
	Why    Reason `json:"why"`
	Into   string `json:"into,omitempty"` // what it became or what was taken
}

// String returns the note on one line, without its place.
func (n Note) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", n.Action, n.What)
	if n.Into != "" {
		fmt.Fprintf(&b, " to %s", n.Into)
		if n.Action == Assumed {
			b.Reset()
			fmt.Fprintf(&b, "assumed %s for %s", n.Into, n.What)
		}
	}
	fmt.Fprintf(&b, ": %s", n.Why)
	if n.Count > 1 {
		fmt.Fprintf(&b, " (%d times)", n.Count)
	}
	return b.String()
}

// MaxNotes is the most notes of a report; Report.More counts the rest.
const MaxNotes = 1000

// Report reports what an import made of a file.
type Report struct {
	File     string `json:"file"`
	Format   Format `json:"format"`
	Fabric   string `json:"fabric,omitempty"`
	Hosts    int    `json:"hosts"`
	Switches int    `json:"switches"`
	Links    int    `json:"links"`
	// Parts counts the pieces that no link joins: 1 where every node reaches
	// every other.
	Parts int    `json:"parts"`
	Notes []Note `json:"notes"`
	More  int    `json:"more,omitempty"`

	known map[Note]int // a note without line and count, to its place
}

// note adds a note, or counts an equal one once more.
func (r *Report) note(line int, action Action, what string, why Reason, into string) {
	n := Note{Action: action, What: printable.Text(what), Why: why, Into: printable.Text(into)}
	if at, ok := r.known[n]; ok {
		r.Notes[at].Count++
		return
	}
	if len(r.Notes) == MaxNotes {
		r.More++
		return
	}
	if r.known == nil {
		r.known = map[Note]int{}
	}
	r.known[n] = len(r.Notes)
	n.Line, n.Count = line, 1
	r.Notes = append(r.Notes, n)
}

// Count returns how many things met an action for a reason.
func (r *Report) Count(action Action, why Reason) int {
	sum := 0
	for _, n := range r.Notes {
		if n.Action == action && n.Why == why {
			sum += n.Count
		}
	}
	return sum
}

// leftOut returns, in brackets, the first few notes of what was skipped; nothing
// where nothing was.
func (r *Report) leftOut() string {
	const most = 3
	var first []string
	for _, n := range r.Notes {
		if n.Action == Skipped && n.Why != NoLinks && len(first) < most {
			first = append(first, r.line(n))
		}
	}
	if len(first) == 0 {
		return ""
	}
	return " (" + strings.Join(first, "; ") + ")"
}

// line returns a note with its place.
func (r *Report) line(n Note) string {
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", r.File, n.Line, n)
	}
	return fmt.Sprintf("%s: %s", r.File, n)
}

// Text writes the report, a line each note.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s: %d hosts, %d switches, %d links", r.File, r.Format, r.Hosts, r.Switches, r.Links)
	if r.Parts > 1 {
		fmt.Fprintf(&b, ", in %d parts that no link joins", r.Parts)
	}
	b.WriteByte('\n')
	for _, n := range r.Notes {
		b.WriteString(r.line(n))
		b.WriteByte('\n')
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "%s: and %d more\n", r.File, r.More)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
