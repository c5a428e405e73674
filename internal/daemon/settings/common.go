package settings

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/topology"
)

// TLS are the certificate files of mutual TLS, all or none, but for the revocation lists.
type TLS struct {
	Certificate string // of this process, with its chain; PEM
	Key         string
	Authority   string // certificates of the authorities that others' are checked against
	Revoked     string // revocation lists of these authorities; empty: none
}

// Given reports whether there are certificate files.
func (t TLS) Given() bool { return t != TLS{} }

// Files returns the paths as package pki takes them.
func (t TLS) Files() pki.Files {
	return pki.Files{Cert: t.Certificate, Key: t.Key, CA: t.Authority, Revoked: t.Revoked}
}

// tls returns a reader of the certificate files.
func (d *reader) tls(to *TLS) func(field) {
	return func(f field) {
		d.whole(f, map[string]func(field){
			"certificate": d.filePath(&to.Certificate), "key": d.filePath(&to.Key), "authority": d.filePath(&to.Authority),
			"revoked": d.filePath(&to.Revoked),
		}, func() string {
			if to.Certificate == "" || to.Key == "" || to.Authority == "" {
				return "certificate, key and authority are needed together"
			}
			return ""
		})
	}
}

// maxConnections bounds what a file may say of connections.
const maxConnections = 1 << 20

// connections returns a reader of what others may take of a gRPC server.
func (d *reader) connections(to *rpc.Limits) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){
			"most": count(d, &to.Connections, 1, maxConnections), "per-address": count(d, &to.OfSource, 1, maxConnections),
			"calls": count(d, &to.Streams, 1, maxConnections),
		})
	}
}

// Admin is where metrics and health are served, over HTTP, and profiles.
type Admin struct {
	Listen   string // "host:port"; empty: nowhere
	Remote   bool   // Listen may be another address than a loopback one
	Profiles string // "host:port" of profiles, a loopback address; empty: nowhere
}

func (d *reader) admin(to *Admin) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){"listen": d.address(&to.Listen), "remote": d.boolean(&to.Remote), "profiles": d.address(&to.Profiles)}, "listen!")
	}
}

// Log is what is logged, and how.
type Log struct {
	Level  string // "debug", "info", "warn" or "error"
	Format string // "text" or "json"
}

var (
	levels  = []string{"debug", "info", "warn", "error"}
	formats = []string{"text", "json"}
)

func (d *reader) log(to *Log) func(field) {
	return func(f field) {
		d.object(f, map[string]func(field){
			"level": d.oneOf(&to.Level, levels...), "format": d.oneOf(&to.Format, formats...),
		})
	}
}

// Logger returns a logger that writes to w.
func (l Log) Logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, fmt.Errorf("log level %q is not one of %v: %w", l.Level, levels, topology.ErrField)
	}
	o := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}
