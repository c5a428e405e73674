package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// RevokedFile is the file of an authority's revocation list in its directory.
const RevokedFile = "revoked.pem"

// List returns a revocation list as PEM: its number, which rises with every list, when it was
// made, when the next one is due, and what is revoked.
func (a *Authority) List(number int64, now, next time.Time, revoked []x509.RevocationListEntry) ([]byte, error) {
	der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
		Number: big.NewInt(number), ThisUpdate: now, NextUpdate: next, RevokedCertificateEntries: revoked,
	}, a.cert, a.key)
	if err != nil {
		return nil, fmt.Errorf("pki: making a revocation list: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: listBlock, Bytes: der}), nil
}

// Revoke adds certificates of the authority in dir, the first in each file, to its revocation
// list, which it makes if there is none, and returns the list's path. The next list is due when
// certificates made now expire.
func Revoke(dir string, certFiles ...string) (string, error) {
	a, err := OpenAuthority(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, RevokedFile)
	number, entries := int64(1), []x509.RevocationListEntry(nil)
	before, err := readRevocations(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if before != nil {
		last := before.lists[0]
		if !last.isOf(a.cert) || last.Number == nil || !last.Number.IsInt64() {
			return "", fmt.Errorf("%w: %s is no list of the authority in %s", ErrFile, path, dir)
		}
		number, entries = last.Number.Int64()+1, last.RevokedCertificateEntries
	}
	now := time.Now()
	for _, file := range certFiles {
		certs, err := readCertificates(file)
		if err != nil {
			return "", err
		}
		if err := certs[0].CheckSignatureFrom(a.cert); err != nil {
			return "", fmt.Errorf("%w: %s: it is not of the authority in %s: %w", ErrAuthority, file, dir, err)
		}
		if !slices.ContainsFunc(entries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(certs[0].SerialNumber) == 0 }) {
			entries = append(entries, x509.RevocationListEntry{SerialNumber: certs[0].SerialNumber, RevocationTime: now})
		}
	}
	text, err := a.List(number, now, now.Add(Life), entries)
	if err != nil {
		return "", err
	}
	if err := replace(path, text); err != nil {
		return "", fmt.Errorf("pki: %w", err)
	}
	return path, nil
}

// replace writes a file in one step: who reads it meanwhile reads the old or the new one.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
