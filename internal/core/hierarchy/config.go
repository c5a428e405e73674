package hierarchy

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	wire "github.com/tributary-fabric/tributary/internal/wire/hierarchy"
)

// ErrConfig is wrapped by all errors of Settings.Validate and
// DelegateConfig.Validate.
var ErrConfig = errors.New("hierarchy: invalid configuration")

// Settings are the same at all nodes of a hierarchy.
type Settings struct {
	Delegates   int // elected of each base zone, 1 to MaxDelegates
	Supervisors int // of each base zone, 1 to wire.MaxNodes; fewer where the management zone is smaller

	// Settle is how long a view has to be without a change before its node takes
	// part in an election, or assigns supervisors, for the first time.
	Settle time.Duration

	// Patience is how long one who should have declared itself is waited for,
	// before the next candidates do.
	Patience time.Duration

	Retry   time.Duration // pause between two attempts to connect
	Beat    time.Duration // an end that has nothing to say says so this often
	Silence int           // beats without a word after which a link is given up, 2 or more

	// Linger is how long a zone without any delegate is kept in the census.
	Linger time.Duration

	// Balance is how long nothing has to have changed in who supervises what, before
	// supervisors that have more zones than others hand some over. 0: never.
	Balance time.Duration

	// PieceBytes bounds a message that has members in it.
	PieceBytes int
}

// MaxDelegates bounds Settings.Delegates, and how many delegates of one zone a
// supervisor serves.
const MaxDelegates = 32

// minPiece holds any one member.
const minPiece = 512

// DefaultSettings returns the settings that the documentation's figures hold
// for.
func DefaultSettings() Settings {
	return Settings{
		Delegates: 2, Supervisors: 2,
		Settle: 500 * time.Millisecond, Patience: time.Second,
		Retry: 100 * time.Millisecond, Beat: time.Second, Silence: 3,
		Linger: 10 * time.Minute, Balance: 30 * time.Second, PieceBytes: 60 << 10,
	}
}

// Validate reports what is wrong with s; the error wraps ErrConfig.
func (s Settings) Validate() error {
	switch {
	case s.Delegates < 1 || s.Delegates > MaxDelegates:
		return fmt.Errorf("%w: %d delegates, want 1 to %d", ErrConfig, s.Delegates, MaxDelegates)
	case s.Supervisors < 1 || s.Supervisors > wire.MaxNodes:
		return fmt.Errorf("%w: %d supervisors, want 1 to %d", ErrConfig, s.Supervisors, wire.MaxNodes)
	case s.Settle <= 0 || s.Patience <= 0 || s.Retry <= 0 || s.Beat <= 0 || s.Linger <= 0:
		return fmt.Errorf("%w: Settle %v, Patience %v, Retry %v, Beat %v, Linger %v: all want to be positive", ErrConfig, s.Settle, s.Patience, s.Retry, s.Beat, s.Linger)
	case s.Balance < 0:
		return fmt.Errorf("%w: Balance %v: negative", ErrConfig, s.Balance)
	case s.Silence < 2:
		return fmt.Errorf("%w: Silence %d, want at least 2", ErrConfig, s.Silence)
	case s.PieceBytes < minPiece:
		return fmt.Errorf("%w: pieces of %d bytes, want at least %d", ErrConfig, s.PieceBytes, minPiece)
	}
	return nil
}

// DelegateConfig is what a node of a base zone is reported once.
type DelegateConfig struct {
	Settings
	Zone     wire.Zone   // its base zone
	Contacts []gossip.ID // nodes of the management zone, 1 or more
	Never    bool        // it is not to be elected
}

// Validate reports what is wrong with c; the error wraps ErrConfig.
func (c DelegateConfig) Validate() error {
	if err := c.Settings.Validate(); err != nil {
		return err
	}
	if len(c.Contacts) == 0 {
		return fmt.Errorf("%w: no contact in the management zone", ErrConfig)
	}
	for _, id := range c.Contacts {
		if err := id.Validate(); err != nil {
			return fmt.Errorf("%w: contact: %w", ErrConfig, err)
		}
	}
	return nil
}
