package view

import (
	"fmt"
	"io"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
)

// Mismatch is a link that does not carry what trees exchange over it, in JSON.
type Mismatch struct {
	Link      string    `json:"link"`
	Switch    string    `json:"switch"` // at whose end this was counted
	Interface string    `json:"interface"`
	Direction string    `json:"direction"` // sent, received: by the switch
	Expected  uint64    `json:"expected_bytes"`
	Seen      uint64    `json:"seen_bytes"`
	Trees     []Share   `json:"trees"` // the largest share first
	Since     time.Time `json:"since"`

	text string
}

// Share is what one tree has sent of what several have.
type Share struct {
	Group uint32 `json:"group"`
	Epoch uint32 `json:"epoch"`
	Bytes uint64 `json:"bytes"`
}

func newMismatches(all []rpc.LinkMismatch) []Mismatch {
	list := []Mismatch{}
	for i := range all {
		m := &all[i]
		x := Mismatch{
			Link: m.Link, Switch: m.Switch, Interface: m.Interface, Direction: m.Direction(), Expected: m.Expected, Seen: m.Seen,
			Trees: []Share{}, Since: m.Since.UTC(), text: m.String(),
		}
		for _, t := range m.Trees {
			x.Trees = append(x.Trees, Share(t))
		}
		list = append(list, x)
	}
	return list
}

// mismatchesText writes a line for each.
func mismatchesText(w io.Writer, all []Mismatch) {
	for _, m := range all {
		fmt.Fprintf(w, "ALARM: %s (since %s)\n", m.text, m.Since.Format("2006-01-02 15:04:05 UTC"))
	}
}
