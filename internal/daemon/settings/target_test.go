package settings_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/daemon/agentd"
	"github.com/tributary-fabric/tributary/internal/daemon/settings"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/pipeline"
	"github.com/tributary-fabric/tributary/internal/driver/dataplane/portmap"
	"github.com/tributary-fabric/tributary/internal/driver/p4rt"
	"github.com/tributary-fabric/tributary/internal/driver/rpc"
	"github.com/tributary-fabric/tributary/p4"
)

func TestP4Example(t *testing.T) {
	a, err := settings.ReadAgentFile(examples + "agent-p4.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := a.Config()
	if err != nil || c.Validate() != nil {
		t.Fatal(err, c.Validate())
	}
	if c.Capability != pipeline.Limits() || c.Target.Device != 1 || len(c.Ports) != 1 || c.Ports[0] != (portmap.Spec{Interface: "leaf-0-eth*"}) {
		t.Errorf("read %+v, %+v", c, c.Target)
	}
	c.AllowPlaintext = false
	if err := c.Validate(); !errors.Is(err, rpc.ErrPlaintext) {
		t.Errorf("without certificates: %v", err)
	}
}

func TestPortsAndRoutesByHand(t *testing.T) {
	const head = "version: 1\nswitch: s\nplaintext: true\npipeline: p4\np4runtime: {address: 'a:1'}\n"
	const byHand = "  - {number: 1, address: 10.0.0.0, mac: '02:00:00:00:00:02'}\n"
	const routes = "routes: [{prefix: 10.0.0.17/32, port: %d, mac: '02:00:00:00:08:02'}]\n"
	port := p4.Port{Number: 1, Addr: netip.MustParseAddr("10.0.0.0"), MAC: p4.MAC{2, 0, 0, 0, 0, 2}}
	route := p4.Route{Prefix: netip.MustParsePrefix("10.0.0.17/32"), Port: 1, MAC: p4.MAC{2, 0, 0, 0, 8, 2}}
	read := func(text string) agentd.Config {
		t.Helper()
		a, err := settings.ReadAgent(strings.NewReader(text), "f")
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Config()
		if err != nil || c.Validate() != nil {
			t.Fatal(err, c.Validate())
		}
		return c
	}
	c := read(head + "ports:\n" + byHand + fmt.Sprintf(routes, 1))
	if len(c.Ports) != 0 || !slices.Equal(c.Target.Ports, []p4.Port{port}) || !slices.Equal(c.Target.Routes, []p4.Route{route}) {
		t.Errorf("by hand alone: %+v, %+v", c.Ports, c.Target)
	}
	c = read(head + "ports:\n  - {interface: eth7, address: 10.0.0.16}\n" + byHand + fmt.Sprintf(routes, 7))
	route.Port = 7
	specs := []portmap.Spec{
		{Interface: "eth7", Addr: netip.MustParseAddr("10.0.0.16")}, {Number: 1, Addr: port.Addr, MAC: port.MAC},
	}
	if !slices.Equal(c.Ports, specs) || len(c.Target.Ports) != 0 || !slices.Equal(c.Routes, []p4.Route{route}) {
		t.Errorf("beside an interface: %+v, %+v, %+v", c.Ports, c.Routes, c.Target)
	}
}

func TestTargetGNMI(t *testing.T) {
	for text, want := range map[string]string{
		"ports: [{interface: '1/1/*'}]\np4runtime: {address: 'a:1', gnmi: '127.0.0.1:9339'}\n":                                     "",
		"ports: [{number: 1, address: 10.0.0.1, mac: '02:00:00:00:00:01'}]\np4runtime: {address: 'a:1', gnmi: '127.0.0.1:9339'}\n": "none is a port",
		"ports: [{interface: '1/1/*'}]\np4runtime: {address: 'a:1', gnmi: '10.0.0.1:9339'}\n":                                      "10.0.0.1:9339 is not on this machine",
	} {
		a, err := settings.ReadAgent(strings.NewReader("version: 1\nswitch: s\npipeline: p4\n"+text), "f")
		if err != nil {
			t.Fatal(err)
		}
		c, err := a.Config()
		switch {
		case want == "" && (err != nil || !c.Elsewhere || c.Interfaces == nil):
			t.Errorf("%s: %+v, %v", text, c, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestTargetTLS(t *testing.T) {
	dir := t.TempDir()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"ca.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), "empty.pem": nil, "password": []byte("secret\r\nnot this\n"),
		"own.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(encryption string) (agentd.Config, error) {
		text := "version: 1\nswitch: s\npipeline: p4\nports: [{number: 1, address: 10.0.0.1, mac: '02:00:00:00:00:01'}]\n" +
			"p4runtime: {address: 'far.example:9559'" + encryption + "}\n"
		a, err := settings.ReadAgent(strings.NewReader(text), filepath.Join(dir, "agent.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		return a.Config()
	}
	if c, err := read(""); c.Target.TLS != nil || c.Target.Login != (p4rt.Login{}) || err != nil {
		t.Errorf("without: %+v, %v", c.Target, err)
	}
	config, err := read(", tls: {authority: ca.pem, name: leaf-0}, login: {user: u, password: password}")
	if err != nil || config.Target.Login != (p4rt.Login{User: "u", Password: "secret"}) {
		t.Fatalf("%+v, %v", config.Target, err)
	}
	if c, err := config.Target.TLS(); err != nil || c.ServerName != "leaf-0" || c.RootCAs == nil || c.InsecureSkipVerify {
		t.Errorf("%+v, %v", c, err)
	}
	config, err = read(", tls: {authority: ca.pem, name: example.com, certificate: ca.pem, key: own.key}")
	if err != nil {
		t.Fatal(err)
	}
	own, err := config.Target.TLS()
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: own}}
	answer, err := client.Get(server.URL)
	if err != nil {
		t.Fatalf("a server that asks for a certificate: %v", err)
	}
	_ = answer.Body.Close()
	if err := os.Rename(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "old.pem")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Target.TLS(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that has gone since: %v", err)
	}
	for encryption, want := range map[string]string{
		", tls: {authority: nowhere.pem}":                           "p4runtime.tls.authority: open ",
		", tls: {authority: empty.pem}":                             "empty.pem has no certificate",
		", tls: {authority: old.pem, certificate: old.pem, key: k}": "p4runtime.tls.key: open ",
		", login: {user: u, password: nowhere}":                     "p4runtime.login.password: open ",
		", login: {user: u, password: empty.pem}":                   "empty.pem is empty",
	} {
		if _, err := read(encryption); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", encryption, err, want)
		}
	}
}
