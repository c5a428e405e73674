package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/managerd"
	"github.com/tributary-fabric/tributary/internal/driver/runner"
)

// KillSwitch ends a switch's agent as the death of its process would.
func (f *Fabric) KillSwitch(name string) error {
	i, err := f.switchIndex(name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	s := f.switches[i]
	f.switches[i].agent = nil
	f.mu.Unlock()
	if s.agent == nil {
		return fmt.Errorf("%w: switch %s is dead", ErrState, name)
	}
	s.agent.Kill()
	return nil
}

// RestartSwitch starts the agent of a switch that was killed, with nothing of
// what it had, and returns when the manager, if it lives, has it again.
func (f *Fabric) RestartSwitch(ctx context.Context, name string) error {
	i, err := f.switchIndex(name)
	if err != nil {
		return err
	}
	m := f.liveManager()
	if m != nil && !f.lives(i) { // else the new agent could not be distinguished from the old
		if err := f.awaitSwitch(ctx, m, i, false); err != nil {
			return err
		}
	}
	if err := f.revive(i); err != nil || m == nil {
		return err
	}
	return f.awaitSwitch(ctx, m, i, true)
}

func (f *Fabric) lives(i int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.switches[i].agent != nil
}

// revive starts a dead switch's agent where it was.
func (f *Fabric) revive(i int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return ErrClosed
	case f.unattended(i):
		return fmt.Errorf("%w: switch %s has no agent", ErrState, f.graph.Name(f.graph.Switch(i)))
	case f.switches[i].agent != nil:
		return fmt.Errorf("%w: switch %s lives", ErrState, f.graph.Name(f.graph.Switch(i)))
	}
	return f.startSwitch(i, f.switches[i].address)
}

// KillManager ends the manager as the death of its process would.
func (f *Fabric) KillManager() error {
	f.mu.Lock()
	m := f.manager
	f.manager = nil
	f.mu.Unlock()
	if m == nil {
		return fmt.Errorf("%w: there is no manager", ErrState)
	}
	m.Kill()
	return nil
}

// RestartManager starts the manager where one was killed, with what its store kept. It
// does not wait until the manager has the switches.
func (f *Fabric) RestartManager() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return ErrClosed
	case f.cfg.WithoutManager || f.manager != nil:
		return fmt.Errorf("%w: the manager lives, or there is none", ErrState)
	}
	m, err := managerd.Start(f.managerConfig)
	if err != nil {
		return fmt.Errorf("embedded: %w", err)
	}
	f.manager = m
	return nil
}

// Manager returns the manager, for what takes more; nil: it is dead, or there is none.
func (f *Fabric) Manager() *managerd.Daemon { return f.liveManager() }

func (f *Fabric) liveManager() *managerd.Daemon {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.manager
}

func (f *Fabric) switchIndex(name string) (int, error) {
	n, ok := f.graph.Lookup(name)
	if !ok || !f.graph.IsSwitch(n) {
		return 0, fmt.Errorf("%w: switch %q", ErrUnknown, name)
	}
	if f.cfg.WithoutManager {
		return 0, fmt.Errorf("%w: the fabric runs without its switches", ErrState)
	}
	return f.graph.SwitchIndex(n), nil
}

// awaitSwitch waits until the manager has, or has lost, a switch.
func (f *Fabric) awaitSwitch(ctx context.Context, m *managerd.Daemon, i int, connected bool) error {
	n := f.graph.Switch(i)
	err := await(ctx, func() (bool, error) {
		fabric, err := m.Topology(ctx)
		return err == nil && fabric.Nodes[n].Switch.Connected == connected, err
	})
	if err != nil {
		return fmt.Errorf("embedded: waiting for the manager to see switch %s: %w", f.graph.Name(n), err)
	}
	return nil
}

// period is the time between two looks at what is waited for.
const period = 2 * time.Millisecond

// await waits until a condition holds.
func await(ctx context.Context, holds func() (bool, error)) error {
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		if runner.Pause(ctx, period) != nil {
			return ctx.Err()
		}
	}
}
