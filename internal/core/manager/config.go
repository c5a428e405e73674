package manager

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/tributary-fabric/tributary/internal/core/quota"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("manager: invalid configuration")

// Config are the manager's bounds and periods. A zero field has the value of
// DefaultConfig.
type Config struct {
	MaxGroups    int           // groups at once
	MaxMembers   int           // members of one group
	MaxWindow    uint32        // largest window that a group may ask for, in chunks; a power of two
	MinWindow    uint32        // smallest window that is tried where slots are scarce; a power of two
	StartWindow  uint32        // window of a group's first tree, which grows with its demand; a power of two
	GroupSlots   int           // slots that one group may have on a switch; 0: as many as its window needs
	SwitchSlots  int           // slots that all groups together may have on a switch; 0: all that it has
	MaxResizes   int           // windows that are being changed at once
	MaxBuilding  int           // groups whose trees are being chosen or prepared at once: what waits longer than Answer would be too late
	MaxPlanning  int           // plans that are out at once, of which the planner makes one: the others wait for their turns
	MaxAttempts  int           // plans that may fail at a switch before the group counts as refused
	MaxHistory   int           // changes that Explain remembers, for each group
	MaxDraining  int           // trees of one group that may be draining before no new one is planned
	Probes       int           // least number of unanswered probes after which a member takes its tree for lost; see SwitchProbes
	Answer       time.Duration // time for all switches to answer Prepare, and again for Commit
	Repeat       time.Duration // period in which an unanswered Remove is sent again
	RetryMin     time.Duration // wait after a first failed attempt; doubles with each
	RetryMax     time.Duration // cap of that wait
	Lease        time.Duration // a committed epoch without packets lives so long; members probe thrice in it
	Suspicion    time.Duration // a switch above which a member lost its tree is avoided so long
	Absence      time.Duration // a switch that reduces without its agent keeps its trees so long without one
	ReleaseGrace time.Duration // from Release to the removal of the trees, for members still leaving; none after a revoke
	Abandon      time.Duration // a group that nobody watches is released after so long
	Settle       time.Duration // a fabric without a change for so long is quiet: then makeshift trees are reviewed
	RailSettle   time.Duration // likewise for a host's link that is back, and the trees of its groups; doubles for each that follows within Settle, up to that
	Share        time.Duration // slots are shared out anew so long after a change, at the earliest
	Hold         time.Duration // a window stays so long as it is; one that was made smaller does not grow for twice that
	Idle         time.Duration // what a group has not used for so long it gives back, be there need or not

	// Quotas are what each host, label, and all may have. Of all, MaxGroups is the limit of
	// groups.
	Quotas quota.Config

	// Certified: hosts have certificates, so that of an address that the topology does not
	// have it can be proven whose it is, and has to be.
	Certified bool

	NoForward bool // switches that cannot reduce do not forward either
	Slim      bool // switches that could reduce forward where the tree is better by that
	NoHosts   bool // a group has a tree also where hosts are faster
	// Unattended are switches without an agent: they can only forward.
	Unattended []string
}

// DefaultConfig suits one fabric of up to 65,536 hosts.
func DefaultConfig() Config {
	return Config{
		MaxGroups:    1 << 16,
		MaxMembers:   1 << 16,
		MaxWindow:    switchreduce.MaxWindow,
		MinWindow:    8,
		StartWindow:  16,
		MaxResizes:   64,
		MaxBuilding:  128,
		MaxPlanning:  2,
		MaxAttempts:  8,
		MaxHistory:   32,
		MaxDraining:  8,
		Probes:       16,
		Answer:       2 * time.Second,
		Repeat:       time.Second,
		RetryMin:     50 * time.Millisecond,
		RetryMax:     30 * time.Second,
		Lease:        30 * time.Second,
		Suspicion:    time.Minute,
		Absence:      10 * time.Second,
		ReleaseGrace: 5 * time.Second,
		Abandon:      15 * time.Minute,
		Settle:       30 * time.Second,
		RailSettle:   time.Second,
		Share:        20 * time.Millisecond,
		Hold:         2 * time.Second,
		Idle:         30 * time.Second,
		Quotas:       quota.Config{All: quota.Limits{Waiting: 1024}, Host: quota.Limits{Groups: 1 << 12, Plans: 200, Waiting: 16}},
	}
}

// SwitchProbes returns after how many unanswered probes to its parent a switch
// answers Lost. That is a hint, on which a member waits for more: it may be early.
func (c Config) SwitchProbes() int { return (c.Probes + 1) / 2 }

