package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/member"
	"github.com/tributary-fabric/tributary/internal/core/zone"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// Status is all that people may want to know of a node and of what it sees, at
// one moment.
type Status struct {
	Taken      time.Time `json:"taken"`
	Self       Member    `json:"self"`
	Zone       uint32    `json:"zone"`
	Management bool      `json:"management"` // it is in the management zone
	// Health is 0 while the node takes what comes in time; it rises when it is
	// late, and the node is then slower to suspect others.
	Health  int          `json:"health"`
	Gone    int          `json:"gone"`    // nodes that left the view, and are remembered
	Members []StatusLine `json:"members"` // by name, the node itself among them
	Zones   []Zone       `json:"zones,omitempty"`
}

// StatusLine is one member in a Status.
type StatusLine struct {
	Member
	Monitor   bool     `json:"monitor"`    // suspicions are reported to it at once
	Delegate  bool     `json:"delegate"`   // it speaks for its zone
	Neighbour bool     `json:"neighbour"`  // there is a connection with it
	Watched   bool     `json:"watched"`    // the node expects its heartbeats
	WatchesMe bool     `json:"watches_me"` // it expects the node's
	Suspected []string `json:"suspected_by,omitempty"`
}

// StatusPage is the path under which processes serve Node.ServeHTTP.
const StatusPage = "/members"

// statusTimeout bounds how long a page waits for the node.
const statusTimeout = 5 * time.Second

// ServeHTTP answers with the node's Status, as JSON.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), statusTimeout)
	defer cancel()
	s, err := n.Status(ctx)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s); err != nil {
		n.log.Debug("a page was not taken", slog.Any("error", err))
	}
}

// Status returns what the node is and sees.
func (n *Node) Status(ctx context.Context) (Status, error) {
	var out Status
	err := n.ask(ctx, func(s *stepper) { out = s.status() })
	out.Taken = time.Now()
	slices.SortFunc(out.Members, func(a, b StatusLine) int { return byName(a.Member, b.Member) })
	return out, err
}

// status returns what the core sees.
func (s *stepper) status() Status {
	m := s.members()
	out := Status{
		Self: s.member(m.Self().Node), Zone: s.n.cfg.Zone, Management: s.n.cfg.Management,
		Health: m.Health(), Gone: len(m.History(nil)),
		Members: make([]StatusLine, 0, m.Size()),
	}
	peers := map[member.Index]member.Peer{}
	for _, p := range m.Neighbours(nil) {
		peers[p.Node] = p
	}
	reporters := map[member.Index][]string{}
	for _, r := range m.Suspicions() {
		reporters[r.Suspect] = append(reporters[r.Suspect], s.reporter(r.Reporter))
	}
	var delegates []member.Index
	if s.tier != nil && s.tier.delegate != nil {
		delegates = s.tier.delegate.Delegates()
	}
	for _, i := range m.View() {
		p, neighbour := peers[i]
		_, monitor := s.core.Attributes().Get(s.members().Life(i), zone.MonitorKey)
		out.Members = append(out.Members, StatusLine{
			Member: s.member(i), Monitor: monitor, Delegate: slices.Contains(delegates, i),
			Neighbour: neighbour, Watched: p.Watching, WatchesMe: p.Watches, Suspected: reporters[i],
		})
	}
	if s.tier != nil && s.tier.supervisor != nil {
		out.Zones = s.tier.census()
	}
	return out
}

// reporter returns the name of who has reported; its key where it is not known.
func (s *stepper) reporter(key gossip.Key) string {
	if i, ok := s.directory.Find(key); ok {
		return s.directory.ID(i).Name()
	}
	return fmt.Sprintf("%016x", uint64(key))
}

// neighbours returns the names of the neighbours that fit.
func (s *stepper) neighbours(fits func(member.Peer) bool) []string {
	names := []string{}
	for _, p := range s.members().Neighbours(nil) {
		if fits(p) {
			names = append(names, s.directory.ID(p.Node).Name())
		}
	}
	slices.Sort(names)
	return names
}

// watchersOf returns who expects the heartbeats of a node, as far as it is known
// here.
func (s *stepper) watchersOf(i member.Index) []string {
	if i == s.members().Self().Node {
		return s.neighbours(func(p member.Peer) bool { return p.Watches })
	}
	if len(s.neighbours(func(p member.Peer) bool { return p.Node == i && p.Watching })) > 0 {
		return []string{s.n.cfg.Name}
	}
	return nil
}
