package broadcast

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/broadcastmsg"
)

func TestConfig(t *testing.T) {
	if err := DefaultConfig("n0", 1).Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for name, change := range map[string]func(c *Config){
		"no name":          func(c *Config) { c.Node = "" },
		"long name":        func(c *Config) { c.Node = broadcastmsg.Node(strings.Repeat("n", 65)) },
		"no round trip":    func(c *Config) { c.RoundTrip = 0 },
		"no attempt":       func(c *Config) { c.Attempts = 0 },
		"negative pause":   func(c *Config) { c.RetryAfter = -time.Second },
		"small parts":      func(c *Config) { c.PartBytes = 1000 },
		"negative buffers": func(c *Config) { c.Receive = -1 },
		"nothing kept":     func(c *Config) { c.Remember = 0 },
		"library's tree":   func(c *Config) { c.Trees = map[broadcastmsg.Kind]Shape{broadcastmsg.Flat: flat} },
	} {
		cfg := DefaultConfig("n0", 1)
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}
