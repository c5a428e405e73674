package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Scheme is the scheme of identities as URIs.
const Scheme = "tributary"

// Errors about identities. They are wrapped; use errors.Is.
var (
	// ErrIdentity: what should name an identity does not.
	ErrIdentity = errors.New("pki: invalid identity")
	// ErrNoRole: a certificate names no identity.
	ErrNoRole = errors.New("pki: the certificate names no role")
	// ErrWrongRole: an identity is valid, but not the one that was wanted.
	ErrWrongRole = errors.New("pki: the certificate is another's")
)

// Role is what a holder of a certificate may be.
type Role string

// The roles.
const (
	Manager  Role = "manager"  // an offload manager
	Agent    Role = "agent"    // the agent of the switch of that name
	Host     Role = "host"     // a process on the host of that name
	Operator Role = "operator" // a person, or a scheduler
)

// Roles returns all roles.
func Roles() []Role { return []Role{Manager, Agent, Host, Operator} }

// Identity is who holds a certificate. Names are those of the topology for
// agents and hosts, and free for managers and operators.
type Identity struct {
	Role Role
	Name string
}

// String returns the identity as its URI, tributary://ROLE/NAME.
func (i Identity) String() string { return i.uri().String() }

func (i Identity) uri() *url.URL {
	return &url.URL{Scheme: Scheme, Host: string(i.Role), Path: "/" + i.Name}
}

// Validate reports what is wrong with i.
func (i Identity) Validate() error {
	switch {
	case !slices.Contains(Roles(), i.Role):
		return fmt.Errorf("%w: role %q: there are %v", ErrIdentity, i.Role, Roles())
	case i.Name == "":
		return fmt.Errorf("%w: a %s without a name", ErrIdentity, i.Role)
	}
	return nil
}

// ParseIdentity reads a URI.
func ParseIdentity(text string) (Identity, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	return identityOf(u)
}

func identityOf(u *url.URL) (Identity, error) {
	name, rooted := strings.CutPrefix(u.Path, "/")
	i := Identity{Role(u.Host), name}
	if u.Scheme != Scheme || !rooted || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" {
		return Identity{}, fmt.Errorf("%w: %q is not of the form %s://ROLE/NAME", ErrIdentity, u, Scheme)
	}
	if err := i.Validate(); err != nil {
		return Identity{}, fmt.Errorf("%q: %w", u, err)
	}
	return i, nil
}

// IdentityOf returns whom a certificate names: by exactly one URI of the
// scheme, among others that may stand there. It does not verify the
// certificate.
func IdentityOf(cert *x509.Certificate) (Identity, error) {
	var found []*url.URL
	for _, u := range cert.URIs {
		if strings.EqualFold(u.Scheme, Scheme) {
			found = append(found, u)
		}
	}
	switch {
	case len(found) == 0:
		return Identity{}, fmt.Errorf("%w: no %s://ROLE/NAME is among the alternative names of %s", ErrNoRole, Scheme, subject(cert))
	case len(found) > 1:
		return Identity{}, fmt.Errorf("%w: %s has several: %v", ErrNoRole, subject(cert), found)
	}
	i, err := identityOf(found[0])
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrNoRole, err)
	}
	return i, nil
}

// subject names a certificate for people.
func subject(cert *x509.Certificate) string {
	for _, u := range cert.URIs {
		if strings.EqualFold(u.Scheme, Scheme) {
			return u.String()
		}
	}
	return fmt.Sprintf("%q", cert.Subject)
}

// A Want is what the other side of a connection has to be.
type Want struct {
	Role Role   // empty: any
	Name string // empty: any of that role
}

// check reports why i is not what w wants.
func (w Want) check(i Identity) error {
	switch {
	case w.Role == "" || i.Role == w.Role && (w.Name == "" || i.Name == w.Name):
		return nil
	case w.Name == "":
		return fmt.Errorf("%w: it is %s, wanted is a %s", ErrWrongRole, i, w.Role)
	}
	return fmt.Errorf("%w: it is %s, wanted is %s", ErrWrongRole, i, Identity(w))
}
