package process

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// What a daemon reports to the service manager that has started it (sd_notify(3)).
const (
	isReady  = "READY=1"
	isEnding = "STOPPING=1"
)

// notify notifies the service manager, if there is one that wants to know.
func notify(state string) (err error) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notifying the service manager %s: %w", state, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if _, err := c.Write([]byte(state)); err != nil {
		return fmt.Errorf("notifying the service manager %s: %w", state, err)
	}
	return nil
}
