package rudp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/netip"
	"time"

	"github.com/tributary-fabric/tributary/internal/core"
)

// cookieLife is how long a caller has to repeat a cookie.
const cookieLife = 10 * time.Second

// Cookies lets a caller prove that it gets what is sent to its address, before anything
// is kept of it.
type Cookies struct {
	mac  hash.Hash
	room [cookieSize + sha256.Size]byte
	text [64]byte
}

// NewCookies returns Cookies with a secret of random bytes.
func NewCookies(secret [32]byte) *Cookies { return &Cookies{mac: hmac.New(sha256.New, secret[:])} }

// Retry appends the answer to a Connect without a valid cookie. It is no longer than that.
func (c *Cookies) Retry(b []byte, now core.Time, from netip.AddrPort, connect []byte) []byte {
	to := ID(binary.BigEndian.Uint64(connect[8:]))
	at := len(b)
	b = append(b, short(Retry, to, connectSize)...)
	copy(b[at+cookieAt:], c.cookie(uint64(now), from, to))
	return b
}

// Valid reports whether a Connect repeats a cookie that was given to its address lately.
func (c *Cookies) Valid(now core.Time, from netip.AddrPort, connect []byte) bool {
	got := connect[cookieAt : cookieAt+cookieSize]
	at := binary.BigEndian.Uint64(got)
	age := now.Sub(core.Time(at))
	if at > uint64(now) || age > cookieLife {
		return false
	}
	return hmac.Equal(got, c.cookie(at, from, ID(binary.BigEndian.Uint64(connect[8:]))))
}

// cookie returns the cookie of a moment: that, and a MAC of it with address and ID.
func (c *Cookies) cookie(at uint64, from netip.AddrPort, id ID) []byte {
	address := from.Addr().As16()
	text := binary.BigEndian.AppendUint64(c.text[:0], at)
	text = append(text, address[:]...)
	text = binary.BigEndian.AppendUint16(text, from.Port())
	text = binary.BigEndian.AppendUint64(text, uint64(id))
	c.mac.Reset()
	c.mac.Write(text)
	out := append(c.room[:0], text[:8]...)
	return c.mac.Sum(out)[:cookieSize]
}
