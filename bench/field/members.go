package field

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tributary-fabric/tributary/hostlib"
)

// Communicator is the name of the group that measures.
const Communicator = "collbench"

// ErrMembers is wrapped by the errors of ReadMembers.
var ErrMembers = errors.New("invalid list of members")

// ReadMembers reads a list of members by rank: a line each, with the host's
// name and the TCP address of its Join. Lines that are empty or begin with #
// count for nothing. Errors begin with the file's name and the line.
func ReadMembers(r io.Reader, name string) ([]hostlib.Member, error) {
	var members []hostlib.Member
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s:%d: %d words, want a host's name and its address: %w", name, n, len(fields), ErrMembers)
		}
		host, process := SplitProcess(fields[0])
		members = append(members, hostlib.Member{Host: host, Process: process, Addr: fields[1]})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("%s: nobody is in it: %w", name, ErrMembers)
	}
	return members, nil
}

// SplitProcess returns the host and the label of a process of it, "h1#2", or of a host's only one.
func SplitProcess(name string) (host, process string) {
	host, process, _ = strings.Cut(name, "#")
	return host, process
}

func processName(m hostlib.Member) string {
	if m.Process == "" {
		return m.Host
	}
	return m.Host + "#" + m.Process
}

// WriteMembers writes what ReadMembers reads.
func WriteMembers(w io.Writer, members []hostlib.Member) error {
	for _, m := range members {
		if _, err := fmt.Fprintf(w, "%s %s\n", processName(m), m.Addr); err != nil {
			return fmt.Errorf("writing the members: %w", err)
		}
	}
	return nil
}
