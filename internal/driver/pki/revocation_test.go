package pki_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

// TestRevokedCertificatesAreRefused: by both sides, by lists of several authorities in one
// file, and by one in DER.
func TestRevokedCertificatesAreRefused(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	lists := filepath.Join(t.TempDir(), "revoked.pem")
	bad, good := issue(t, a, managerID, -time.Hour, time.Hour), issue(t, a, managerID, -time.Hour, time.Hour)
	own := issue(t, a, agentID, -time.Hour, time.Hour)
	ofA, ofB := listOf(t, a, time.Hour, bad.cert), listOf(t, b, time.Hour)
	der, _ := pem.Decode(ofA)
	for name, text := range map[string][]byte{"PEM": ofA, "several": append(append([]byte("# by name\n"), ofB...), ofA...), "DER": der.Bytes} {
		write(t, lists, text)
		server := own.withLists(t, lists, nil)
		if err, _ := meet(t, server.Server(), bad.load(t, nil).Client(pki.Want{})); !errors.Is(err, pki.ErrRevoked) || !strings.Contains(err.Error(), managerID.String()) {
			t.Errorf("%s: a revoked client: %v", name, err)
		}
		if _, err := meet(t, bad.load(t, nil).Server(), server.Client(pki.Want{})); !errors.Is(err, pki.ErrRevoked) {
			t.Errorf("%s: a revoked server: %v", name, err)
		}
		if s, c := meet(t, server.Server(), good.load(t, nil).Client(pki.Want{})); s != nil || c != nil {
			t.Errorf("%s: another one: %v, %v", name, s, c)
		}
	}
}

// TestListsOfOthersDoNotCount: a list revokes certificates of its own authority alone, by its
// signature, not by the name in it; and the log reports that it does nothing.
func TestListsOfOthersDoNotCount(t *testing.T) {
	a := newAuthority(t)
	own, other := issue(t, a, agentID, -time.Hour, time.Hour), issue(t, a, managerID, -time.Hour, time.Hour)
	cert := certOf(t, other.cert)
	root, _ := pem.Decode(a.PEM())
	named, err := x509.ParseCertificate(root.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()}},
	}, &x509.Certificate{RawSubject: named.RawSubject, Subject: named.Subject, SubjectKeyId: named.SubjectKeyId, KeyUsage: x509.KeyUsageCRLSign}, key)
	if err != nil {
		t.Fatal(err)
	}
	lists := filepath.Join(t.TempDir(), "revoked.crl")
	write(t, lists, forged)
	var log bytes.Buffer
	server := own.withLists(t, lists, slog.New(slog.NewTextHandler(&log, nil)))
	if s, c := meet(t, server.Server(), other.load(t, nil).Client(pki.Want{})); s != nil || c != nil {
		t.Errorf("%v, %v", s, c)
	}
	if !strings.Contains(log.String(), "signed by no authority") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestIntermediateAuthorities: an authority between counts as well: as who revokes, as step-ca
