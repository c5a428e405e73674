package importer

import (
	"bufio"
	"fmt"
	"io"

	"github.com/tributary-fabric/tributary/topology"
)

// dumpSpeeds are the bandwidths that a dump can report, in bit/s.
var dumpSpeeds = map[int64]string{
	8e9: "4xSDR", 16e9: "4xDDR", 32e9: "4xQDR", 40e9: "4xFDR10", 100e9: "4xEDR", 200e9: "4xHDR", 400e9: "4xNDR", 800e9: "4xXDR",
}

// dump is a dump in the making.
type dump struct {
	w *bufio.Writer
	g *topology.Graph
}

// writeDump writes g as ibnetdiscover would print it: a block for each switch, and for each host one for every link,
// of an adapter of its own. Links of a bandwidth that no speed has are written
// without one.
func writeDump(w io.Writer, g *topology.Graph) error {
	d := &dump{w: bufio.NewWriter(w), g: g}
	d.print("#\n# Topology file: generated on Thu Jan  1 00:00:00 2026\n#\n# Initiated from node 0 port 0\n\n")
	for i := range g.Switches() {
		d.block(g.Switch(i))
	}
	for h := range topology.NodeID(g.Hosts()) {
		for _, l := range g.Adjacent(h) {
			d.adapter(h, l)
		}
	}
	if err := d.w.Flush(); err != nil {
		return fmt.Errorf("write dump: %w", err)
	}
	return nil
}

// print leaves the first error of writing to the final Flush.
func (d *dump) print(format string, args ...any) { fmt.Fprintf(d.w, format, args...) }

// identity returns how the end of link l at n calls itself: its GUID's kind and
// number, its port and its description.
func (d *dump) identity(n topology.NodeID, l topology.LinkID) (kind string, guid int, port topology.Port, description string) {
	end := d.g.Link(l).Ends[0]
	if end.Node != n {
		end = d.g.Link(l).Ends[1]
	}
	if d.g.IsSwitch(n) {
		return "S", 0x500000000 + int(n), end.Port, "MF0;" + d.g.Name(n) + ":MODEL/U1"
	}
	return "H", 0x900000000 + int(l), 1, fmt.Sprintf("%s HCA-%d", d.g.Name(n), end.Port)
}

func (d *dump) speed(l topology.LinkID) string {
	if s := dumpSpeeds[d.g.Link(l).Bandwidth]; s != "" {
		return " " + s
	}
	return ""
}

// block writes a switch and its ports.
func (d *dump) block(n topology.NodeID) {
	links := d.g.Adjacent(n)
	if len(links) == 0 {
		return
	}
	kind, guid, _, description := d.identity(n, links[0])
	d.print("vendid=0x2c9\ndevid=0xcb20\nsysimgguid=0x%x\nswitchguid=0x%x(%x)\nSwitch\t%d \"%s-%016x\"\t\t# \"%s\" base port 0 lid %d lmc 0\n",
		guid, guid, guid, d.g.Degree(n), kind, guid, description, n+1)
	for _, l := range links {
		_, _, port, _ := d.identity(n, l)
		kind, guid, to, description := d.identity(d.g.Across(l, n), l)
		d.print("[%d]\t\"%s-%016x\"[%d](%x) \t\t# \"%s\" lid %d%s\n", port, kind, guid, to, guid, description, d.g.Across(l, n)+1, d.speed(l))
	}
	d.print("\n")
}

// adapter writes a host's adapter on a link.
func (d *dump) adapter(n topology.NodeID, l topology.LinkID) {
	kind, guid, port, description := d.identity(n, l)
	d.print("vendid=0x2c9\ndevid=0x1017\nsysimgguid=0x%x\ncaguid=0x%x\nCa\t1 \"%s-%016x\"\t\t# \"%s\"\n", guid, guid, kind, guid, description)
	m := d.g.Across(l, n)
	peerKind, peer, to, peerDescription := d.identity(m, l)
	d.print("[%d](%x) \t\"%s-%016x\"[%d]\t\t# lid %d lmc 0 \"%s\" lid %d%s\n\n", port, guid, peerKind, peer, to, n+1, peerDescription, m+1, d.speed(l))
}
