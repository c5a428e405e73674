//go:build !race

package udp

import (
	"io"
	"testing"
)

// TestNoAllocation: messages both ways allocate nothing.
func TestNoAllocation(t *testing.T) {
	a, b := pair(t, Config{})
	go func() { _, _ = io.Copy(struct{ io.Writer }{b}, struct{ io.Reader }{b}) }()
	room := make([]byte, 30_000)
	trip := func() {
		if _, err := a.Write(room); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(a, room); err != nil {
			t.Error(err)
		}
	}
	for range 50 {
		trip()
	}
	if n := testing.AllocsPerRun(200, trip); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
