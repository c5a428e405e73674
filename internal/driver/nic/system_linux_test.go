package nic_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tributary-fabric/tributary/internal/driver/nic"
)

// TestSystemWatchEnds leaves nothing behind that reads.
func TestSystemWatchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := nic.System().Watch(ctx, cancel)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
