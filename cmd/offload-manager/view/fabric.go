package view

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/internal/ground/printable"
	"github.com/tributary-fabric/tributary/internal/whole/command/terminal"
	"github.com/tributary-fabric/tributary/internal/whole/picture"
	"github.com/tributary-fabric/tributary/topology"
)

// ErrFabric reports that a manager's fabric is not one that can be drawn.
var ErrFabric = errors.New("the manager's topology is not a fabric")

// Fabric is a fabric in JSON.
type Fabric struct {
	Name     string   `json:"name"`
	Version  uint64   `json:"version"` // changes since the manager read it
	Hosts    []Host   `json:"hosts"`
	Switches []Switch `json:"switches"`
	Links    []Link   `json:"links"`
	Alarms   []Alarm  `json:"alarms"` // of discovery, that hold
}

// Host is a host in JSON.
type Host struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	Why  string `json:"why"` // it is down: who says so, and why
	// Speed is that at which it reduces, as far as it is known.
	Speed topology.Speed `json:"speed"`
}

// Switch is a switch in JSON.
type Switch struct {
	Name      string         `json:"name"`
	Up        bool           `json:"up"`
	Why       string         `json:"why"`       // it is down: who says so, and why
	Agent     string         `json:"agent"`     // address of its agent; empty: it has none
	Connected bool           `json:"connected"` // the manager has its agent
	Draining  bool           `json:"draining"`
	Trees     int            `json:"trees"`
	SlotsUsed int            `json:"slots_used"`
	Wanted    int            `json:"slots_wanted"` // that the groups whose trees it carries could use
	Most      int            `json:"slots_most"`   // that groups may have: all of them, within the manager's quota
	Slots     int            `json:"slots"`
	Children  int            `json:"children"`    // most in one tree
	Chunk     int            `json:"chunk_bytes"` // largest payload of a packet
	Window    int            `json:"window"`      // largest that a tree has there, in chunks; 0: any
	Functions string         `json:"functions"`
	Types     string         `json:"types"`
	Speed     topology.Speed `json:"speed"`           // at which it reduces, as far as it is known
	CPU       float64        `json:"cpu"`             // share of its time that is in use, as plans count it; 0: not known
	Unusable  string         `json:"unusable"`        // why its agent can reserve nothing at present; empty: it can
	Version   string         `json:"agent_version"`   // of the agent's program, as it reported last; empty: it has not
	Alarms    int            `json:"link_mismatches"` // at its ends of links
}

// Link is a link in JSON.
type Link struct {
	A         End     `json:"a"`
	B         End     `json:"b"`
	Up        bool    `json:"up"`
	Why       string  `json:"why"` // it is down: who says so, and why
	Bandwidth int64   `json:"bandwidth_bits_per_second"`
	Latency   float64 `json:"latency_seconds"`
	Trees     int     `json:"trees"`
	Foreign   float64 `json:"foreign"` // share that traffic of no tree has, as plans count it; 0: not known

	Mismatches []Mismatch `json:"mismatches"`
}

// End is where a link ends.
type End struct {
	Node string `json:"node"`
	Port int    `json:"port"`
}

