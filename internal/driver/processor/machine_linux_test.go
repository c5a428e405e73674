package processor

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	const text = "MemTotal:        2048 kB\nMemFree: 12 kB\nMemAvailable:    1024 kB\nHugePages_Total:       0\n"
	if m, err := parseMemory(strings.NewReader(text)); err != nil || m != (Memory{Physical: 2 << 20, Available: 1 << 20}) {
		t.Errorf("%+v, %v", m, err)
	}
	for _, text := range []string{"", "MemTotal: 1 kB\n", "MemTotal: 1 kB\nMemAvailable: 2 kB\n", "MemTotal: x kB\nMemAvailable: 2 kB\n"} {
		if m, err := parseMemory(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
	if m, err := ReadMemory(); err != nil || m.Physical == 0 {
		t.Errorf("this machine: %+v, %v", m, err)
	}
}

func TestBoot(t *testing.T) {
	if at, err := parseBoot(strings.NewReader("cpu 1 2\nbtime 1700000000\n")); err != nil || !at.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("%v, %v", at, err)
	}
	for _, text := range []string{"", "btime x\n", "btime -5\n"} {
		if at, err := parseBoot(strings.NewReader(text)); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v, %v", text, at, err)
		}
	}
	if at, err := ReadBoot(); err != nil || at.IsZero() {
		t.Errorf("this machine: %v, %v", at, err)
	}
}

func TestProcess(t *testing.T) {
	if p, err := ReadProcess(); err != nil || p.Resident == 0 || p.User < 0 || p.System < 0 {
		t.Errorf("%+v, %v", p, err)
	}
}
