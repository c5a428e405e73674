//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package transport

import (
	"errors"
	"os"
	"time"
)

// tryRead reads a datagram if one is there. A deadline in the past would find
// nothing.
func (p *plain) tryRead() error {
	p.arm(time.Now().Add(time.Millisecond))
	if err := p.park(); !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}
