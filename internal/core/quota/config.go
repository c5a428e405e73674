package quota

import (
	"errors"
	"fmt"
	"path"
)

// ErrConfig is wrapped by the errors of Config.Validate.
var ErrConfig = errors.New("quota: invalid limits")

// Burst is for how many seconds' plans may be asked for at once.
const Burst = 10

// Limits are the most that one account may have. A zero field is no limit.
type Limits struct {
	Groups  int // that stand
	Slots   int // of all switches together
	Plans   int // a second
	Waiting int // requests for a plan that wait
}

// Of returns the limit of a resource; 0: none.
func (l Limits) Of(r Resource) int { return [...]int{l.Groups, l.Slots, l.Waiting, l.Plans}[r] }

// Label is a name that the operator gives to hosts, such as that of a team, with what
// these may have together.
type Label struct {
	Name   string
	Hosts  []string // names or patterns, as path.Match has them; a host has the first label that has it
	Weight int      // of its turns; 0: 1
	Limits
}

// Config is what hosts may have.
type Config struct {
	All    Limits // all hosts, and operators
	Host   Limits // each host
	Labels []Label
}

// MaxWeight is the largest weight of a label.
const MaxWeight = 1 << 10

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	seen := map[string]bool{}
	check := func(of string, l Limits) error {
		if min(l.Groups, l.Slots, l.Plans, l.Waiting) < 0 || l.Plans > 1e6 {
			return fmt.Errorf("%w: %s: a limit is negative, or more than 1000000 plans a second", ErrConfig, of)
		}
		return nil
	}
	errs := []error{check("all", c.All), check("host", c.Host)}
	for _, l := range c.Labels {
		switch {
		case l.Name == "" || seen[l.Name]:
			errs = append(errs, fmt.Errorf("%w: the label %q is empty, or there twice", ErrConfig, l.Name))
		case l.Weight < 0 || l.Weight > MaxWeight:
			errs = append(errs, fmt.Errorf("%w: label %s: a weight of %d, want 1 to %d", ErrConfig, l.Name, l.Weight, MaxWeight))
		case len(l.Hosts) == 0:
			errs = append(errs, fmt.Errorf("%w: label %s has no hosts", ErrConfig, l.Name))
		}
		seen[l.Name] = true
		for _, p := range l.Hosts {
			if _, err := path.Match(p, ""); err != nil {
				errs = append(errs, fmt.Errorf("%w: label %s: %q: %w", ErrConfig, l.Name, p, err))
			}
		}
		errs = append(errs, check("label "+l.Name, l.Limits))
	}
	return errors.Join(errs...)
}

// labelOf returns the label of a host, or nil.
func (c *Config) labelOf(host string) *Label {
	for i := range c.Labels {
		for _, p := range c.Labels[i].Hosts {
			if ok, _ := path.Match(p, host); ok && host != "" {
				return &c.Labels[i]
			}
		}
	}
	return nil
}
