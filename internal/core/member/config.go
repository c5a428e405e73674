package member

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

// ErrConfig is wrapped by all errors of Config.Validate.
var ErrConfig = errors.New("member: invalid configuration")

// Settings are the same at all nodes of a zone.
type Settings struct {
	Theta int           // reporters after which a suspect is dead, 1 or more; see Core.threshold for small views
	Kr    int           // random neighbours that a node chooses
	Ks    int           // ring successors, Theta or more
	Tau   time.Duration // an update goes out this long after its first event

	Heartbeat time.Duration // each watcher of a node hears from it this often; the watchers take turns
	Grace     time.Duration // how long a node whose heartbeat is overdue is probed before it is suspected
	Confirm   time.Duration // how long a node whose connection failed is
	Connect   time.Duration // how long a dial may take, greeting included

	Health int // most steps of local health; a node that is slow itself waits up to 1 + Health times as long. 0: off

	History   int           // nodes in the history above which it is pruned
	Remember  time.Duration // by removing those gone for longer
	Discovery Discovery

	Stealth int // a node that starts is silent for this times log2 of the group's size times Tau; 0: not at all
}

// Discovery is how often others are asked that are not in the view. The time
// between two requests grows in proportion to the time since the node started,
// or the view last lost somebody. A node alone has that for itself; all nodes of
// a view together ask their history so often.
type Discovery struct {
	First time.Duration // least time between two requests
	Share int           // the time since is divided by this, 1 or more
	Last  time.Duration // largest time between two requests
}

// Config is what a core is given once.
type Config struct {
	Settings
	Self        gossip.ID
	Incarnation uint64      // of this start; rises strictly with every start. Never 0
	Bootstrap   []gossip.ID // the set B; an anonymous ID is whoever answers there
	Seed        uint64      // of the core's choices and of its tags; not to be guessed
	Identity    Identity    // all nodes of a zone have one, or none; nil: everybody is believed
}

// DefaultSettings returns the settings that the documentation's figures hold for.
func DefaultSettings() Settings {
	return Settings{
		Theta: 1, Kr: 3, Ks: 1, Tau: 200 * time.Millisecond,
		Heartbeat: time.Second, Grace: 375 * time.Millisecond, Confirm: 20 * time.Millisecond, Connect: time.Second,
		Health:  8,
		History: 4096, Remember: 10 * time.Minute,
		Discovery: Discovery{First: 100 * time.Millisecond, Share: 16, Last: 30 * time.Second},
	}
}

// Validate reports what is wrong with s; the error wraps ErrConfig.
func (s Settings) Validate() error {
	switch {
	case s.Theta < 1 || s.Ks < s.Theta || s.Kr < 1:
		return fmt.Errorf("%w: Theta %d, Ks %d, Kr %d: want 1 <= Theta <= Ks, 1 <= Kr", ErrConfig, s.Theta, s.Ks, s.Kr)
	case s.Ks+s.Kr > maxWatchers:
		return fmt.Errorf("%w: Ks %d and Kr %d: together at most %d", ErrConfig, s.Ks, s.Kr, maxWatchers)
	case s.Tau <= 0 || s.Heartbeat <= 0 || s.Connect <= 0:
		return fmt.Errorf("%w: Tau %v, Heartbeat %v, Connect %v: all want to be positive", ErrConfig, s.Tau, s.Heartbeat, s.Connect)
	case s.Confirm < probesInConfirm || s.Grace < s.Confirm:
		return fmt.Errorf("%w: Confirm %v, Grace %v: want 0 < Confirm <= Grace", ErrConfig, s.Confirm, s.Grace)
	case s.Health < 0 || s.Stealth < 0:
		return fmt.Errorf("%w: Health %d, Stealth %d: negative", ErrConfig, s.Health, s.Stealth)
	case s.History < 0 || s.Remember < 0:
		return fmt.Errorf("%w: History %d, Remember %v: negative", ErrConfig, s.History, s.Remember)
	case s.Discovery.First <= 0 || s.Discovery.Share < 1 || s.Discovery.Last < s.Discovery.First:
		return fmt.Errorf("%w: Discovery %+v: want 0 < First <= Last, Share 1 or more", ErrConfig, s.Discovery)
	}
	return nil
}

// maxWatchers bounds Ks + Kr, so that a heartbeat's turns are a byte.
const maxWatchers = 64

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c Config) Validate() error {
	if err := c.Settings.Validate(); err != nil {
		return err
	}
	if err := c.Self.Validate(); err != nil {
		return fmt.Errorf("%w: self: %w", ErrConfig, err)
	}
	for _, id := range c.Bootstrap {
		if err := id.Validate(); err != nil && !id.Anonymous() {
			return fmt.Errorf("%w: bootstrap: %w", ErrConfig, err)
		}
	}
	if c.Incarnation == 0 {
		return fmt.Errorf("%w: incarnation 0", ErrConfig)
	}
	return nil
}
