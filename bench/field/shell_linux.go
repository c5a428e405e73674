package field

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrShell is wrapped by the errors of Shell.
var ErrShell = errors.New("cannot run this on that host")

// Shell is the remote shell of a launcher of MPI: its words are options, which
// mean nothing, a host, and a command, which takes this process's place in the
// host's namespace, with a name of its own as a host has. Namespaces has these
// by the hosts' addresses. It returns only errors.
func Shell(namespaces map[string]string, words []string) error {
	host, command, err := splitShell(words)
	if err != nil {
		return err
	}
	name, ok := namespaces[host]
	if !ok {
		return fmt.Errorf("%w: no host has the address %q", ErrShell, host)
	}
	runtime.LockOSThread() // it becomes the process's only thread
	space, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("%w: namespace %s: %w", ErrShell, name, err)
	}
	if err := errors.Join(netns.Set(space), space.Close()); err != nil {
		return fmt.Errorf("%w: namespace %s: %w", ErrShell, name, err)
	}
	if err := settle(name); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrShell, name, err)
	}
	return fmt.Errorf("%w: %w", ErrShell, unix.Exec("/bin/sh", []string{"sh", "-c", command}, os.Environ()))
}

// settle gives the process what a host has for itself besides a network: a name,
// and a /sys that shows the host's interfaces, by which some find these.
func settle(name string) error {
	if err := unix.Unshare(unix.CLONE_NEWUTS | unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("a host of its own: %w", err)
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("its name: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("its /sys: %w", err)
	}
	return nil
}

// splitShell takes a remote shell's words apart, as rsh and ssh do: the
// command's words are joined by spaces, for a shell to read.
func splitShell(words []string) (host, command string, err error) {
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		if words[0] == "-l" && len(words) > 1 { // a user's name follows
			words = words[1:]
		}
		words = words[1:]
	}
	if len(words) < 2 {
		return "", "", fmt.Errorf("%w: want a host and a command", ErrShell)
	}
	return words[0], strings.Join(words[1:], " "), nil
}
