package view

import (
	"fmt"
	"io"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/whole/picture"
)

// Alarm is a miscabling or contradiction that discovery has found, in JSON.
type Alarm struct {
	Kind   string       `json:"kind"`   // as docs/discovery.md lists them
	Places []AlarmPlace `json:"places"` // one end, or both
	What   string       `json:"what"`
	Since  time.Time    `json:"since"`

	text string
}

// AlarmPlace is an end of a link, or a target.
type AlarmPlace struct {
	Node string `json:"node"` // empty: it has no name
	Port string `json:"port"` // the interface's name, or the target's address; empty: the whole node
}

func newAlarms(all []rpc.Alarm) []Alarm {
	list := make([]Alarm, len(all))
	for i, a := range all {
		list[i] = Alarm{a.Kind, []AlarmPlace{}, a.What, a.Since.UTC(), a.String()}
		for _, p := range a.Places {
			list[i].Places = append(list[i].Places, AlarmPlace(p))
		}
	}
	return list
}

// alarmsText writes a line for each.
func alarmsText(w io.Writer, all []Alarm) {
	for _, a := range all {
		fmt.Fprintf(w, "ALARM: %s (since %s)\n", printable.Text(a.text), a.Since.Format("2006-01-02 15:04:05 UTC"))
	}
}

// sceneAlarms returns alarms as they are drawn.
func sceneAlarms(all []rpc.Alarm) []picture.Alarm {
	list := make([]picture.Alarm, len(all))
	for i, a := range all {
		list[i].Text = a.String()
		for _, p := range a.Places {
			list[i].At = append(list[i].At, p.Node)
		}
	}
	return list
}