// does, and as what is revoked.
func TestIntermediateAuthorities(t *testing.T) {
	top := newTree(t)
	issuing := top.under(t, "issuing")
	server, client := issuing.leaf(t, agentID, top.cert), issuing.leaf(t, managerID, top.cert)
	lists := filepath.Join(t.TempDir(), "revoked.pem")
	for name, c := range map[string]struct {
		by   tree
		what *x509.Certificate
		ok   bool
	}{
		"the client, by its authority":     {issuing, client.leaf, false},
		"the client, by another authority": {top, client.leaf, true},
		"its authority":                    {top, issuing.cert, false},
	} {
		write(t, lists, c.by.list(t, c.what))
		s, err := pki.Load(pki.Files{Cert: server.cert, Key: server.key, CA: server.ca, Revoked: lists}, nil)
		if name == "its authority" {
			if !errors.Is(err, pki.ErrRevoked) { // its own certificate rests upon it, too
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		byServer, _ := meet(t, s.Server(), client.load(t, nil).Client(pki.Want{}))
		if c.ok && byServer != nil || !c.ok && !errors.Is(byServer, pki.ErrRevoked) {
			t.Errorf("%s: %v", name, byServer)
		}
	}
}

// TestBrokenLists: none can be started with, and of those that come later the lists before
// stay in use, with a line in the log.
func TestBrokenLists(t *testing.T) {
	a := newAuthority(t)
	bad, own := issue(t, a, managerID, -time.Hour, time.Hour), issue(t, a, agentID, -time.Hour, time.Hour)
	lists := filepath.Join(t.TempDir(), "revoked.pem")
	whole := listOf(t, a, time.Hour, bad.cert)
	delta := newTree(t).list(t, nil, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}})
	part := newTree(t).list(t, nil, pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Critical: true, Value: []byte{0x30, 3, 0x81, 1, 0xff}})
	for name, c := range map[string]struct {
		text []byte
		says string
	}{
		"empty":          {nil, "it is empty"},
		"cut off":        {whole[:len(whole)/2], "0 are whole"},
		"second cut off": {append(bytes.Clone(whole), whole[:len(whole)/2]...), "1 are whole"},
		"no list":        {a.PEM(), "0 revocation lists begin in it"},
		"not DER":        {[]byte("revoked: all"), "revocation list 1"},
		"delta":          {delta, "only the changes"},
		"of users alone": {part, "critical extension 2.5.29.28"},
	} {
		write(t, lists, c.text)
		if s, err := pki.Load(pki.Files{Cert: own.cert, Key: own.key, CA: own.ca, Revoked: lists}, nil); !errors.Is(err, pki.ErrFile) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v, want %q", name, s, err, c.says)
		}
		write(t, lists, whole)
		var log logtest.Log
		server := own.withLists(t, lists, slog.New(slog.NewTextHandler(&log, nil)))
		write(t, lists, c.text)
		for range 2 {
			if err, _ := meet(t, server.Server(), bad.load(t, nil).Client(pki.Want{})); !errors.Is(err, pki.ErrRevoked) {
				t.Errorf("%s: what was revoked before: %v", name, err)
			}
		}
		if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, c.says) {
			t.Errorf("%s: the log says %q, want one error with %q", name, text, c.says)
		}
	}
	if s, err := pki.Load(pki.Files{Cert: own.cert, Key: own.key, CA: own.ca, Revoked: lists + ".not"}, nil); !errors.Is(err, pki.ErrFile) {
		t.Errorf("no file: %v, %v", s, err)
	}
}

// TestAnOverdueListStaysInForce: it is reported from time to time, what it revokes stays
// revoked, and others are still taken.
func TestAnOverdueListStaysInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		bad, good := issue(t, a, managerID, -time.Hour, 24*time.Hour), issue(t, a, hostID, -time.Hour, 24*time.Hour)
		lists := filepath.Join(t.TempDir(), "revoked.pem")
		revoke(t, lists, a, time.Hour, bad.cert)
		var log logtest.Log
		server := issue(t, a, agentID, -time.Hour, 24*time.Hour).withLists(t, lists, slog.New(slog.NewTextHandler(&log, nil)))
		if due := server.ListsDue(); time.Until(due).Round(time.Minute) != time.Hour {
			t.Errorf("due %v", due)
		}
		s, _ := join(t, server, good.load(t, nil))
		f := follow(s)
		defer f.release()
		<-time.After(59 * time.Minute)
		synctest.Wait()
		if log.String() != "" {
			t.Errorf("before: %q", log.String())
		}
		<-time.After(3*time.Hour + time.Minute)
		if _, err := f.is(t); err != nil {
			t.Error(err)
		}
		if n := strings.Count(log.String(), "out of date"); n < 3 || n > 4 {
			t.Errorf("in three hours it was reported %d times", n)
		}
		join(t, server, good.load(t, nil))
		if err := server.Expect(pki.Want{Role: pki.Agent}); err != nil {
			t.Error(err)
		}
	})
}