// withDefaults fills the zero fields of c in.
func (c Config) withDefaults() Config {
	d := DefaultConfig()
	c.MaxGroups = cmp.Or(c.MaxGroups, d.MaxGroups)
	c.MaxMembers = cmp.Or(c.MaxMembers, d.MaxMembers)
	c.MaxAttempts = cmp.Or(c.MaxAttempts, d.MaxAttempts)
	c.MaxHistory = cmp.Or(c.MaxHistory, d.MaxHistory)
	c.MaxDraining = cmp.Or(c.MaxDraining, d.MaxDraining)
	c.Probes = cmp.Or(c.Probes, d.Probes)
	c.MaxResizes = cmp.Or(c.MaxResizes, d.MaxResizes)
	c.MaxBuilding = cmp.Or(c.MaxBuilding, d.MaxBuilding)
	c.MaxPlanning = cmp.Or(c.MaxPlanning, d.MaxPlanning)
	c.Quotas.All = orLimits(c.Quotas.All, d.Quotas.All)
	c.Quotas.All.Groups = c.MaxGroups
	c.Quotas.Host = orLimits(c.Quotas.Host, d.Quotas.Host)
	c.Answer = cmp.Or(c.Answer, d.Answer)
	c.Repeat = cmp.Or(c.Repeat, d.Repeat)
	c.RetryMin = cmp.Or(c.RetryMin, d.RetryMin)
	c.RetryMax = cmp.Or(c.RetryMax, d.RetryMax)
	c.Lease = cmp.Or(c.Lease, d.Lease)
	c.Suspicion = cmp.Or(c.Suspicion, d.Suspicion)
	c.Absence = cmp.Or(c.Absence, d.Absence)
	c.ReleaseGrace = cmp.Or(c.ReleaseGrace, d.ReleaseGrace)
	c.Abandon = cmp.Or(c.Abandon, d.Abandon)
	c.Settle = cmp.Or(c.Settle, d.Settle)
	c.RailSettle = cmp.Or(c.RailSettle, min(d.RailSettle, c.Settle))
	c.Share = cmp.Or(c.Share, d.Share)
	c.Hold = cmp.Or(c.Hold, d.Hold)
	c.Idle = cmp.Or(c.Idle, d.Idle)
	c.MaxWindow = cmp.Or(c.MaxWindow, d.MaxWindow)
	c.MinWindow = cmp.Or(c.MinWindow, min(d.MinWindow, c.MaxWindow))
	c.StartWindow = cmp.Or(c.StartWindow, max(c.MinWindow, min(d.StartWindow, c.MaxWindow)))
	return c
}

func orLimits(l, d quota.Limits) quota.Limits {
	return quota.Limits{
		Groups: cmp.Or(l.Groups, d.Groups), Slots: cmp.Or(l.Slots, d.Slots), Plans: cmp.Or(l.Plans, d.Plans), Waiting: cmp.Or(l.Waiting, d.Waiting),
	}
}

// Validate reports what is wrong with c, zero fields having their defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	if err := c.Quotas.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	switch {
	case c.Slim && c.NoForward:
		return fmt.Errorf("%w: switches are to forward where it is better, and never", ErrConfig)
	case c.MaxGroups < 0 || c.MaxMembers < 2 || c.MaxMembers > 1<<24 || c.MaxAttempts < 0 || c.MaxHistory < 0 || c.MaxDraining < 2 || c.Probes < 0:
		return fmt.Errorf("%w: a bound is negative, fewer than 2 or more than 2^24 members, or fewer than 2 draining trees", ErrConfig)
	case !powerOfTwo(c.MaxWindow) || !powerOfTwo(c.MinWindow) || c.MinWindow > c.MaxWindow || c.MaxWindow > switchreduce.MaxWindow:
		return fmt.Errorf("%w: windows from %d to %d, want powers of two up to %d", ErrConfig, c.MinWindow, c.MaxWindow, switchreduce.MaxWindow)
	case !powerOfTwo(c.StartWindow) || c.StartWindow < c.MinWindow || c.StartWindow > c.MaxWindow:
		return fmt.Errorf("%w: a first window of %d, want a power of two from %d to %d", ErrConfig, c.StartWindow, c.MinWindow, c.MaxWindow)
	case c.MaxResizes < 0 || c.MaxBuilding < 0 || c.MaxPlanning < 0 || c.GroupSlots != 0 && c.GroupSlots < 2*int(c.MinWindow) || c.SwitchSlots != 0 && c.SwitchSlots < 2*int(c.MinWindow):
		return fmt.Errorf("%w: %d resizes at once, quotas of %d slots for a group and %d for a switch, want at least the %d of the smallest window",
			ErrConfig, c.MaxResizes, c.GroupSlots, c.SwitchSlots, 2*c.MinWindow)
	case min(c.Answer, c.Repeat, c.RetryMin, c.Lease, c.Suspicion, c.ReleaseGrace, c.Abandon, c.Settle, c.RailSettle, c.Share, c.Hold, c.Idle) < 0 || c.RetryMax < c.RetryMin:
		return fmt.Errorf("%w: a period is negative, or RetryMax (%v) below RetryMin (%v)", ErrConfig, c.RetryMax, c.RetryMin)
	}
	return nil
}

func powerOfTwo(w uint32) bool { return bits.OnesCount32(w) == 1 }
