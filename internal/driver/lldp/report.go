package lldp

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/neighbor"
)

// report logs the neighbours that are new, and those that are gone.
func (s *Service) report() {
	now := map[string]string{}
	for port, p := range s.Ports() {
		if len(p.Neighbors) > 0 {
			now[port] = named(p.Neighbors)
		}
	}
	for port, names := range now {
		if s.reported[port] != names && s.mayLog() {
			s.cfg.Log.Info("neighbours", slog.String("port", port), slog.String("are", names))
		}
	}
	for port, names := range s.reported {
		if now[port] == "" && s.mayLog() {
			s.cfg.Log.Info("no neighbour", slog.String("port", port), slog.String("was", names))
		}
	}
	s.reported = now
}

// logMost are the most lines about neighbours in a second: who forges them does not fill
// the log.
const logMost = 50

// mayLog counts a line, and reports whether it is to be written.
func (s *Service) mayLog() bool {
	if now := s.clock.Now(); now.Sub(s.logSince) >= time.Second {
		s.logSince, s.logged = now, 0
	}
	s.logged++
	return s.logged <= logMost
}

// named returns the names of neighbours and of their ports.
func named(all []neighbor.Neighbor) string {
	var names []string
	for i := range all {
		n := &all[i]
		name := cmp.Or(n.Tributary.Name, n.SystemName, n.Chassis.String()) + " " + n.Port.String()
		if n.Loop {
			name += " (a loop: this machine itself)"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
