package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/topology"
)

// The lines of ibnetdiscover that describe a node and a port of it:
//
//	Switch 36 "S-0008f10400410015"   # "SW-6IB4 Voltaire" base port 0 lid 3 lmc 0
//	[8]  "H-0008f10403960558"[2](8f1040396055a)   # "node7 HCA-1" lid 14 4xEDR
//	[1](8f10403960559)  "S-0008f10400410015"[6]   # lid 10 lmc 0 "SW-6IB4" lid 3 4xEDR
var (
	ibNode = regexp.MustCompile(`^(Switch|Ca|Rt)\s+\d+\s+"([SHR])-([^"]+)"\s*(?:#(.*))?$`)
	ibPort = regexp.MustCompile(`^\[(\d+)\](?:\[[^\]]*\])?(?:\([^)]*\))?\s*"([SHR])-([^"]+)"\s*\[(\d+)\](?:\[[^\]]*\])?(?:\([^)]*\))?\s*(?:#(.*))?$`)
	// Speeds are reported behind the description, which is in quotes.
	ibSpeed = regexp.MustCompile(`\b(\d+)x([A-Z]+\d*)\b`)
	// A host's adapter is described by its name and the adapter's.
	ibAdapter = regexp.MustCompile(`^(\S+)\s+(?:HCA-\d+|mlx\d+_\d+|mthca\d+|qib\d+|hfi\d+_\d+|ib\d+|bnxt_re\d+)$`)
	// A managed switch calls itself "MF0;name:model/unit".
	ibManaged = regexp.MustCompile(`^MF\d+;([^:]+)(?::.*)?$`)
)

