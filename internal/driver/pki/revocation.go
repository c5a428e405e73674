package pki

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"sync"
	"time"
)

// ErrRevoked: a certificate's authority has revoked it.
var ErrRevoked = errors.New("pki: the certificate is revoked")

const (
	listBlock = "X509 CRL"
	// maxLists bounds the bytes of a file of revocation lists.
	maxLists = 64 << 20
)

// Extensions that change what a list means. Lists with them are not taken.
var (
	oidDelta  = []int{2, 5, 29, 27} // it has only what has changed since another one
	oidIssuer = []int{2, 5, 29, 29} // of an entry: the certificate is another authority's
)

// revocations are the lists of a file. nil: there is no file.
type revocations struct{ lists []*list }

// list is one authority's.
type list struct {
	*x509.RevocationList
	serials map[string]*x509.RevocationListEntry // by big-endian bytes

	mu     sync.Mutex
	signed map[[sha256.Size]byte]bool // by the authority's certificate: whether it has signed the list
}

// readRevocations reads the lists in a file: PEM, any number, or one in DER.
func readRevocations(path string) (*revocations, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLists+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if len(text) > maxLists {
		return nil, fmt.Errorf("%w: %s: more than %d bytes of revocation lists", ErrFile, path, maxLists)
	}
	blocks, err := listBlocks(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFile, path, err)
	}
	var r revocations
	for i, der := range blocks {
		l, err := parseList(der)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: revocation list %d: %w", ErrFile, path, i+1, err)
		}
		r.lists = append(r.lists, l)
	}
	return &r, nil
}

// listBlocks returns the lists in a file. A file that was cut off in the middle of one
// is an error: what is missing would not be revoked.
func listBlocks(text []byte) (all [][]byte, err error) {
	if !bytes.Contains(text, []byte("-----BEGIN")) {
		if len(text) == 0 {
			return nil, errors.New("it is empty, want revocation lists, PEM or DER")
		}
		return [][]byte{text}, nil
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == listBlock {
			all = append(all, block.Bytes)
		}
	}
	if begun := bytes.Count(text, []byte("-----BEGIN "+listBlock+"-----")); begun == 0 || begun != len(all) {
		return nil, fmt.Errorf("%d revocation lists begin in it (PEM, %q), and %d are whole", begun, listBlock, len(all))
	}
	return all, nil
}

func parseList(der []byte) (*list, error) {
	parsed, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	for _, e := range parsed.Extensions {
		if slices.Equal(e.Id, oidDelta) {
			return nil, errors.New("it has only the changes since another list: a complete one is needed")
		}
		if e.Critical { // of only some certificates or reasons (2.5.29.28), say
			return nil, fmt.Errorf("it has the critical extension %v, which is not supported: a list of all that the authority has revoked is needed", e.Id)
		}
	}
	l := &list{RevocationList: parsed, serials: map[string]*x509.RevocationListEntry{}, signed: map[[sha256.Size]byte]bool{}}
	for i := range parsed.RevokedCertificateEntries {
		entry := &parsed.RevokedCertificateEntries[i]
		for _, e := range entry.Extensions {
			if slices.Equal(e.Id, oidIssuer) {
				return nil, errors.New("it has certificates of other authorities: a list of each is needed")
			}
		}
		l.serials[serial(entry.SerialNumber)] = entry
	}
	return l, nil
}

func serial(n *big.Int) string { return string(n.Bytes()) }

// isOf reports whether an authority has made the list.
func (l *list) isOf(authority *x509.Certificate) bool {
	if !bytes.Equal(l.RawIssuer, authority.RawSubject) {
		return false
	}
	digest := sha256.Sum256(authority.Raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	is, known := l.signed[digest]
	if !known {
		is = l.CheckSignatureFrom(authority) == nil
		if is { // others are of strangers' chains: of these there may be any number
			l.signed[digest] = is
		}
	}
	return is
}

// isOlder reports whether an authority has made l before another of its lists.
func (l *list) isOlder(than *list) bool {
	if l.Number != nil && than.Number != nil {
		return l.Number.Cmp(than.Number) < 0
	}
	return l.ThisUpdate.Before(than.ThisUpdate)
}

// newest returns the one that was made last; nil: there is none.
func newest(lists []*list) (last *list) {
	for _, l := range lists {
		if last == nil || last.isOlder(l) {
			last = l
		}
	}
	return last
}

// keep has the lists of before stay of which r has older ones or, of an authority that is known, none. It
// returns the older ones, which are no longer there, and those that stay for want of others: who replays an old
// list, or takes one away, pardons nobody.
func (r *revocations) keep(before *revocations, authorities []*x509.Certificate) (older, missing []*list) {
	stay := func(of func(*list) bool, isKnown bool) {
		former, now := slices.DeleteFunc(slices.Clone(before.lists), not(of)), slices.DeleteFunc(slices.Clone(r.lists), not(of))
		switch was, is := newest(former), newest(now); {
		case was == nil || is == nil && !isKnown || is != nil && !is.isOlder(was):
			return
		case is == nil:
			missing = append(missing, was)
		default:
			older = append(older, is)
		}
		r.lists = append(slices.DeleteFunc(r.lists, of), former...)
	}
	isOfKnown := func(l *list) bool { return slices.ContainsFunc(authorities, l.isOf) }
	for _, a := range authorities {
		stay(func(l *list) bool { return l.isOf(a) }, true)
	}
	for _, l := range slices.Clone(r.lists) {
		if !isOfKnown(l) {
			stay(func(o *list) bool {
				return bytes.Equal(o.RawIssuer, l.RawIssuer) && bytes.Equal(o.AuthorityKeyId, l.AuthorityKeyId) && !isOfKnown(o)
			}, false)
		}
	}
	return older, missing
}

func not(of func(*list) bool) func(*list) bool { return func(l *list) bool { return !of(l) } }

// check returns ErrRevoked if a certificate of a chain is revoked by the authority that
// follows it there.
func (r *revocations) check(chain []*x509.Certificate) error {
	if r == nil {
		return nil
	}
	for i, cert := range chain[:len(chain)-1] {
		for _, l := range r.lists {
			entry := l.serials[serial(cert.SerialNumber)]
			if entry != nil && l.isOf(chain[i+1]) {
				return fmt.Errorf("%w: %s, serial %s, on %s", ErrRevoked, subject(cert), cert.SerialNumber.Text(16), entry.RevocationTime.UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

// due returns when the first list is to be followed by another one; zero: never.
func (r *revocations) due() (first time.Time) {
	if r == nil {
		return first
	}
	for _, l := range r.lists {
		if !l.NextUpdate.IsZero() && (first.IsZero() || l.NextUpdate.Before(first)) {
			first = l.NextUpdate
		}
	}
	return first
}
