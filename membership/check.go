package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// Check reports what is wrong with c on this host: what Validate does, and what
// would keep Join from starting a node, whoever has its port. It listens at a free
// one for a moment, and leaves State as it is.
func (c Config) Check(ctx context.Context) error {
	if err := c.Validate(); err != nil {
		return err
	}
	c = c.withDefaults()
	seeds, supervisors, err := c.locate(ctx)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if _, err := net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrConfig, c.Listen, err)
	}
	listener, socket, _, err := c.listen(ctx, net.JoinHostPort(host, "0"), slices.Concat(seeds, supervisors))
	if err == nil {
		err = errors.Join(listener.Close(), socket.Close())
	}
	_, trust := c.trust()
	return errors.Join(err, trust, checkState(c.State))
}

// locate finds the addresses of those that the node asks first, and the one where
// it listens.
func (c *Config) locate(ctx context.Context) (seeds, supervisors []netip.AddrPort, err error) {
	if seeds, err = locate(ctx, c.Bootstrap); err != nil {
		return nil, nil, err
	}
	if supervisors, err = locate(ctx, c.Supervisors); err != nil {
		return nil, nil, err
	}
	c.Listen, err = listenAt(ctx, c, slices.Concat(seeds, supervisors))
	return seeds, supervisors, err
}

// checkState returns why nextIncarnation would fail.
func checkState(file string) error {
	if file == "" {
		return nil
	}
	if _, err := readIncarnation(file); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new-*")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
