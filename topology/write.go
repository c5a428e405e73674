package topology

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// fileDocument is the file format as encoding/json writes it.
type fileDocument struct {
	Version  int          `json:"version"`
	Name     string       `json:"name,omitempty"`
	Defaults fileDefaults `json:"defaults"`
	Hosts    []any        `json:"hosts"` // a name or a fileHost
	Switches []fileSwitch `json:"switches"`
	Links    []fileLink   `json:"links"`
}

type fileDefaults struct {
	Link   *fileSpec       `json:"link,omitempty"`
	Host   *fileHost       `json:"host,omitempty"`
	Switch *fileCapability `json:"switch,omitempty"`
}

type fileSpec struct {
	Bandwidth int64  `json:"bandwidth"`
	Latency   string `json:"latency"`
}

type fileCapability struct {
	Functions any    `json:"functions"` // "all", "none" or []string
	Types     any    `json:"types"`
	Slots     int    `json:"slots"`
	Children  int    `json:"children"`
	Chunk     int    `json:"chunk"`
	Window    *int   `json:"window,omitempty"` // where some switch has one: 0 is not the default there
	Speed     *Speed `json:"speed,omitempty"`  // where some switch has one
	Plain     *bool  `json:"plain,omitempty"`  // likewise
}

type fileHost struct {
	Name  string `json:"name,omitempty"`
	Speed Speed  `json:"speed"`
}

type fileSwitch struct {
	Name  string `json:"name"`
	Layer int    `json:"layer,omitempty"`
	*fileCapability
}

type fileLink struct {
	Between   [2]string      `json:"between"`
	Ports     [2]Port        `json:"ports"`
	Addresses *[2]netip.Addr `json:"addresses,omitempty"`
	*fileSpec
}

// document returns g in full: a generated fabric, too, as hosts, switches and
// links. The first link's and first switch's properties become the defaults.
func (g *Graph) document() *fileDocument {
	doc := &fileDocument{
		Version: FormatVersion, Name: g.fabric,
		Hosts: make([]any, g.Hosts()), Switches: make([]fileSwitch, g.Switches()), Links: make([]fileLink, g.Links()),
	}
	if len(g.ends) > 0 {
		doc.Defaults.Link = specOf(g.specs[g.spec[0]])
	}
	if len(g.caps) > 0 {
		doc.Defaults.Switch = g.capabilityOf(g.capSets[g.caps[0]])
	}
	if g.hostSpeed.Known() {
		doc.Defaults.Host = &fileHost{Speed: g.hostSpeed}
	}
	for h := range doc.Hosts {
		name, speed := g.Name(NodeID(h)), g.Speed(NodeID(h))
		if doc.Hosts[h] = name; speed != g.hostSpeed {
			doc.Hosts[h] = fileHost{name, speed}
		}
	}
	natural := g.layersFromHosts()
	for i := range doc.Switches {
		n := g.Switch(i)
		s := fileSwitch{Name: g.Name(n)}
		if natural[n] != g.layers[n] {
			s.Layer = g.Layer(n)
		}
		if g.caps[i] != g.caps[0] {
			s.fileCapability = g.capabilityOf(g.Capability(n))
		}
		doc.Switches[i] = s
	}
	for l, link := range g.AllLinks() {
		f := fileLink{Ports: [2]Port{link.Ends[0].Port, link.Ends[1].Port}}
		f.Between = [2]string{g.Name(link.Ends[0].Node), g.Name(link.Ends[1].Node)}
		if g.addresses != nil && g.addresses[l][0].IsValid() {
			f.Addresses = &g.addresses[l]
		}
		if g.spec[l] != g.spec[0] {
			f.fileSpec = specOf(link.LinkSpec)
		}
		doc.Links[l] = f
	}
	return doc
}

func specOf(s LinkSpec) *fileSpec {
	return &fileSpec{Bandwidth: s.Bandwidth, Latency: latencyText(s.Latency)}
}

func (g *Graph) capabilityOf(c Capability) *fileCapability {
	f := &fileCapability{Functions: names(c.Functions.List()), Types: names(c.Types.List()), Slots: c.Slots, Children: c.Children, Chunk: c.Chunk}
	if slices.ContainsFunc(g.capSets, func(c Capability) bool { return c.Window > 0 }) {
		f.Window = &c.Window
	}
	if slices.ContainsFunc(g.capSets, func(c Capability) bool { return c.Speed.Known() }) {
		f.Speed = &c.Speed
	}
	if slices.ContainsFunc(g.capSets, func(c Capability) bool { return c.Plain }) {
		f.Plain = &c.Plain
	}
	if c.Functions == 0 || c.Functions == AllFunctions() {
		f.Functions = c.Functions.String()
	}
	if c.Types == 0 || c.Types == AllTypes() {
		f.Types = c.Types.String()
	}
	return f
}

// WriteJSON writes g in the file format, as JSON. Read gives an Equal graph.
func WriteJSON(w io.Writer, g *Graph) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(g.document()); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

