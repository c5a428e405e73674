package hostlib

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/peer"
)

// RailStatus is a rail of this host as it is now, with the sums of its paths.
type RailStatus struct {
	Rail             // with its interface, address and name, whether they were given or found
	Up     bool      // its interface can carry it
	Fault  error     // why it cannot; nil: it can
	Since  time.Time // when that was found
	IsMade bool      // by AddRail, or found on an interface; not in Config.Rails

	Peers    int       // hosts to which there are paths on it
	Paths    int       // that carry frames
	Missing  int       // that are wanted, and are down or being made
	Traffic            // since the rail was added
	LastLoss error     // why the last path on it was lost, or could not be made; nil: none was
	LostAt   time.Time // when
}

// Traffic is what went over paths, and what was measured on them. Bytes are of frames with
// their heads, without the headers of TLS, TCP, UDP and IP.
type Traffic struct {
	BytesOut, BytesIn uint64
	Resent            uint64 // segments that were not acknowledged when their path was lost, and went over another
	ResentBytes       uint64
	Lost              uint64 // paths that ended without being closed
	Recovered         uint64 // paths that were made again in their place
	Failed            uint64 // calls of this host for a path that failed

	InFlight int           // bytes that are sent and not acknowledged
	Queued   int           // bytes that wait to be sent
	Rate     uint64        // bit/s, as measured; of several paths the highest; 0: not known
	Delay    time.Duration // of a round trip without a queue; of several paths the lowest; 0: not known
}

// PathState is whether a path carries frames.
type PathState uint8

// The states of paths.
const (
	PathUp         = PathState(peer.PathUp)
	PathConnecting = PathState(peer.PathConnecting)
	PathDown       = PathState(peer.PathDown) // it is made again after a pause, by the host that has made the connection
)

// String returns the state's name.
func (s PathState) String() string {
	switch s {
	case PathUp:
		return "up"
	case PathConnecting:
		return "connecting"
	case PathDown:
		return "down"
	}
	return "unknown"
}

// PathStatus is a path of a connection with another host: by a rail of this host and one of
// the other's.
type PathStatus struct {
	Peer        string // the host, and its process if that has a label
	Class       string // of the connection: control, data, large, message, fragment
	Rail        string // of this host; empty: none has the path's address
	PeerRail    string // empty: the other host has one rail
	PeerAddress string
	Kind        RailKind
	State       PathState
	Since       time.Time
	Fault       error // why the last path here was lost, or could not be made, or that hosts have no rail in common; nil: none of that
	Traffic           // of this connection
}

// Rails returns this host's rails: whether their interfaces carry them, and how their paths
// do. Of a host that listens on a name none is known.
func (h *Host) Rails() []RailStatus {
	rails, _ := h.status()
	return rails
}

// Paths returns the paths to a host, or to all where its name is empty, in the order of names.
// A path that was lost is among them as long as its connection lasts.
func (h *Host) Paths(host string) []PathStatus {
	_, paths := h.status()
	return pathsTo(host, paths)
}

func pathsTo(host string, all []PathStatus) []PathStatus {
	return slices.DeleteFunc(all, func(p PathStatus) bool { return host != "" && p.Peer != host })
}

func (h *Host) status() ([]RailStatus, []PathStatus) {
	states := h.rails.set.States()
	sums, paths := h.peers.Status()
	all := make([]RailStatus, len(states))
	h.rails.mu.Lock()
	defer h.rails.mu.Unlock()
	for i, s := range states {
		r := &all[i]
		*r = RailStatus{
			Rail: Rail{
				Name: s.Name, Interface: s.Interface, Address: show(s.Address), Kind: RailKind(s.Kind),
				Bandwidth: s.Bandwidth, Network: s.Network,
			},
			Up: s.Fault == nil, Fault: s.Fault, Since: s.Since, IsMade: h.rails.new[s.Name],
		}
		if k := slices.IndexFunc(sums, func(t peer.RailStatus) bool { return t.Rail.Name == s.Name }); k >= 0 {
			t := &sums[k]
			r.Address = show(t.Rail.Address) // with its port
			r.Peers, r.Paths, r.Missing, r.Traffic = t.Peers, t.Paths, t.Missing, traffic(&t.PathCounters, &t.PathMeasure)
			r.LastLoss, r.LostAt = t.Fault, t.FaultAt
		}
	}
	list := make([]PathStatus, len(paths))
	for i := range paths {
		list[i] = pathStatus(&paths[i])
	}
	return all, list
}

