package hostlib

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tributary-fabric/tributary/internal/core/peering"
	"github.com/tributary-fabric/tributary/internal/core/schedule"
	"github.com/tributary-fabric/tributary/internal/wire"
)

// Member is one member of a group: a host of the fabric, and where it is to be
// reached.
type Member struct {
	Host string // name in the fabric's topology
	Addr string // TCP address of its Join; empty: where Config.Membership or Config.Resolve says
	// Process is the label of one of several processes of the host (Config.Process);
	// empty where there is one.
	Process string
	// Leaf names the switch that the host is connected to, or its rack; empty: it is not known.
	// Algorithms of hosts arrange members by leaf, so that less goes between leaves.
	Leaf string
}

// process returns the name of a member's process among all.
func (m Member) process() string { return processName(m.Host, m.Process) }

// isProcess reports whether that is its name.
func (m *Member) isProcess(name string) bool {
	rest, is := strings.CutPrefix(name, m.Host)
	if is && m.Process != "" {
		rest, is = strings.CutPrefix(rest, peering.Mark)
	}
	return is && rest == m.Process
}

// validate reports what is wrong with a member's name. Others report it, and the manager
// takes UTF-8 alone.
func (m Member) validate() error {
	name := m.process()
	switch {
	case m.Host == "":
		return errors.New("no host name")
	case len(m.Host) > maxName:
		return fmt.Errorf("a host name of %d bytes, want at most %d", len(m.Host), maxName)
	case len(name) > maxName:
		return fmt.Errorf("a process label of %d bytes after a host name of %d, want at most %d", len(m.Process), len(m.Host), max(0, maxName-len(m.Host)-len(peering.Mark)))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("the name %q is not printable UTF-8", name)
	case strings.Count(name, peering.Mark) > min(1, len(m.Process)):
		return fmt.Errorf("the name %q has a %q", name, peering.Mark)
	}
	return nil
}

func processName(host, label string) string {
	if label == "" {
		return host
	}
	return host + peering.Mark + label
}

// arrange returns the ranks by leaf, and by host, for schedule.Call.Order.
func arrange(members []Member) []int {
	places := make([][]string, len(members))
	for rank, m := range members {
		places[rank] = []string{m.Leaf, m.Host}
	}
	return schedule.InOrder(places)
}

// checkMembers returns this host's rank among members.
func (h *Host) checkMembers(members []Member) (int, error) {
	if len(members) == 0 || len(members) > wire.MaxRank {
		return 0, fmt.Errorf("%w: %d of them, want 1 to %d", ErrMembers, len(members), wire.MaxRank)
	}
	own, seen, at := -1, make(map[string]int, len(members)), make(map[string]int, len(members))
	processes := make(map[string]int, len(members))
	for i, m := range members {
		if m.Host == "" || m.Addr == "" && h.locate == nil {
			return 0, fmt.Errorf("%w: rank %d lacks a host or an address", ErrMembers, i)
		}
		if err := m.validate(); err != nil {
			return 0, fmt.Errorf("%w: rank %d: %w", ErrMembers, i, err)
		}
		if first, twice := seen[m.process()]; twice {
			return 0, fmt.Errorf("%w: %s is rank %d and rank %d", ErrMembers, m.process(), first, i)
		}
		if processes[m.Host]++; processes[m.Host] > maxProcesses {
			return 0, fmt.Errorf("%w: host %s has more than %d processes", ErrMembers, m.Host, maxProcesses)
		}
		if first, twice := at[m.Addr]; twice && m.Addr != "" {
			return 0, fmt.Errorf("%w: %s is the address of rank %d (%s) and of rank %d (%s)", ErrMembers, m.Addr, first, members[first].process(), i, m.process())
		}
		seen[m.process()], at[m.Addr] = i, i
		if m.Host == h.name && m.Process == h.cfg.Process {
			own = i
		}
	}
	if own < 0 {
		return 0, fmt.Errorf("%w: this host, %s, is not among the %d", ErrMembers, processName(h.name, h.cfg.Process), len(members))
	}
	return own, nil
}
