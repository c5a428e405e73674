package process_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/tributary-fabric/tributary/internal/whole/command/process"
)

func TestCheckMemory(t *testing.T) {
	if err := process.CheckMemory(process.Vectors{Members: 4, Bytes: 1024, Each: 2}); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what is free")
	}
	err := process.CheckMemory(process.Vectors{Members: 1 << 16, Bytes: 1 << 34, Each: 2})
	if !errors.Is(err, process.ErrMemory) || !strings.Contains(err.Error(), "65536 members with 2 vectors of 17179869184 bytes each take 2097152.0 GiB") {
		t.Error(err)
	}
}