var classNames = map[peer.Class]string{peer.Control: "control", peer.Data: "data", peer.Large: "large", peer.Message: "message", peer.Fragment: "fragment"}

func pathStatus(p *peer.PathStatus) PathStatus {
	return PathStatus{
		Peer: p.Peer, Class: classNames[p.Class], Rail: p.Own.Name, PeerRail: p.Theirs.Name, PeerAddress: show(p.Theirs.Address), Kind: RailKind(p.Theirs.Kind),
		State: PathState(p.State), Since: p.Since, Fault: p.Fault, Traffic: traffic(&p.PathCounters, &p.PathMeasure),
	}
}

func traffic(n *peer.PathCounters, m *peer.PathMeasure) Traffic {
	return Traffic{
		BytesOut: n.Sent, BytesIn: n.Received, Resent: n.Resent, ResentBytes: n.ResentBytes, Lost: n.Lost, Recovered: n.Recovered, Failed: n.Failed,
		InFlight: m.InFlight, Queued: m.Queued, Rate: m.Rate, Delay: m.Delay,
	}
}

// WriteRails writes a page for people: the host's rails, and the paths on them to one host, or
// to all where its name is empty.
func (h *Host) WriteRails(w io.Writer, host string) error {
	rails, paths := h.status()
	paths = pathsTo(host, paths)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RAIL\tINTERFACE\tADDRESS\tKIND\tSTATE\tPATHS\tMISSING\tPEERS\tRATE\tDELAY\tOUT\tIN\tRESENT\tLOST\tRECOVERED\tLAST LOSS")
	for i := range rails {
		r := &rails[i]
		state, last := "up", orNone(r.LastLoss)
		if !r.Up {
			state = "down: " + r.Fault.Error()
		}
		if r.LastLoss != nil {
			last = r.LostAt.UTC().Format("2006-01-02 15:04:05.000 UTC ") + last
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%v\t%s\t%d\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%s\n", r.Name, cmp.Or(r.Interface, "-"), r.Address, r.Kind, state,
			r.Paths, r.Missing, r.Peers, rateText(r.Rate), delayText(r.Delay), r.BytesOut, r.BytesIn, r.ResentBytes, r.Lost, r.Recovered, last)
	}
	if len(paths) > 0 {
		fmt.Fprintln(t, "\nPEER\tCLASS\tRAIL\tPEER'S\tADDRESS\tSTATE\tSINCE\tRATE\tDELAY\tOUT\tIN\tIN FLIGHT\tQUEUED\tRESENT\tLOST\tLAST FAULT")
	}
	for i := range paths {
		p := &paths[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%v\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", p.Peer, p.Class, cmp.Or(p.Rail, "-"), cmp.Or(p.PeerRail, "-"), p.PeerAddress, p.State,
			p.Since.UTC().Format("15:04:05.000"), rateText(p.Rate), delayText(p.Delay), p.BytesOut, p.BytesIn, p.InFlight, p.Queued, p.ResentBytes, p.Lost, orNone(p.Fault))
	}
	return t.Flush()
}

func orNone(err error) string {
	if err == nil {
		return "-"
	}
	return err.Error()
}

func rateText(bits uint64) string {
	if bits == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g Mbit/s", float64(bits)/1e6)
}

func delayText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Microsecond).String()
}

// TreeLink is a link of this member in the communicator's tree of hosts, and the rails that it
// uses.
type TreeLink struct {
	Rank     int // of the neighbour
	Host     string
	IsParent bool
	Paths    []PathStatus // of all connections with the neighbour; none: there is no connection now
}

// HostTree returns this member's links in the tree of hosts: first the one to its parent, then
// those to its children. Operations use it where no tree of switches is there, and to form the
// communicator and change its epochs. All rails that two hosts have in common carry a link.
func (c *Communicator) HostTree() []TreeLink {
	var all []TreeLink
	paths := c.host.Paths("")
	for rank, l := range c.links {
		m := c.members[rank]
		all = append(all, TreeLink{Rank: rank, Host: m.Host, IsParent: l.calls, Paths: pathsTo(m.process(), slices.Clone(paths))})
	}
	slices.SortFunc(all, func(a, b TreeLink) int {
		if a.IsParent != b.IsParent {
			if a.IsParent {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Rank, b.Rank)
	})
	return all
}