// TestRevoke: the development authority adds to its list.
func TestRevoke(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	h1, h2 := pki.Identity{Role: pki.Host, Name: "h1"}, pki.Identity{Role: pki.Host, Name: "h2"}
	if _, err := pki.Init(dir, agentID, h1, h2); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	load := func(i pki.Identity, lists string) (*pki.Source, error) {
		return pki.Load(pki.Files{Cert: file(pki.CertFile(i)), Key: file(pki.KeyFile(i)), CA: file(pki.AuthorityFile), Revoked: lists}, nil)
	}
	for i, id := range []pki.Identity{h1, h2, h1} {
		path, err := pki.Revoke(dir, file(pki.CertFile(id)))
		if err != nil || path != file(pki.RevokedFile) {
			t.Fatal(path, err)
		}
		for k, other := range []pki.Identity{h1, h2, agentID} {
			if _, err := load(other, path); errors.Is(err, pki.ErrRevoked) != (k <= min(i, 1)) {
				t.Errorf("%d revoked: %v: %v", i+1, other, err)
			}
		}
	}
	if _, err := pki.Revoke(dir, issue(t, newAuthority(t), h1, -time.Hour, time.Hour).cert); !errors.Is(err, pki.ErrAuthority) {
		t.Errorf("of another authority: %v", err)
	}
	if _, err := pki.Revoke(dir, file("nothing.pem")); !errors.Is(err, pki.ErrFile) {
		t.Errorf("no certificate: %v", err)
	}
}

// TestAnOlderListDoesNotReplaceANewerOne: who replays one would have what was revoked since
// taken again. The other authorities' lists in the file are taken.
func TestAnOlderListDoesNotReplaceANewerOne(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	number := func(by *pki.Authority, number int64, certs ...string) []byte {
		t.Helper()
		entries := []x509.RevocationListEntry{}
		for _, file := range certs {
			entries = append(entries, entryOf(t, file))
		}
		text, err := by.List(number, time.Now(), time.Now().Add(time.Hour), entries)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	own := issue(t, a, agentID, -time.Hour, time.Hour)
	write(t, own.ca, append(a.PEM(), b.PEM()...))
	lists := filepath.Join(t.TempDir(), "revoked.pem")
	first, second, ofB := issue(t, a, managerID, -time.Hour, time.Hour), issue(t, a, managerID, -time.Hour, time.Hour), issue(t, b, managerID, -time.Hour, time.Hour)
	write(t, ofB.ca, a.PEM())
	clientOfB, err := pki.Load(pki.Files{Cert: ofB.cert, Key: ofB.key, CA: own.ca}, nil)
	if err != nil {
		t.Fatal(err)
	}
	clients := []*pki.Source{first.load(t, nil), second.load(t, nil), clientOfB}
	write(t, lists, number(a, 2, first.cert))
	var log logtest.Log
	server := own.withLists(t, lists, slog.New(slog.NewTextHandler(&log, nil)))
	for _, c := range []struct {
		what    string
		text    []byte
		revoked [3]bool
		logged  int
	}{
		{"as it begins", nil, [3]bool{true, false, false}, 0},
		{"an older list, and another authority's", append(number(a, 1), number(b, 1, ofB.cert)...), [3]bool{true, false, true}, 1},
		{"the same again", append(number(a, 1), number(b, 1, ofB.cert)...), [3]bool{true, false, true}, 2},
		{"a newer one", append(number(a, 3, first.cert, second.cert), number(b, 2)...), [3]bool{true, true, false}, 2},
		{"the one before", number(a, 2, first.cert), [3]bool{true, true, false}, 3},
		{"another authority's alone", number(b, 2), [3]bool{true, true, false}, 3},
		{"the one before, after that", append(number(a, 2, first.cert), number(b, 2)...), [3]bool{true, true, false}, 4},
		{"a newer one that pardons", number(a, 300, second.cert), [3]bool{false, true, false}, 4},
		{"two", append(number(a, 310, first.cert), number(a, 312, second.cert)...), [3]bool{true, true, false}, 4},
		{"one between them", number(a, 311), [3]bool{true, true, false}, 5},
		{"a last one", number(a, 313), [3]bool{}, 5},
	} {
		if c.text != nil {
			write(t, lists, c.text)
		}
		for i, client := range clients {
			if err, _ := meet(t, server.Server(), client.Client(pki.Want{})); errors.Is(err, pki.ErrRevoked) != c.revoked[i] || err != nil && !c.revoked[i] {
				t.Errorf("%s: client %d: %v", c.what, i, err)
			}
		}
		if n := strings.Count(log.String(), "is older than"); n != c.logged {
			t.Errorf("%s: the log has it %d times, want %d", c.what, n, c.logged)
		}
	}
}
