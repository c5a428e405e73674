package settings

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/secretfile"
)

// TargetTLS is how a target's P4Runtime or gNMI server is reached by TLS. The certificates
// are whatever the target's operator has, and need not be of this project's
// authority.
type TargetTLS struct {
	Authority   string // certificates of the authorities that the server's is checked against; PEM. Empty: no TLS
	Name        string // that the server's certificate has to have; empty: the address's
	Certificate string // of the agent, with its chain, for a server that asks for one; PEM
	Key         string
}

// TargetLogin is whom a target's P4Runtime server is to take the agent for.
type TargetLogin struct {
	User     string // empty: the server asks for nobody
	Password string // file with the password; what follows its first line does not count
}

// targetLogin returns a reader of it.
func (d *reader) targetLogin(to *TargetLogin) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){"user": d.into(&to.User), "password": d.filePath(&to.Password)}, "user!", "password!")
	}
}

// login reads the password.
func (l TargetLogin) login() (p4rt.Login, error) {
	if l.User == "" {
		return p4rt.Login{}, nil
	}
	password, err := readPassword(l.Password)
	if err != nil {
		return p4rt.Login{}, fmt.Errorf("p4runtime.login.password: %w", err)
	}
	return p4rt.Login{User: l.User, Password: password}, nil
}

// readPassword returns the first line of a file.
func readPassword(path string) (string, error) {
	text, err := secretfile.Read(path)
	if err != nil {
		return "", err
	}
	password, _, _ := strings.Cut(string(text), "\n")
	if password = strings.TrimSuffix(password, "\r"); password == "" {
		return "", fmt.Errorf("the first line of %s is empty", path)
	}
	return password, nil
}

// targetTLS returns a reader of it.
func (d *reader) targetTLS(to *TargetTLS) func(field) {
	return func(f field) {
		d.whole(f, map[string]func(field){
			"authority": d.filePath(&to.Authority), "name": d.into(&to.Name),
			"certificate": d.filePath(&to.Certificate), "key": d.filePath(&to.Key),
		}, func() string {
			if (to.Certificate == "") != (to.Key == "") {
				return "certificate and key are needed together"
			}
			return ""
		}, "authority!")
	}
}

// config returns what reads the files of a P4Runtime target; nil: there are none. The
// error is that they cannot be read now.
func (t TargetTLS) config() (func() (*tls.Config, error), error) {
	if t.Authority == "" {
		return nil, nil
	}
	read := func() (*tls.Config, error) {
		c, err := t.read()
		if err != nil {
			err = fmt.Errorf("p4runtime.%w", err)
		}
		return c, err
	}
	_, err := read()
	return read, err
}

// read reads the files. An error begins with the field.
func (t TargetTLS) read() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.Name, RootCAs: x509.NewCertPool()}
	text, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, fmt.Errorf("tls.authority: %w", err)
	}
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("tls.authority: %s has no certificate in PEM", t.Authority)
	}
	if t.Certificate != "" {
		text, err := os.ReadFile(t.Certificate)
		if err != nil {
			return nil, fmt.Errorf("tls.certificate: %w", err)
		}
		key, err := secretfile.Read(t.Key)
		if err != nil {
			return nil, fmt.Errorf("tls.key: %w", err)
		}
		pair, err := tls.X509KeyPair(text, key)
		if err != nil {
			return nil, fmt.Errorf("tls.certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
