package pki_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-fabric/tributary/internal/check/logtest"
	"github.com/tributary-fabric/tributary/internal/driver/pki"
	"github.com/tributary-fabric/tributary/internal/driver/secretfile"
)

// renewal is an agent whose files are replaced while a manager calls it.
type renewal struct {
	*testing.T
	source *pki.Source
	client *pki.Source
}

// meets shakes hands, and reports whether the agent shows another certificate than before.
func (r *renewal) meets(what, before string) (now string) {
	r.Helper()
	if s, c := meet(r.T, r.source.Server(), r.client.Client(pki.Want{Role: pki.Agent})); s != nil || c != nil {
		r.Errorf("%s: server %v, client %v", what, s, c)
	}
	now = serialOf(r.T, r.source)
	if before != "" && now != before {
		r.Errorf("%s: another certificate is shown", what)
	}
	return now
}

// TestRenewedInAnyOrder: files are written in place, piece by piece, either one first; no
// handshake fails meanwhile, and when both are whole the new certificate is shown.
func TestRenewedInAnyOrder(t *testing.T) {
	a := newAuthority(t)
	for _, keyFirst := range []bool{true, false} {
		f := issue(t, a, agentID, -time.Hour, time.Hour)
		r := &renewal{t, f.load(t, nil), valid(t, a, managerID)}
		old := r.meets("at first", "")
		cert, key, err := a.Issue(agentID, time.Now().Add(-time.Hour), time.Now().Add(2*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		order := []struct {
			path string
			text []byte
		}{{f.cert, cert}, {f.key, key}}
		if keyFirst {
			order[0], order[1] = order[1], order[0]
		}
		for _, file := range order {
			w, err := os.OpenFile(file.path, os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			for from := 0; from < len(file.text); from += 100 {
				r.meets("while it is written", old)
				if _, err := w.Write(file.text[from:min(from+100, len(file.text))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if r.meets("renewed", "") == old {
			t.Errorf("key first: %v: the old certificate is shown still", keyFirst)
		}
	}
}

// TestRenewedBySymbolicLink: as Kubernetes replaces the files of a secret, with all their
// directory; the names that are configured stay.
func TestRenewedBySymbolicLink(t *testing.T) {
	a := newAuthority(t)
	dir := t.TempDir()
	put := func(name string, until time.Duration) {
		f := issue(t, a, agentID, -time.Hour, until)
		at := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(at, 0o700), os.Rename(f.cert, filepath.Join(at, "tls.crt")),
			os.Rename(f.key, filepath.Join(at, "tls.key")), os.Rename(f.ca, filepath.Join(at, "ca.crt")),
			os.Symlink(name, filepath.Join(dir, "..data.new")), os.Rename(filepath.Join(dir, "..data.new"), filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", time.Hour)
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := pki.Load(pki.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &renewal{t, s, valid(t, a, managerID)}
	old := r.meets("at first", "")
	put("..2", 2*time.Hour)
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	if r.meets("replaced", "") == old {
		t.Error("the old certificate is shown still")
	}
	if until := time.Until(s.Until()); until < 90*time.Minute {
		t.Errorf("valid for %v", until)
	}
}

// TestAnAuthorityFileThatIsCutOffIsNotTaken: half of a file of authorities would exclude those
// in the other half.
func TestAnAuthorityFileThatIsCutOffIsNotTaken(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	f := issue(t, a, agentID, -time.Hour, time.Hour)
	both := append(a.PEM(), b.PEM()...)
	write(t, f.ca, both)
	r := &renewal{t, f.load(t, nil), valid(t, a, managerID)}
	write(t, f.ca, both[:len(both)-50])
	g := issue(t, b, managerID, -time.Hour, time.Hour)
	write(t, g.ca, both)
	r.client = g.load(t, nil)
	r.meets("of the authority that is cut off", "")
}

// TestExposedKey: a key that others may read is no secret.
func TestExposedKey(t *testing.T) {
	f := issue(t, newAuthority(t), agentID, -time.Hour, time.Hour)
	if err := os.Chmod(f.key, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := pki.Load(pki.Files{Cert: f.cert, Key: f.key, CA: f.ca}, nil); !errors.Is(err, secretfile.ErrMode) {
		t.Errorf("%v, %v", s, err)
	}
}

// TestARenewedKeyThatIsExposed: it is not taken, which the log repeats every hour; and once its
// mode is as the log says, it is in use without another change.
func TestARenewedKeyThatIsExposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		f := issue(t, a, agentID, -time.Hour, 24*time.Hour)
		var log logtest.Log
		s := f.load(t, slog.New(slog.NewTextHandler(&log, nil)))
		agent, _ := join(t, s, issue(t, a, managerID, -time.Hour, 24*time.Hour).load(t, nil))
		defer follow(agent).release()
		reported := func() int { synctest.Wait(); return strings.Count(log.String(), "run chmod 0600") }
		f.renew(t, a, agentID, -time.Hour, 48*time.Hour)
		if err := os.Chmod(f.key, 0o644); err != nil {
			t.Fatal(err)
		}
		before := serialOf(t, s)
		<-time.After(59 * time.Minute)
		if n := reported(); n != 1 {
			t.Errorf("at first it was reported %d times", n)
		}
		<-time.After(2*time.Hour + 5*time.Minute)
		if n := reported(); n != 4 {
			t.Errorf("in three hours it was reported %d times", n)
		}
		if err := os.Chmod(f.key, 0o600); err != nil {
			t.Fatal(err)
		}
		<-time.After(6 * time.Second)
		if serialOf(t, s) == before {
			t.Error("the new certificate is not in use")
		}
	})
}
