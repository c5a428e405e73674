package field

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tributary-fabric/tributary/bench/gauge"
	"github.com/tributary-fabric/tributary/topology"
)

// Load is what the processors have done so far, and for whom.
type Load struct {
	Fabric time.Duration // for processes in the fabric's namespaces
	Own    time.Duration // for this process
	Busy   time.Duration // for any process
	Whole  time.Duration // idle or not
}

// Strangers returns the share of the processors that others had since an
// earlier reading, at the least: those that are neither of the fabric nor this
// process. What the kernel did for packets that arrived counts for nobody, and
// is in the fabric's time where it interrupted that.
func (l Load) Strangers(before Load) float64 {
	whole := l.Whole - before.Whole
	if whole <= 0 {
		return 0
	}
	others := (l.Busy - l.Fabric - l.Own) - (before.Busy - before.Fabric - before.Own)
	return max(0, float64(others)/float64(whole))
}

// Load reads what the processors have done. Of processes that have ended it does
// not know.
func (f *Fabric) Load() (l Load, err error) {
	spaces, err := f.spaces()
	if err != nil {
		return l, err
	}
	m, err := gauge.ReadMachine()
	if err != nil {
		return l, err
	}
	user, system := gauge.Usage()
	l.Own = user + system
	l.Busy = m.User + m.System
	l.Whole = l.Busy + m.Soft + m.Hard + m.Idle + m.Stolen
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return l, err
	}
	for _, p := range processes {
		space, err := os.Readlink(filepath.Join(p, "ns", "net"))
		if err != nil || !spaces[space] || p == "/proc/"+strconv.Itoa(os.Getpid()) {
			continue // it has ended, or is another's
		}
		stat, err := os.ReadFile(filepath.Join(p, "stat"))
		if err != nil {
			continue // it has ended
		}
		spent, err := parseStat(stat)
		if err != nil {
			return l, fmt.Errorf("%s/stat: %w", p, err)
		}
		l.Fabric += spent
	}
	return l, nil
}

// spaces returns the names of the namespaces of all nodes, as /proc has them.
func (f *Fabric) spaces() (map[string]bool, error) {
	all := map[string]bool{}
	for n := range topology.NodeID(f.lab.Topology().Nodes()) {
		err := f.lab.Do(n, func() error {
			space, err := os.Readlink("/proc/thread-self/ns/net")
			all[space] = true
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// errStat: a process's file is not as the kernel writes it.
var errStat = errors.New("no user and system time")

// statTick is the unit of a process's times.
const statTick = 10 * time.Millisecond

// parseStat returns the processor time in a process's stat file: its 14th and
// 15th field, of which the second is a name in parentheses, with anything in it.
func parseStat(stat []byte) (time.Duration, error) {
	const after = 11 // fields between the name and these
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < after+2 {
		return 0, errStat
	}
	var sum uint64
	for _, text := range fields[after : after+2] {
		n, err := strconv.ParseUint(string(text), 10, 40)
		if err != nil {
			return 0, errors.Join(errStat, err)
		}
		sum += n
	}
	return time.Duration(sum) * statTick, nil
}
