package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/membership"
)

func TestMembershipSettings(t *testing.T) {
	const text = `version: 1
topology: four-switches:2
membership:
  name: m
  listen: 10.0.0.1:7946
  bootstrap: [10.0.0.2:7946]
  zone: 7
  supervisors: [10.0.0.3:7946, 10.0.0.4:7946]
  state: start
  tls: {certificate: c.pem, key: k.pem, authority: ca.pem}
  plaintext: true
  timing: {tau: 1ms, heartbeat: 2s, grace: 3s, confirm: 4ms, dial: 5s, theta: 2, random: 6, successors: 3, health: off, stealth: off}
  hierarchy: {delegates: 3, supervisors: 4, settle: 1s, patience: 2s, retry: 3s, beat: 4s, silence: 5, linger: 6s}
`
	m, err := settings.ReadManager(strings.NewReader(text), "f")
	if err != nil {
		t.Fatal(err)
	}
	c, err := m.Membership.Config()
	want := membership.Config{
		Name: "m", Listen: "10.0.0.1:7946", Bootstrap: []string{"10.0.0.2:7946"}, Zone: 7, Supervisors: []string{"10.0.0.3:7946", "10.0.0.4:7946"}, State: "start",
		TLS: &membership.TLS{Cert: "c.pem", Key: "k.pem", CA: "ca.pem"}, AllowPlaintext: true,
		Timing: membership.Timing{
			Tau: time.Millisecond, Heartbeat: 2 * time.Second, Grace: 3 * time.Second, Confirm: 4 * time.Millisecond, Dial: 5 * time.Second,
			Theta: 2, Random: 6, Successors: 3, Health: -1, Stealth: -1,
		},
		Hierarchy: membership.Hierarchy{
			Delegates: 3, Supervisors: 4, Settle: time.Second, Patience: 2 * time.Second, Retry: 3 * time.Second,
			Beat: 4 * time.Second, Silence: 5, Linger: 6 * time.Second,
		},
	}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, %v; want %+v", c, err, want)
	}
}

func TestNode(t *testing.T) {
	n, err := settings.ReadNodeFile(examples + "node.yaml")
	if err != nil || n.Membership.Name != "" || len(n.Membership.Bootstrap) != 3 || n.Membership.Zone != 1 || n.Admin.Listen != "127.0.0.1:7482" || n.Log.Level != "info" {
		t.Errorf("%+v, %v", n, err)
	}
	n, err = settings.ReadNode(strings.NewReader("version: 1\nmembership: {name: a, timing: {stealth: off}}\n"), "f")
	if err != nil || n.Membership.Name != "a" || n.Membership.Timing.Stealth != -1 {
		t.Errorf("%+v, %v", n, err)
	}
	for text, want := range map[string]string{
		"version: 1\n": "f:1: membership is missing", "version: 1\nmembership: {zone: 3, management: true}\n": "f:2: membership: membership: invalid configuration: zone 3",
		"version: 1\nmembership: {}\nstore: a\n":                                  "f:3: store: unknown field",
		"version: 1\nmembership: {tls: {certificate: a, key: b, authority: c}}\n": "f:2: membership: tls does not seal datagrams",
	} {
		if _, err := settings.ReadNode(strings.NewReader(text), "f"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestMembershipKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	m := settings.Membership{Name: "m", Listen: "127.0.0.1:0", Keys: file, Encrypt: true}
	if _, err := m.Config(); !errors.Is(err, membership.ErrConfig) || !strings.Contains(err.Error(), file) {
		t.Errorf("without the file: %v", err)
	}
	secret := strings.Repeat("0f", 32)
	for text, want := range map[string]string{
		"": "no keys", "1:" + secret[2:]: ":1: want", "# a\n16:" + secret: ":2: want", "x": ":1: want",
		"1:" + secret + "\n1:" + secret: "each once",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Config(); !errors.Is(err, membership.ErrConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret[2:]) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.WriteFile(file, []byte("# new, old\n\n2:"+secret+"\n 1:"+strings.Repeat("00", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := m.Config()
	if err != nil || len(c.Keys) != 2 || c.Keys[0].Number != 2 || c.Keys[0].Secret[31] != 15 || c.Keys[1].Number != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// wrong is a file and its errors, in their order.
type wrong struct {
	name, text string
	want       error
	messages   []string
	schema     bool // whether the schema sees it, too
}
