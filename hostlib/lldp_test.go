package hostlib

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/hooks"
	"github.com/tributary-fabric/tributary/internal/driver/lldp"
	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// TestLLDP: a host that may announce itself does; one that may not joins all the same, and
// says why.
func TestLLDP(t *testing.T) {
	var none nic.Fake
	join := func() (*Host, string) {
		var log bytes.Buffer
		ctx := hooks.With(t.Context(), hooks.Hooks{Interfaces: &none})
		h, err := Join(ctx, Config{Name: "h0", LLDP: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		said := h.lldp
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if said != nil {
			<-said.Done()
		}
		return h, log.String()
	}
	if s, err := lldp.Start(lldp.OfHost("h0", &none, nil)); err == nil {
		s.Close()
		if h, log := join(); h.lldp == nil {
			t.Errorf("it may, and has not; it logged %s", log)
		}
	} else if !errors.Is(err, lldp.ErrPermission) && !errors.Is(err, lldp.ErrUnsupported) {
		t.Error(err)
	}
	none.Set(nil, nic.ErrUnsupported)
	if h, log := join(); h.lldp != nil || !strings.Contains(log, "not announced") || !strings.Contains(log, nic.ErrUnsupported.Error()) {
		t.Errorf("it may not; it logged %q", log)
	}
}
