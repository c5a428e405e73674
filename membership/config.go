package membership

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// Bounds of a Config.
const (
	MaxName = 128  // bytes of a node's name
	MaxKey  = 15   // number of a key
	maxSeed = 4096 // addresses to begin with
)

// Config is what a node is, and whom it asks first. Name is all that a node
// needs; others need Bootstrap, too.
type Config struct {
	// Name is the node's name, unique in all zones; a certificate names the part before
	// a #, which separates the labels of several processes of one host.
	Name string

	// Listen is the "host:port" of its UDP socket and its TCP listener, one
	// number for both; port 0 takes a free one. Empty: a free port of the address
	// from which this host reaches the first of Bootstrap and Supervisors that is not
	// its own; "127.0.0.1:0" where there is none.
	Listen string
	// Advertise is the "address:port" on which others reach it; empty: where it
	// listens. Where that is all addresses, it is the one from which it reaches the
	// others. Where it is one that others cannot reach, Join fails.
	Advertise string

	// Bootstrap are the addresses, "host:port", of nodes to query for others; its own
	// may be among them. Some may be absent, but nodes without a common live address
	// form separate views. The node queries them with growing intervals, so that views
	// merge after a partition. Join resolves host names once.
	Bootstrap []string

	// Zone is the number of the zone to which it belongs. Messages of other
	// zones are dropped.
	Zone uint32
	// Management makes it a node of the management zone, which may supervise
	// other zones. Zone must be 0 then.
	Management bool
	// Supervisors are the addresses of management nodes for the zone's delegates; empty:
	// no hierarchy. All nodes of a zone should have the same, and several.
	Supervisors []string

	// Monitor makes others send every suspicion to this node at once.
	Monitor bool

	// TLS are the files of the host's certificate, by which its connections with other
	// nodes are authenticated and encrypted: a node is then the host that its certificate
	// names. Datagrams are sealed by Keys, which have to be there, too, unless
	// AllowPlaintext. nil: see Keys.
	TLS *TLS
	// AllowPlaintext allows addresses other than loopback without certificates and Keys:
	// any client may then claim to be any node.
	AllowPlaintext bool

	// Keys authenticate all messages: datagrams, and without TLS the connections, too,
	// which are encrypted. Who has one may then say that it is any node. The first one is used for what is sent, all
	// of them for what is received, so that keys can be changed in a zone that goes
	// on: a new one is added at all nodes, then put first, then the old one removed,
	// by Node.SetKeys or by starting nodes again one by one.
	// None: only loopback addresses are served, unless AllowPlaintext.
	Keys []Key
	// Encrypt also encrypts datagrams, with the first key. All nodes must agree.
	Encrypt bool

	// State is a file that keeps the incarnation; empty: the clock alone does. Where
	// it has an earlier start the node begins by listening (Timing.Stealth).
	State string

	Timing    Timing    // zero fields have their defaults
	Hierarchy Hierarchy // likewise

	Network Network      `json:"-"` // where sockets come from; nil: the system
	Log     *slog.Logger `json:"-"` // nil: none
}

// TLS names PEM files. Files that change are read again, and connections end with their
// certificate.
type TLS struct {
	Cert    string // of a certificate for the URI tributary://host/NAME
	Key     string // its key, which nobody but the file's owner may read
	CA      string // the authorities that are trusted
	Revoked string // revocation lists of authorities, or one in DER; empty: none
}

func (c Config) withDefaults() Config {
	if c.Network == nil {
		c.Network = system{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Timing, c.Hierarchy = c.Timing.withDefaults(), c.Hierarchy.withDefaults()
	return c
}

// Validate reports what is wrong with c; all its errors wrap ErrConfig.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if c.Name == "" || len(c.Name) > MaxName {
		wrong("a name of %d bytes, want 1 to %d", len(c.Name), MaxName)
	}
	if strings.ContainsFunc(c.Name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '@' }) {
		wrong("the name %q has blanks, control characters, or an @", c.Name)
	}
	if c.Management && c.Zone != 0 {
		wrong("zone %d: the management zone is 0", c.Zone)
	}
	if c.Management && len(c.Supervisors) > 0 {
		wrong("a management node has no supervisors")
	}
	if c.Encrypt && len(c.Keys) == 0 {
		wrong("encryption needs a key")
	}
	if c.TLS != nil {
		if err := pki.Files(*c.TLS).Check(); err != nil {
			wrong("%w", err)
		}
	}
	if c.TLS != nil && len(c.Keys) == 0 && !c.AllowPlaintext {
		wrong("with certificates and without keys datagrams would be plaintext: give Keys, or AllowPlaintext")
	}
	if _, err := ring(&c); err != nil && (len(c.Keys) > 0 || !c.Encrypt) {
		errs = append(errs, err)
	}
	for what, all := range map[string][]string{
		"listen": one(c.Listen), "advertise": one(c.Advertise), "bootstrap": c.Bootstrap, "supervisor": c.Supervisors,
	} {
		if len(all) > maxSeed {
			wrong("%d addresses of %s, at most %d", len(all), what, maxSeed)
			continue
		}
		for _, a := range all {
			if _, _, err := net.SplitHostPort(a); err != nil {
				wrong("%s address: %w", what, err)
			}
		}
	}
	if err := c.Timing.settings().Validate(); err != nil {
		wrong("timing: %w", err)
	}
	if c.Timing.Health < -1 || c.Timing.Stealth < -1 {
		wrong("timing: Health %d, Stealth %d, want -1 or more", c.Timing.Health, c.Timing.Stealth)
	}
	if err := c.Hierarchy.settings().Validate(); err != nil {
		wrong("%w", err)
	}
	return errors.Join(errs...)
}

func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
