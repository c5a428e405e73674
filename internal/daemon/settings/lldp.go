package settings

import (
	"fmt"
	"net/netip"
	"path"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
)

// Modes of LLDP.
const (
	LLDPAuto     = "auto"     // where the process may, and others can reach the agent
	LLDPRequired = "required" // it is an error that the process may not
	LLDPOff      = "off"
)

// LLDP is how an agent takes part in LLDP.
type LLDP struct {
	Mode       string // one of the modes
	Interval   time.Duration
	Interfaces []string // patterns of names; none: cables
	Exclude    []string
	Management []netip.Addr // none: that of Listen
}

// lldp returns a reader of that.
func (d *reader) lldp(to *LLDP) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){
			"mode": d.oneOf(&to.Mode, LLDPAuto, LLDPRequired, LLDPOff), "interval": d.period(&to.Interval),
			"interfaces": each(d, &to.Interfaces, parsePattern), "exclude": each(d, &to.Exclude, parsePattern),
			"management": each(d, &to.Management, parseData),
		})
	}
}

// each returns a reader of a list of texts.
func each[T any](d *reader, to *[]T, parse func(string) (T, error)) func(field) {
	return func(f field) {
		d.list(f, func(f field) {
			var one T
			parsed(d, &one, parse)(f)
			*to = append(*to, one)
		})
	}
}

func parsePattern(text string) (string, error) {
	if _, err := path.Match(text, ""); err != nil {
		return "", fmt.Errorf("%q is not a pattern of names, such as eth* or p[0-9]", text)
	}
	return text, nil
}

// config returns what the agent is given; nil: it takes no part.
func (l *LLDP) config() *agentd.LLDP {
	if l.Mode == LLDPOff {
		return nil
	}
	return &agentd.LLDP{
		Include: l.Interfaces, Exclude: l.Exclude, Management: l.Management, Interval: l.Interval, Required: l.Mode == LLDPRequired,
	}
}
