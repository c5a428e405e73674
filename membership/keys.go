package membership

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/tributary-fabric/tributary/internal/driver/secretfile"
)

// Key is a secret that all nodes share.
type Key struct {
	Number uint8    // 1 to MaxKey; all nodes call the same key so
	Secret [32]byte // random bytes
}

// Format implements fmt.Formatter: it hides the secret.
func (k Key) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "key %d", k.Number) }

// MarshalText hides the secret from encoders; there is no way back.
func (k Key) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", k), nil }

// SetKeys changes the keys of a node that runs, as Config.Keys says: what is sent
// from now on is sealed with the first, what comes is opened with all of them. A
// zone goes on while its keys are changed if no node uses a key that another one
// does not have yet, or not any more: a new key is added at all nodes, then put
// first at all, then the old one is removed. The error wraps ErrConfig if keys cannot be
// used, or if the node has none.
func (n *Node) SetKeys(ctx context.Context, keys []Key) error {
	c := *n.cfg
	if len(c.Keys) == 0 || len(keys) == 0 {
		return fmt.Errorf("%w: a node has keys from its start on and to its end, or never: %d keys for one that began with %d", ErrConfig, len(keys), len(c.Keys))
	}
	c.Keys = keys
	ring, err := ring(&c)
	if err != nil {
		return err
	}
	if n.shared {
		if err := n.source.Share(c.secrets()...); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	return n.ask(ctx, func(s *stepper) { s.wire.ring = ring })
}

// secrets returns those of the keys.
func (c *Config) secrets() [][32]byte {
	all := make([][32]byte, len(c.Keys))
	for i, k := range c.Keys {
		all[i] = k.Secret
	}
	return all
}

// ReadKeys reads Config.Keys from a file: a key a line, as its number, a colon and
// 64 hexadecimal digits, the one for what is sent first. Empty lines and those
// that begin with # do not count. Nobody but its owner may read the file. The errors wrap
// ErrConfig and name the line, but not what is in it.
func ReadKeys(file string) (keys []Key, err error) {
	text, err := secretfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		k, ok := parseKey(text)
		if !ok {
			return nil, fmt.Errorf("%w: %s:%d: want a number from 1 to %d, a colon, and 64 hexadecimal digits", ErrConfig, file, n, MaxKey)
		}
		keys = append(keys, k)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, file, err)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s has no keys", ErrConfig, file)
	}
	return keys, nil
}

func parseKey(text string) (k Key, ok bool) {
	number, digits, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(number, 10, 8)
	secret, err2 := hex.DecodeString(digits)
	if err != nil || err2 != nil || n < 1 || n > MaxKey || len(secret) != len(k.Secret) {
		return k, false
	}
	return Key{uint8(n), [32]byte(secret)}, true
}
