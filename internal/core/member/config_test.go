package member

import (
	"errors"
	"testing"
	"time"

	"github.com/tributary-fabric/tributary/internal/wire/gossip"
)

func TestConfigValidate(t *testing.T) {
	valid := Config{Settings: DefaultSettings(), Self: idOf("a"), Incarnation: 1, Bootstrap: []gossip.ID{idOf("b"), "@10.0.0.1:7946"}}
	if err := valid.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Config){
		"Theta 0":             func(c *Config) { c.Theta = 0 },
		"Ks below Theta":      func(c *Config) { c.Theta, c.Ks = 3, 2 },
		"Kr 0":                func(c *Config) { c.Kr = 0 },
		"too many neighbours": func(c *Config) { c.Kr = 64 },
		"no Tau":              func(c *Config) { c.Tau = 0 },
		"no Confirm":          func(c *Config) { c.Confirm = 0 },
		"Grace too short":     func(c *Config) { c.Grace = c.Confirm - 1 },
		"no Connect":          func(c *Config) { c.Connect = 0 },
		"negative Health":     func(c *Config) { c.Health = -1 },
		"negative Stealth":    func(c *Config) { c.Stealth = -1 },
		"negative History":    func(c *Config) { c.History = -1 },
		"negative Remember":   func(c *Config) { c.Remember = -time.Second },
		"no Discovery":        func(c *Config) { c.Discovery = Discovery{} },
		"Discovery backward":  func(c *Config) { c.Discovery.Last = c.Discovery.First - 1 },
		"no ID":               func(c *Config) { c.Self = "" },
		"an anonymous ID":     func(c *Config) { c.Self = "@10.0.0.1:1" },
		"a bad bootstrap":     func(c *Config) { c.Bootstrap = []gossip.ID{"b"} },
		"incarnation 0":       func(c *Config) { c.Incarnation = 0 },
	} {
		c := valid
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", what, err)
		}
		if _, err := New(c, NewDirectory(), 0); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: New: %v, want ErrConfig", what, err)
		}
	}
}
