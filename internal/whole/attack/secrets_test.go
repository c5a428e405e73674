package attack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/core/agent"
	"github.com/tributary-fabric/tributary/internal/core/manager"
	"github.com/tributary-fabric/tributary/internal/core/session"
	"github.com/tributary-fabric/tributary/internal/core/switchreduce"
	"github.com/tributary-fabric/tributary/internal/driver/sealed"
	"github.com/tributary-fabric/tributary/internal/driver/transport"
	"github.com/tributary-fabric/tributary/internal/wire"
	"github.com/tributary-fabric/tributary/internal/wire/gossip"
	"github.com/tributary-fabric/tributary/membership"
)

// shown returns all that can be printed of a value.
func shown(v any) string {
	var b bytes.Buffer
	verbs := []string{"v", "+v", "#v", "d", "x", "X", "# x", "b", "o", "s", "q"}
	switch v.(type) {
	case *session.Session, *switchreduce.Core: // see wire.Secret
		verbs = verbs[:len(verbs)-2]
	}
	for _, verb := range verbs {
		fmt.Fprintf(&b, "%"+verb+"\n", v)
	}
	if text, err := json.Marshal(v); err == nil {
		b.Write(text)
	}
	fmt.Fprintln(&b)
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("x", slog.Any("value", v))
	}
	return b.String()
}

// TestNoSecretIsPrinted: who reads logs learns no key and no cookie, whatever is printed, and however.
func TestNoSecretIsPrinted(t *testing.T) {
	const cookie = 0xc2a1b3d4e5f6
	secret := [32]byte(bytes.Repeat([]byte{0xa9}, 32))
	var traces []string
	for _, format := range []string{"%d", "%x", "%X", "%b", "%o"} {
		traces = append(traces, fmt.Sprintf(format, uint64(cookie)), fmt.Sprintf(format, secret[:3]), strings.Trim(fmt.Sprintf(format, secret[:3]), "[]"))
	}
	traces = append(traces, "169,169,169", "0xa9, 0xa9, 0xa9", "0xa9 0xa9", "A9 A9", string(secret[:3]), `\xa9\xa9`)

	child, parent := netip.MustParseAddrPort("10.0.0.1:7"), netip.MustParseAddrPort("10.0.0.2:7")
	config := switchreduce.Config{
		Group: 1, Epoch: 2, Window: 8, ChunkBytes: 64, Parent: parent, Cookie: cookie, Key: secret, Protection: wire.Encrypted,
		Children: []switchreduce.Child{{Addr: child, Cookie: cookie, Key: secret}},
	}
	tree, out := switchreduce.New(), switchreduce.Output{TakesBatches: true}
	tree.Step(0, []switchreduce.Input{{Kind: switchreduce.Install, Config: &config}}, &out)
	link := session.Link{Group: 1, Epoch: 2, Cookie: cookie, Key: secret, Protection: wire.Encrypted, Window: 8, Parent: parent}
	member, err := session.New(session.Config{ChunkBytes: 64, Window: 8}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := member.Enter(0, link, session.Decision{}, new(session.Output)); err != nil {
		t.Fatal(err)
	}
	conn, edge := sealed.Over(transport.Conn(nil)), sealed.Edge{Peer: parent, Key: secret}
	if err := conn.Install(2, wire.Encrypted, []sealed.Edge{edge}); err != nil {
		t.Fatal(err)
	}
	key := membership.Key{Number: 3, Secret: secret}
	create := manager.Create{Name: "g", Secret: secret}
	spec := &manager.Spec{Name: "g", Secret: secret}
	for _, v := range []any{
		wire.Secret(secret), wire.Cookie(cookie), []wire.Secret{secret}, map[wire.Cookie]wire.Secret{cookie: secret},
		wire.Header{Cookie: cookie}, config, &config, config.Children[0], switchreduce.Batch{Cookie: cookie}, tree,
		link, &link, member, create, &create, spec, *spec, manager.Record{Spec: spec},
		manager.Offer{Cookie: cookie, Key: secret}, agent.Commit{Config: config}, agent.Action{Config: &config},
		agent.Output{Actions: []agent.Action{{Config: &config}}}, edge, &edge, conn,
		key, &key, membership.Config{Keys: []membership.Key{key}}, gossip.SharedKey{Number: 3, Secret: secret},
		slog.GroupValue(slog.Any("key", wire.Secret(secret)), slog.Any("link", link)), fmt.Errorf("with %v", link),
	} {
		text := shown(v)
		for _, trace := range traces {
			if strings.Contains(text, trace) {
				t.Errorf("%T shows %q:\n%.2000s", v, trace, text)
				break
			}
		}
	}
}
