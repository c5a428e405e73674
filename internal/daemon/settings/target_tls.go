package settings

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// TargetTLS is how a target's P4Runtime server is reached by TLS. The certificates
// are whatever the target's operator has, and need not be of this project's
// authority.
type TargetTLS struct {
	Authority   string // certificates of the authorities that the server's is checked against; PEM. Empty: no TLS
	Name        string // that the server's certificate has to have; empty: the address's
	Certificate string // of the agent, with its chain, for a server that asks for one; PEM
	Key         string
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

// config reads the files; nil: there are none.
func (t TargetTLS) config() (*tls.Config, error) {
	if t.Authority == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.Name, RootCAs: x509.NewCertPool()}
	text, err := os.ReadFile(t.Authority)
	if err != nil {
		return nil, fmt.Errorf("p4runtime.tls.authority: %w", err)
	}
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("p4runtime.tls.authority: %s has no certificate in PEM", t.Authority)
	}
	if t.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("p4runtime.tls.certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
