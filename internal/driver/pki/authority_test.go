package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

func TestInitMakesAnAuthorityThatCanBeUsed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	ids := []pki.Identity{{Role: pki.Manager, Name: "m"}, {Role: pki.Agent, Name: "pod 1/leaf-0"}, {Role: pki.Host, Name: "h"}, {Role: pki.Operator, Name: ".."}}
	paths, err := pki.Init(dir, ids...)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(dir)
	if err != nil || len(written) != 2+2*len(ids) || len(paths) != len(written) {
		t.Errorf("%v, %v, reported were %v", written, err, paths)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if secret := filepath.Base(path) == pki.AuthorityKeyFile || slices.ContainsFunc(ids, func(i pki.Identity) bool { return filepath.Base(path) == pki.KeyFile(i) }); secret && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	later := pki.Identity{Role: pki.Host, Name: "late"}
	if _, err := pki.Add(dir, later); err != nil {
		t.Fatal(err)
	}
	for _, i := range append(ids, later) {
		s, err := pki.Load(pki.Files{Cert: filepath.Join(dir, pki.CertFile(i)), Key: filepath.Join(dir, pki.KeyFile(i)), CA: filepath.Join(dir, pki.AuthorityFile)}, nil)
		if err != nil || s.Identity() != i {
			t.Errorf("%v: %v, %v", i, s, err)
		}
	}
}

func TestNothingIsReplaced(t *testing.T) {
	dir := t.TempDir()
	host := pki.Identity{Role: pki.Host, Name: "h"}
	if _, err := pki.Init(dir, host); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	for name, try := range map[string]func() ([]string, error){
		"the authority": func() ([]string, error) { return pki.Init(dir, pki.Identity{Role: pki.Host, Name: "other"}) },
		"a certificate": func() ([]string, error) { return pki.Add(dir, pki.Identity{Role: pki.Host, Name: "new"}, host) },
		"the same twice": func() ([]string, error) {
			return pki.Add(dir, pki.Identity{Role: pki.Host, Name: "x"}, pki.Identity{Role: pki.Host, Name: "x"})
		},
		"another's key": func() ([]string, error) {
			return pki.Add(dir, pki.Identity{Role: pki.Host, Name: "y"}, pki.Identity{Role: pki.Host, Name: "y-key"})
		},
		"an existing's key": func() ([]string, error) { return pki.Add(dir, pki.Identity{Role: pki.Host, Name: "h-key"}) },
	} {
		if paths, err := try(); !errors.Is(err, pki.ErrExists) || paths != nil {
			t.Errorf("%s: %v, %v", name, paths, err)
		}
		if after := contents(t, dir); !slices.Equal(before, after) {
			t.Errorf("%s: %d files became %d, or other ones", name, len(before), len(after))
		}
	}
}

// contents returns names and texts of a directory's files.
func contents(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name(), string(text))
	}
	return all
}

func TestNoIdentityNoCertificate(t *testing.T) {
	dir := t.TempDir()
	for _, i := range []pki.Identity{{}, {Role: "queen", Name: "x"}, {Role: pki.Agent}} {
		if _, err := pki.Init(dir, i); !errors.Is(err, pki.ErrIdentity) {
			t.Errorf("%v: %v", i, err)
		}
	}
	if _, err := pki.Add(dir, pki.Identity{Role: pki.Host, Name: "h"}); !errors.Is(err, pki.ErrFile) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without an authority: %v", err)
	}
	if all := contents(t, dir); all != nil {
		t.Errorf("there is %v", all)
	}
}

func TestIdentitiesAreURIs(t *testing.T) {
	for text, want := range map[string]pki.Identity{
		"tributary://manager/m":          {Role: pki.Manager, Name: "m"},
		"tributary://agent/leaf-0":       {Role: pki.Agent, Name: "leaf-0"},
		"tributary://host/pod%201/h%2F2": {Role: pki.Host, Name: "pod 1/h/2"},
		"tributary://operator/a@b.c":     {Role: pki.Operator, Name: "a@b.c"},
	} {
		if i, err := pki.ParseIdentity(text); err != nil || i != want {
			t.Errorf("%s: %v, %v", text, i, err)
		}
	}
	for _, text := range []string{
		"", "host/h", "tributary:host/h", "tributary://host", "tributary://host/", "tributary://Host/h", "tributary://guest/h",
		"https://host/h", "tributary://u@host/h", "tributary://host/h?x", "tributary://host/h?", "tributary://host/h#x", "tributary://host:1/h", "%zz",
	} {
		if i, err := pki.ParseIdentity(text); !errors.Is(err, pki.ErrIdentity) {
			t.Errorf("%q: %v, %v", text, i, err)
		}
	}
}

func FuzzIdentity(f *testing.F) {
	for _, seed := range []string{"h", "leaf-0", "a/b", "../..", "h?x=1#y", "100%", "ä\x00", " "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		i := pki.Identity{Role: pki.Host, Name: name}
		again, err := pki.ParseIdentity(i.String())
		if name == "" {
			if !errors.Is(err, pki.ErrIdentity) {
				t.Errorf("a name is missing: %v", err)
			}
			return
		}
		if err != nil || again != i {
			t.Errorf("%q is written as %s, which is %q, %v", name, i, again.Name, err)
		}
		if file := pki.CertFile(i); filepath.Base(file) != file || filepath.Clean(file) != file {
			t.Errorf("%q would be in the file %q", name, file)
		}
	})
}

// TestDNSNames: clients that verify a server's DNS name find an agent's and a
// manager's name as such, where it can be one.
func TestDNSNames(t *testing.T) {
	authority, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		i    pki.Identity
		name string
	}{
		{pki.Identity{Role: pki.Agent, Name: "leaf-0"}, "leaf-0"},
		{pki.Identity{Role: pki.Manager, Name: "m.example"}, "m.example"},
		{pki.Identity{Role: pki.Agent, Name: "pod 1/leaf-0"}, ""},
		{pki.Identity{Role: pki.Agent, Name: "schalter-ä"}, ""},
		{pki.Identity{Role: pki.Agent, Name: "a..b"}, ""},
		{pki.Identity{Role: pki.Agent, Name: "-"}, ""},
		{pki.Identity{Role: pki.Host, Name: "h"}, ""},
		{pki.Identity{Role: pki.Operator, Name: "me"}, ""},
	} {
		encoded, _, err := authority.Issue(c.i, time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Errorf("%v: %v", c.i, err)
			continue
		}
		block, _ := pem.Decode(encoded)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Errorf("%v: %v", c.i, err)
		} else if c.name == "" && cert.DNSNames != nil || c.name != "" && cert.VerifyHostname(c.name) != nil {
			t.Errorf("%v has the DNS names %q", c.i, cert.DNSNames)
		}
	}
}
