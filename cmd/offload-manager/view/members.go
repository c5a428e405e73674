package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/membership"
)

// MembersText writes what a node sees of its zone, and of the others.
func MembersText(w io.Writer, s membership.Status) error {
	monitors, suspected := 0, 0
	for i := range s.Members {
		if s.Members[i].Monitor {
			monitors++
		}
		if len(s.Members[i].Suspected) > 0 {
			suspected++
		}
	}
	where := fmt.Sprintf("Zone %d", s.Zone)
	if s.Management {
		where = "Management zone"
	}
	const title = "%s as %s sees it at %s: %d members (%d suspected), %d monitors, %d gone, health %d\n"
	if _, err := fmt.Fprintf(w, title, where, s.Self.Name, s.Taken.UTC().Format(time.TimeOnly), len(s.Members), suspected, monitors, s.Gone, s.Health); err != nil {
		return err
	}
	if len(s.Zones) > 0 {
		if err := zonesText(w, s.Zones); err != nil {
			return err
		}
	}
	t := terminal.NewTable(w, 3)
	fmt.Fprintln(t, "\nMEMBER\tADDRESS\tSTARTED\tMINOR\tDEATHS\tIS\tSUSPECTED BY")
	for i := range s.Members {
		m := &s.Members[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", m.Name, m.Addr, started(m.Version.Incarnation), m.Version.Minor,
			m.Deaths, roles(m, m.Name == s.Self.Name), suspicions(m.Suspected))
	}
	return t.Flush()
}

func zonesText(w io.Writer, all []membership.Zone) error {
	t := terminal.NewTable(w, 3)
	fmt.Fprintln(t, "\nZONE\tMEMBERS\tDELEGATES\tSUPERVISORS")
	for _, z := range all {
		fmt.Fprintf(t, "%d\t%d\t%d\t%s\n", z.Number, z.Size, z.Delegates, dash(strings.Join(z.Supervisors, " ")))
	}
	return t.Flush()
}

// roles reports what a member is for the node that was asked.
func roles(m *membership.StatusLine, self bool) string {
	var all []string
	for _, is := range []struct {
		so   bool
		what string
	}{
		{self, "itself"}, {m.Monitor, "monitor"}, {m.Delegate, "delegate"}, {m.Neighbour, "neighbour"},
		{m.Watched, "watched"}, {m.WatchesMe, "watches it"},
	} {
		if is.so {
			all = append(all, is.what)
		}
	}
	return dash(strings.Join(all, ", "))
}

// started reports when a life began: its incarnation is the clock's nanoseconds.
func started(incarnation uint64) string {
	return time.Unix(0, int64(incarnation)).UTC().Format(time.RFC3339)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// suspicions lists who suspects a member.
func suspicions(by []string) string {
	if len(by) == 0 {
		return "-"
	}
	return terminal.Alert(strings.Join(by, " "))
}