// NewFabric returns a manager's fabric as it is written.
func NewFabric(f rpc.Fabric) Fabric {
	v := Fabric{Name: f.Name, Version: f.Version, Hosts: []Host{}, Switches: []Switch{}, Links: []Link{}, Alarms: newAlarms(f.Alarms)}
	alarms := map[string]int{}
	for i := range f.Cables {
		for _, m := range f.Cables[i].Mismatches {
			alarms[m.Switch]++
		}
	}
	for _, n := range f.Nodes {
		if s := n.Switch; s == nil {
			v.Hosts = append(v.Hosts, Host{n.Name, n.Up, n.Why, n.Speed})
		} else {
			c := s.Capability
			v.Switches = append(v.Switches, Switch{
				Name: n.Name, Up: n.Up, Why: n.Why, Agent: s.Agent, Connected: s.Connected, Draining: s.Draining, Trees: s.Trees, SlotsUsed: s.SlotsUsed, Wanted: s.Wanted, Most: s.SlotsMost,
				Slots: c.Slots, Children: c.Children, Chunk: c.Chunk, Window: c.Window, Functions: c.Functions.String(), Types: c.Types.String(),
				Speed: c.Speed, CPU: s.CPU, Unusable: s.Unusable, Version: s.AgentVersion, Alarms: alarms[n.Name],
			})
		}
	}
	for _, l := range f.Cables {
		v.Links = append(v.Links, Link{
			A: End{l.A.Node, int(l.A.Port)}, B: End{l.B.Node, int(l.B.Port)}, Up: l.Up, Why: l.Why,
			Bandwidth: l.Carries.Bandwidth, Latency: l.Carries.Latency.Seconds(), Trees: l.Trees, Foreign: l.Foreign,
			Mismatches: newMismatches(l.Mismatches),
		})
	}
	return v
}

// JSON writes a value, indented.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Text writes the fabric for people: its switches, and the links that are down,
// carry trees between switches, or do not carry what trees say.
func (v Fabric) Text(w io.Writer) error {
	down, known := 0, []topology.Speed(nil)
	for _, h := range v.Hosts {
		if !h.Up {
			down++
		}
		if h.Speed.Known() {
			known = append(known, h.Speed)
		}
	}
	const title = "Fabric %s: %d hosts (%d down), %d switches, %d links, %s\n\n"
	if _, err := fmt.Fprintf(w, title, v.Name, len(v.Hosts), down, len(v.Switches), len(v.Links), printable.Count(v.Version, "change", "changes")); err != nil {
		return err
	}
	if err := SwitchesText(w, v.Switches); err != nil {
		return err
	}
	if len(known) > 0 {
		order := func(a, b topology.Speed) int {
			return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Packets, b.Packets))
		}
		fmt.Fprintf(w, "\nHosts of known speed: %d, from %v to %v\n", len(known), slices.MinFunc(known, order), slices.MaxFunc(known, order))
	}
	isSwitch := map[string]bool{}
	for _, s := range v.Switches {
		isSwitch[s.Name] = true
	}
	t := terminal.NewTable(w, 3)
	head := "\nLINK\tSTATE\tTREES\n"
	for _, l := range v.Links {
		if l.Up && len(l.Mismatches) == 0 && (l.Trees == 0 || !isSwitch[l.A.Node] || !isSwitch[l.B.Node]) {
			continue
		}
		is := state(l.Up)
		if len(l.Mismatches) > 0 {
			is += ", " + terminal.Alert("mismatch")
		}
		fmt.Fprintf(t, "%s%s:%d - %s:%d\t%s\t%d\n", head, l.A.Node, l.A.Port, l.B.Node, l.B.Port, is, l.Trees)
		head = ""
	}
	err := t.Flush()
	for _, l := range v.Links {
		mismatchesText(w, l.Mismatches)
	}
	alarmsText(w, v.Alarms)
	v.outagesText(w)
	return err
}

// outagesText says why what is down is so.
func (v Fabric) outagesText(w io.Writer) {
	down := func(what, name string, up bool, why string) {
		if !up && why != "" {
			fmt.Fprintf(w, "DOWN: %s %s: %s\n", what, name, printable.Text(why))
		}
	}
	for _, h := range v.Hosts {
		down("host", h.Name, h.Up, h.Why)
	}
	for _, s := range v.Switches {
		down("switch", s.Name, s.Up, s.Why)
	}
	for _, l := range v.Links {
		down("link", fmt.Sprintf("%s:%d - %s:%d", l.A.Node, l.A.Port, l.B.Node, l.B.Port), l.Up, l.Why)
	}
}

