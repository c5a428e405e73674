package field

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// rank is a member's process, and for rank 0 the talk with it.
type rank struct {
	*process
	out *os.File // what it says
	in  *os.File // what it is asked
}

// startRank starts a group's member that does as args say. Rank 0 talks, if it
// is to.
func (f *Fabric) startRank(group, r int, talks bool, args []string) (_ *rank, err error) {
	n, m := f.hostOf(r), f.members(group)[r]
	all := append([]string{
		"run", "--host", processName(m), "--members", f.memberFile(group), "--listen", m.Addr, "--name", nameOf(group),
		"--manager", f.managerAddr(), "--loss", f.loss(),
	}, args...)
	if rails := f.lab.HostAddrs(n); len(rails) > 1 {
		all = append(all, "--rails", strings.Join(rails, ","))
	}
	if f.cfg.TLS {
		id, dir := f.identity(n), f.trustDir()
		all = append(all, "--certificate", filepath.Join(dir, pki.CertFile(id)), "--key", filepath.Join(dir, pki.KeyFile(id)),
			"--authority", filepath.Join(dir, pki.AuthorityFile))
	}
	talks = talks && r == 0
	if talks {
		all = append(all, "--marks")
	}
	name := processName(m)
	if group > 0 {
		name += "+" + strconv.Itoa(group)
	}
	cmd := f.command(roleHost, name, all...)
	member := &rank{}
	if talks {
		var theirs [2]*os.File
		if member.out, theirs[0], err = os.Pipe(); err != nil {
			return nil, err
		}
		defer theirs[0].Close()
		if theirs[1], member.in, err = os.Pipe(); err != nil {
			return nil, errors.Join(err, member.out.Close())
		}
		defer theirs[1].Close()
		cmd.Stdout, cmd.Stdin = theirs[0], theirs[1]
	}
	member.process, err = launchMeasured(name, cmd, func(c *exec.Cmd) error { return f.lab.Start(n, c) })
	return member, err
}

func (m *rank) close() error {
	if m.out == nil {
		return nil
	}
	return errors.Join(m.out.Close(), m.in.Close())
}

// nameOf returns the name of a group's communicator.
func nameOf(group int) string {
	if group == 0 {
		return Communicator
	}
	return Communicator + "-" + strconv.Itoa(group)
}
