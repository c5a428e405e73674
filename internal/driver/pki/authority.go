package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// ErrExists: a file stands already where one was to be made.
var ErrExists = errors.New("pki: the file exists already")

// The lives of an authority and of the certificates that it issues. They begin
// a little in the past, for clocks that are behind.
const (
	AuthorityLife = 5 * 365 * 24 * time.Hour
	Life          = 365 * 24 * time.Hour
	backdated     = time.Hour
)

// The files of an authority in its directory.
const (
	AuthorityFile    = "ca.pem"
	AuthorityKeyFile = "ca-key.pem"
)

// CertFile and KeyFile return the names of an identity's files in the
// directory of the authority that issued them.
func CertFile(i Identity) string { return base(i) + ".pem" }

// KeyFile is reported at CertFile.
func KeyFile(i Identity) string { return base(i) + "-key.pem" }

func base(i Identity) string { return string(i.Role) + "-" + url.PathEscape(i.Name) }

// Authority issues certificates. It is for development and trials: its key is
// in memory, and where it was asked to, in a file.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// NewAuthority makes an authority with a new key (ECDSA on P-256) that is valid
// from now on.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("pki: making an authority: %w", err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Tributary development authority " + now.UTC().Format(time.DateTime)},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(AuthorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, err
	}
	return selfSigned(template, key)
}

// selfSigned returns the authority of a template and a key.
func selfSigned(template *x509.Certificate, key crypto.Signer) (*Authority, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("pki: making an authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("pki: making an authority: %w", err)
	}
	return &Authority{cert, key}, nil
}

// OpenAuthority reads the authority in dir, that Init has made.
func OpenAuthority(dir string) (*Authority, error) {
	certFile, keyFile := filepath.Join(dir, AuthorityFile), filepath.Join(dir, AuthorityKeyFile)
	p, _, err := readPair(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	if !p.Leaf.IsCA {
		return nil, fmt.Errorf("%w: %s: the certificate is no authority's", ErrFile, certFile)
	}
	return &Authority{p.Leaf, p.PrivateKey.(crypto.Signer)}, nil
}

func newSerial() (*big.Int, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, fmt.Errorf("pki: drawing a serial number: %w", err)
	}
	b[0] = b[0]&0x7f | 0x40 // positive, and of 16 bytes
	return new(big.Int).SetBytes(b[:]), nil
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return certPEM(a.cert.Raw) }

var dnsName = regexp.MustCompile(`^[0-9A-Za-z]([-0-9A-Za-z]*[0-9A-Za-z])?(\.[0-9A-Za-z]([-0-9A-Za-z]*[0-9A-Za-z])?)*$`)

// usages are what a role's certificate is for: agents only answer, operators
// only ask.
var usages = map[Role][]x509.ExtKeyUsage{
	Manager:  {x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	Agent:    {x509.ExtKeyUsageServerAuth},
	Host:     {x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	Operator: {x509.ExtKeyUsageClientAuth},
}

// Issue returns a certificate of i, valid between two moments, and its new key,
// both as PEM. An agent's or a manager's name is a DNS name in it, too, where it
// can be one.
func (a *Authority) Issue(i Identity, from, until time.Time) (cert, key []byte, err error) {
	if err := i.Validate(); err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("pki: making a key for %s: %w", i, err)
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: i.Name, OrganizationalUnit: []string{string(i.Role)}},
		NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages[i.Role],
		BasicConstraintsValid: true, URIs: []*url.URL{i.uri()},
	}
	// Clients that are not ours verify a server by a DNS name.
	if (i.Role == Agent || i.Role == Manager) && dnsName.MatchString(i.Name) {
		template.DNSNames = []string{i.Name}
	}
	if template.SerialNumber, err = newSerial(); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("pki: issuing for %s: %w", i, err)
	}
	if key, err = keyPEM(private); err != nil {
		return nil, nil, fmt.Errorf("pki: issuing for %s: %w", i, err)
	}
	return certPEM(der), key, nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})
}

func keyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// Init makes an authority in dir, which is made if it is not there, and issues
// a certificate for each of ids: see AuthorityFile, CertFile and KeyFile. It
// returns the files. Where one stands already it writes none, and fails with
// ErrExists.
func Init(dir string, ids ...Identity) ([]string, error) {
	now := time.Now()
	a, err := NewAuthority(now)
	if err != nil {
		return nil, err
	}
	key, err := keyPEM(a.key)
	if err != nil {
		return nil, fmt.Errorf("pki: making an authority: %w", err)
	}
	files := []file{{AuthorityFile, a.PEM(), 0o644}, {AuthorityKeyFile, key, 0o600}}
	return a.write(dir, now, files, ids)
}

// Add issues certificates by the authority in dir that Init has made. It
// returns their files. Where one stands already it writes none, and fails with
// ErrExists.
func Add(dir string, ids ...Identity) ([]string, error) {
	a, err := OpenAuthority(dir)
	if err != nil {
		return nil, err
	}
	return a.write(dir, time.Now(), nil, ids)
}

// file is one to be written.
type file struct {
	name string
	text []byte
	mode fs.FileMode
}

// write writes files and the certificates of ids, and returns all paths.
func (a *Authority) write(dir string, now time.Time, files []file, ids []Identity) ([]string, error) {
	for _, i := range ids {
		cert, key, err := a.Issue(i, now.Add(-backdated), now.Add(Life))
		if err != nil {
			return nil, err
		}
		files = append(files, file{CertFile(i), cert, 0o644}, file{KeyFile(i), key, 0o600})
	}
	seen := map[string]bool{}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if _, err := os.Lstat(path); err == nil {
			return nil, fmt.Errorf("%w: %s: it is not replaced", ErrExists, path)
		}
		if seen[f.name] {
			return nil, fmt.Errorf("%w: two certificates would be in %s", ErrExists, path)
		}
		seen[f.name] = true
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("pki: %w", err)
	}
	var paths []string
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := f.write(path); err != nil {
			return paths, fmt.Errorf("pki: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (f *file) write(path string) error {
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.text)
	return errors.Join(err, w.Sync(), w.Close())
}