// WriteYAML writes g in the file format, as YAML with a line a host, switch and
// link. Read gives an Equal graph.
func WriteYAML(w io.Writer, g *Graph) error {
	doc := g.document()
	y := &yamlWriter{w: bufio.NewWriter(w)}
	y.printf("version: %d\n", doc.Version)
	if doc.Name != "" {
		y.printf("name: %s\n", y.quote(doc.Name))
	}
	if doc.Defaults != (fileDefaults{}) {
		y.printf("defaults:\n")
	}
	if s := doc.Defaults.Link; s != nil {
		y.printf("  link: {%s}\n", y.spec(s))
	}
	if h := doc.Defaults.Host; h != nil {
		y.printf("  host: {%s}\n", y.speed(h.Speed))
	}
	if c := doc.Defaults.Switch; c != nil {
		y.printf("  switch: {%s}\n", y.capability(c))
	}
	y.list("hosts", len(doc.Hosts), func(i int) string { return y.hostLine(doc.Hosts[i]) })
	y.list("switches", len(doc.Switches), func(i int) string { return y.switchLine(doc.Switches[i]) })
	y.list("links", len(doc.Links), func(i int) string { return y.linkLine(doc.Links[i]) })
	if err := y.w.Flush(); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

// yamlWriter leaves the first error of writing to the final Flush.
type yamlWriter struct{ w *bufio.Writer }

func (y *yamlWriter) printf(format string, args ...any) { fmt.Fprintf(y.w, format, args...) }

func (y *yamlWriter) list(field string, n int, line func(int) string) {
	if n == 0 {
		y.printf("%s: []\n", field)
		return
	}
	y.printf("%s:\n", field)
	for i := range n {
		y.printf("  - %s\n", line(i))
	}
}

func (y *yamlWriter) hostLine(host any) string {
	if h, ok := host.(fileHost); ok {
		return fmt.Sprintf("{name: %s, %s}", y.quote(h.Name), y.speed(h.Speed))
	}
	return y.quote(host.(string))
}

func (y *yamlWriter) switchLine(s fileSwitch) string {
	fields := []string{"name: " + y.quote(s.Name)}
	if s.Layer > 0 {
		fields = append(fields, fmt.Sprintf("layer: %d", s.Layer))
	}
	if s.fileCapability != nil {
		fields = append(fields, y.capability(s.fileCapability))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func (y *yamlWriter) linkLine(l fileLink) string {
	line := fmt.Sprintf("{between: [%s, %s], ports: [%d, %d]", y.quote(l.Between[0]), y.quote(l.Between[1]), l.Ports[0], l.Ports[1])
	if a := l.Addresses; a != nil {
		line += fmt.Sprintf(", addresses: [%q, %q]", a[0].String(), a[1].String())
	}
	if l.fileSpec != nil {
		line += ", " + y.spec(l.fileSpec)
	}
	return line + "}"
}

func (y *yamlWriter) spec(s *fileSpec) string {
	return fmt.Sprintf("bandwidth: %s, latency: %s", unitText(s.Bandwidth), s.Latency)
}

func (y *yamlWriter) capability(c *fileCapability) string {
	text := fmt.Sprintf("functions: %s, types: %s, slots: %d, children: %d, chunk: %d",
		flow(c.Functions), flow(c.Types), c.Slots, c.Children, c.Chunk)
	if c.Window != nil {
		text += fmt.Sprintf(", window: %d", *c.Window)
	}
	if c.Speed != nil {
		text += ", " + y.speed(*c.Speed)
	}
	if c.Plain != nil {
		text += fmt.Sprintf(", plain: %t", *c.Plain)
	}
	return text
}

func (y *yamlWriter) speed(s Speed) string {
	var parts []string
	for i, n := range []int64{s.Bytes, s.Packets} {
		if n == 0 {
			continue
		}
		text := lineRate
		if n != LineRate {
			text = unitText(max(n, 0))
		}
		parts = append(parts, []string{"bytes: ", "packets: "}[i]+text)
	}
	return "speed: {" + strings.Join(parts, ", ") + "}"
}

func flow(set any) string {
	if list, ok := set.([]string); ok {
		return "[" + strings.Join(list, ", ") + "]"
	}
	return fmt.Sprint(set)
}

// unitText writes a number in the largest unit that leaves a whole one.
func unitText(n int64) string {
	for _, unit := range []struct {
		bits int64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if n%unit.bits == 0 && n > 0 {
			return fmt.Sprintf("%d%s", n/unit.bits, unit.name)
		}
	}
	return fmt.Sprint(n)
}

// latencyText writes a duration in the largest unit that leaves a whole number.
func latencyText(d time.Duration) string {
	for _, unit := range []struct {
		in   time.Duration
		name string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "us"}} {
		if d%unit.in == 0 && d > 0 {
			return fmt.Sprintf("%d%s", d/unit.in, unit.name)
		}
	}
	return fmt.Sprintf("%dns", d.Nanoseconds())
}

// quote writes a string plainly where no reader of YAML can take it for
// anything else, and else in quotes as in JSON.
func (y *yamlWriter) quote(s string) string {
	plain := s != "" && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z') && CheckName(s) == nil
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "true", "false", "on", "off", "null":
		plain = false
	}
	if plain {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("topology: a string that JSON cannot write")
	}
	return string(quoted)
}