// ibHeadings begin lines that say nothing of cables.
var ibHeadings = []string{"#", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=", "Chassis", "Non-Chassis", "DR path"}

// ibLanes is what one lane of each speed carries, in Mbit/s, less what its
// encoding takes. Source: InfiniBand Trade Association, speed roadmap.
var ibLanes = map[string]float64{
	"SDR": 2000, "DDR": 4000, "QDR": 8000, "FDR10": 10000, "FDR": 13636, "EDR": 25000, "HDR": 50000, "NDR": 100000, "XDR": 200000,
}

// ibReader reads the output of ibnetdiscover.
type ibReader struct {
	*draft
	at    int    // the node whose ports come: notYet, leftOut, or in draft.nodes
	guid  string // its own, of which a host may have several
	ports map[ibEnd]ibCable
	other []ibEnd // by link, the end that did not report it first

	own       map[string]bool // GUIDs with a block
	mentioned []string        // GUIDs in the order in which they come
	skip      map[string]bool // GUIDs that are left out
	adapters  map[string]bool // descriptions of adapters
	hosts     map[string]int  // by name, the last
}

const (
	notYet  = -1
	leftOut = -2
)

// ibEnd is a port of a node, by the node's GUID.
type ibEnd struct {
	guid string
	port int
}

// ibCable is the link at an end, and whether the end's own block reported it.
type ibCable struct {
	link     int
	reported bool
}

func readIBNetDiscover(d *draft, data []byte) {
	r := &ibReader{
		draft: d, at: notYet, ports: map[ibEnd]ibCable{},
		own: map[string]bool{}, skip: map[string]bool{}, adapters: map[string]bool{}, hosts: map[string]int{},
	}
	d.lines(data, func(number int, line string) {
		if line = strings.TrimSpace(line); line != "" && !d.full() {
			r.line(number, line)
		}
	})
	r.finish()
}

func (r *ibReader) line(number int, line string) {
	kind, _, _ := strings.Cut(line, "\t")
	kind, _, _ = strings.Cut(kind, " ")
	switch {
	case line[0] == '[':
		if m := ibPort.FindStringSubmatch(line); m != nil {
			r.port(number, m)
			return
		}
	case kind == "Switch" || kind == "Ca" || kind == "Rt":
		if m := ibNode.FindStringSubmatch(line); m != nil {
			r.node(number, m)
			return
		}
	default:
		if !slices.ContainsFunc(ibHeadings, func(h string) bool { return strings.HasPrefix(line, h) }) {
			r.note(number, Skipped, "line "+strconv.Quote(short(kind)), Unknown, "")
		}
		return
	}
	r.fail(number, fmt.Errorf("%q is neither a node nor a port as ibnetdiscover writes them: repair or remove the line: %w", short(line), ErrSyntax))
}

// short cuts a text that goes into a message.
func short(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// guidOf writes a GUID in one way: ibnetdiscover pads it in some places.
func guidOf(s string) string {
	return strings.TrimLeft(strings.ToLower(strings.TrimPrefix(s, "0x")), "0")
}

// described splits a comment into the description in quotes and what follows.
func described(comment string) (description, rest string) {
	_, quoted, ok := strings.Cut(comment, `"`)
	if !ok {
		return "", comment
	}
	end := strings.LastIndexByte(quoted, '"')
	if end < 0 {
		return quoted, ""
	}
	return strings.TrimSpace(quoted[:end]), quoted[end+1:]
}

// node begins the block of a node.
func (r *ibReader) node(line int, m []string) {
	guid := guidOf(m[3])
	description, _ := described(m[4])
	if r.own[guid] {
		r.fail(line, fmt.Errorf("a second block of %s-%s: remove one of them: %w", m[2], m[3], ErrDuplicate))
		return
	}
	r.own[guid], r.guid = true, guid
	r.at = r.find(line, m[2], guid, description)
}

// find returns the node of a GUID, which is made if it is not there, or leftOut.
func (r *ibReader) find(line int, kind, guid, description string) int {
	if at, ok := r.byID[guid]; ok {
		return at
	}
	if r.skip[guid] {
		return leftOut
	}
	r.mentioned = append(r.mentioned, guid)
	n := node{id: guid, label: description, line: line, kind: topology.Switch}
	switch {
	case kind == "H" && strings.Contains(description, "Aggregation Node"):
		// It is a switch's own unit and not a host.
		r.skip[guid] = true
		r.note(line, Skipped, strconv.Quote(description), NotOfFabric, "")
		return leftOut
	case kind == "H":
		n.kind = topology.Host
		if m := ibAdapter.FindStringSubmatch(description); m != nil {
			return r.adapter(n, m[1], description)
		}
	case kind == "R":
		n.plain = true
		r.note(line, Changed, "router "+strconv.Quote(description), CannotReduce, "a switch that only forwards")
	default:
		if m := ibManaged.FindStringSubmatch(description); m != nil {
			n.label = m[1]
		}
	}
	at, _ := r.add(n)
	return at
}

// adapter returns the host of that name, which may have other adapters; one
// that describes itself as another does is of another host of the same name.
func (r *ibReader) adapter(n node, host, description string) int {
	n.label = host
	at, ok := r.hosts[host]
	if !ok || r.adapters[description] {
		at, _ = r.add(n)
		r.hosts[host] = at
	} else {
		r.byID[n.id] = at
		r.nodes[at].anyPort = true // each adapter counts its ports from 1
	}
	r.adapters[description] = true
	return at
}

// port reads the line of a port.
func (r *ibReader) port(line int, m []string) {
	if r.at == notYet {
		r.fail(line, fmt.Errorf("a port before any node: put the line of its node before it: %w", ErrSyntax))
		return
	}
	description, rest := described(m[5])
	peerGUID := guidOf(m[3])
	peer := r.find(line, m[2], peerGUID, description)
	from, err1 := strconv.Atoi(m[1])
	to, err2 := strconv.Atoi(m[4])
	if err1 != nil || err2 != nil {
		r.fail(line, fmt.Errorf("port %s or %s is no number: %w", m[1], m[4], ErrValue))
		return
	}
	if r.at == leftOut || peer == leftOut {
		return
	}
	r.cable(line, ibEnd{r.guid, from}, ibEnd{peerGUID, to}, peer, r.spec(line, rest))
}

// spec returns the link of a speed such as 4xEDR.
func (r *ibReader) spec(line int, text string) topology.LinkSpec {
	spec := r.cfg.Equipment.Link
	r.assume(line, NoLatency)
	m := ibSpeed.FindStringSubmatch(text)
	if m == nil {
		r.assume(line, NoSpeed)
		return spec
	}
	lane, known := ibLanes[m[2]]
	if !known {
		r.note(line, Assumed, "speed "+m[0], Unknown, bandwidthText(spec.Bandwidth))
		return spec
	}
	width, _ := strconv.ParseFloat(m[1], 64)
	if bits, ok := r.bandwidth(line, width*lane*1e6); ok {
		spec.Bandwidth = bits
	}
	return spec
}

// cable takes what one end reports a link: both ends should report the same.
func (r *ibReader) cable(line int, from, to ibEnd, peer int, spec topology.LinkSpec) {
	here, known := r.ports[from]
	there, knownThere := r.ports[to]
	title := fmt.Sprintf("port %d of %s to port %d of %s", from.port, r.nodes[r.at].label, to.port, r.nodes[peer].label)
	switch {
	case !known && !knownThere && from != to:
		r.ports[from], r.ports[to] = ibCable{len(r.links), true}, ibCable{len(r.links), false}
		r.links = append(r.links, link{ends: [2]int{r.at, peer}, ports: [2]int{from.port, to.port}, spec: spec, line: line})
		r.other = append(r.other, to)
	case !known || !knownThere || here.link != there.link || from == to:
		r.note(line, Skipped, title, Contradiction, "")
	case here.reported:
		r.note(line, Skipped, title, Repeated, "")
	default:
		r.ports[from] = ibCable{here.link, true}
		if l := &r.links[here.link]; l.spec.Bandwidth != spec.Bandwidth {
			l.spec.Bandwidth = min(l.spec.Bandwidth, spec.Bandwidth)
			r.note(line, Changed, "speed of "+title, SpeedsDiffer, bandwidthText(l.spec.Bandwidth))
		}
	}
}

// finish notes what only one end reported, and what nothing described.
func (r *ibReader) finish() {
	for i, other := range r.other {
		if r.own[other.guid] && !r.ports[other].reported {
			l := r.links[i]
			r.note(l.line, Assumed, fmt.Sprintf("port %d of %s", other.port, r.nodes[l.ends[1]].label), OneSided, "the link of the other end")
		}
	}
	for _, guid := range r.mentioned {
		if at, ok := r.byID[guid]; ok && !r.own[guid] {
			r.note(r.nodes[at].line, Assumed, strconv.Quote(r.nodes[at].label), NotDescribed, "a "+r.nodes[at].kind.String())
		}
	}
}
