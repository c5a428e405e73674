package membership

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Key is a secret that all nodes share.
type Key struct {
	Number uint8    // 1 to MaxKey; all nodes call the same key so
	Secret [32]byte // random bytes
}

// maxKeyFile bounds the bytes of a file of keys.
const maxKeyFile = 1 << 16

// ReadKeys reads Config.Keys from a file: a key a line, as its number, a colon and
// 64 hexadecimal digits, the one for what is sent first. Empty lines and those
// that begin with # do not count. The errors wrap ErrConfig and name the line, but
// not what is in it.
func ReadKeys(file string) (keys []Key, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxKeyFile))
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