// SwitchesText writes a table of switches.
func SwitchesText(w io.Writer, all []Switch) error {
	t := terminal.NewTable(w, 3)
	fmt.Fprintln(t, "SWITCH\tSTATE\tAGENT\tTREES\tSLOTS USED\tWANTED\tSPEED\tCPU\tVERSION")
	for _, s := range all {
		is, agent := state(s.Up), terminal.Alert("absent")
		if s.Draining {
			is += ", draining"
		}
		if s.Alarms > 0 {
			is += ", " + terminal.Alert("link mismatch")
		}
		if s.Unusable != "" {
			is += ", " + terminal.Alert("unusable")
		}
		if s.Connected {
			agent = "connected"
		}
		cpu, speed := "-", "-"
		if s.Speed.Known() {
			speed = s.Speed.String()
		}
		if s.CPU > 0 {
			cpu = fmt.Sprintf("%.0f %%", 100*s.CPU)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d of %d\t%d\t%s\t%s\t%s\n", s.Name, is, agent, s.Trees, s.SlotsUsed, cmp.Or(s.Most, s.Slots), s.Wanted, speed, cpu, cmp.Or(s.Version, "-"))
	}
	err := t.Flush()
	for _, s := range all {
		if s.Unusable != "" {
			fmt.Fprintf(w, "%s is unusable: %s\n", s.Name, s.Unusable)
		}
	}
	return err
}

func state(up bool) string {
	if up {
		return "up"
	}
	return terminal.Alert("down")
}

// Scene returns a manager's fabric as it can be drawn.
func Scene(f rpc.Fabric) (picture.Scene, error) {
	b := topology.Builder{Fabric: f.Name}
	refs := make(map[string]topology.Ref, len(f.Nodes))
	var errs []error
	for _, n := range f.Nodes {
		var err error
		if n.Switch != nil {
			refs[n.Name], err = b.AddSwitch(n.Name, n.Switch.Capability)
		} else {
			if refs[n.Name], err = b.AddHost(n.Name); err == nil && n.Speed.Known() {
				err = b.SetSpeed(refs[n.Name], n.Speed)
			}
		}
		errs = append(errs, err)
	}
	for _, l := range f.Cables {
		x, ok := refs[l.A.Node]
		y, ok2 := refs[l.B.Node]
		if !ok || !ok2 {
			return picture.Scene{}, fmt.Errorf("%w: a link between %q and %q", ErrFabric, l.A.Node, l.B.Node)
		}
		_, err := b.Connect(x, l.A.Port, y, l.B.Port, l.Carries)
		errs = append(errs, err)
	}
	g, err := b.Build()
	if err := errors.Join(append(errs, err)...); err != nil {
		return picture.Scene{}, fmt.Errorf("%w: %w", ErrFabric, err)
	}
	var changes []topology.Change
	for _, n := range f.Nodes {
		if id, ok := g.Lookup(n.Name); ok && !n.Up {
			changes = append(changes, topology.NodeState(id, false))
		}
	}
	for i, l := range f.Cables { // links keep their order
		if !l.Up {
			changes = append(changes, topology.LinkState(topology.LinkID(i), false))
		}
	}
	overlay, err := topology.NewOverlay(g).With(changes...)
	if err != nil {
		return picture.Scene{}, fmt.Errorf("%w: %w", ErrFabric, err)
	}
	scene := picture.Scene{View: overlay.View(), Switches: map[topology.NodeID]picture.Standing{}}
	for _, n := range f.Nodes {
		if id, ok := g.Lookup(n.Name); ok && n.Switch != nil {
			scene.Switches[id] = picture.Standing{
				Absent: !n.Switch.Connected, Unusable: n.Switch.Unusable != "", Draining: n.Switch.Draining, Trees: n.Switch.Trees,
			}
		}
	}
	return scene, nil
}

// FabricSVG draws a manager's fabric.
func FabricSVG(w io.Writer, f rpc.Fabric) error {
	scene, err := Scene(f)
	if err != nil {
		return err
	}
	scene.Alarms = sceneAlarms(f.Alarms)
	return picture.SVG(w, "Fabric "+f.Name, scene)
}
