package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/pki"
)

func TestCerts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trust")
	out, _, err := execute(t, "certs", "init", dir, "--manager", "m", "--agent", "leaf-0,leaf-1", "--host", "h0", "--host", "h1", "--operator", "me")
	if err != nil {
		t.Fatal(err)
	}
	if paths := strings.Fields(out); len(paths) != 2+2*6 || paths[0] != filepath.Join(dir, "ca.pem") {
		t.Errorf("files %q", paths)
	}
	if out, _, err := execute(t, "certs", "add", dir, "--host", "h2"); err != nil || strings.Count(out, "\n") != 2 {
		t.Errorf("add: %q, %v", out, err)
	}
	if _, err := pki.Load(pki.Files{Cert: filepath.Join(dir, "host-h2.pem"), Key: filepath.Join(dir, "host-h2-key.pem"), CA: filepath.Join(dir, "ca.pem")}, nil); err != nil {
		t.Error(err)
	}
	lists := filepath.Join(dir, pki.RevokedFile)
	for _, files := range [][]string{nil, {filepath.Join(dir, "host-h2.pem")}, nil} { // an empty list, one more, the same anew
		if out, _, err := execute(t, append([]string{"certs", "revoke", dir}, files...)...); err != nil || out != lists+"\n" {
			t.Errorf("revoke %q: %q, %v", files, out, err)
		}
	}
	for host, want := range map[string]error{"host-h2": pki.ErrRevoked, "host-h1": nil} {
		f := pki.Files{Cert: filepath.Join(dir, host+".pem"), Key: filepath.Join(dir, host+"-key.pem"), CA: filepath.Join(dir, "ca.pem"), Revoked: lists}
		if _, err := pki.Load(f, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", host, err, want)
		}
	}
	for file, want := range map[string][]string{
		"ca.pem":           {"authority\n", "valid now"},
		"manager-m.pem":    {"tributary://manager/m\n", "server, client", "valid now", "issuer   CN=Tributary development authority"},
		"agent-leaf-1.pem": {"tributary://agent/leaf-1\n", "for      server\n"},
		"host-h0.pem":      {"tributary://host/h0\n", "for      server, client\n"},
		"operator-me.pem":  {"tributary://operator/me\n", "for      client\n"},
	} {
		out, _, err := execute(t, "certs", "show", filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
		}
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q in\n%s", file, text, out)
			}
		}
	}
}

func TestCertsBadInput(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := execute(t, "certs", "init", dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want error
		says string
	}{
		{[]string{"init", dir}, pki.ErrExists, "ca.pem"},
		{[]string{"revoke", dir, filepath.Join(dir, "nowhere.pem")}, pki.ErrFile, "nowhere.pem"},
		{[]string{"add", dir}, errUsage, "--host NAME"},
		{[]string{"add", filepath.Join(dir, "nowhere"), "--host", "h"}, pki.ErrFile, "nowhere"},
		{[]string{"add", dir, "--agent", "a,,b"}, pki.ErrIdentity, "agent"},
		{[]string{"show", filepath.Join(dir, "ca-key.pem")}, pki.ErrFile, "no certificate"},
		{[]string{"show"}, nil, "FILE is missing"},
		{[]string{"init"}, nil, "DIR is missing"},
	} {
		out, _, err := execute(t, append([]string{"certs"}, c.args...)...)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || out != "" {
			t.Errorf("%v: %q, %v, want %v with %q", c.args, out, err, c.want, c.says)
		}
	}
}
